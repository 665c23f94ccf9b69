"""``recallgym outcomes``: building, describing and checking outcome tables."""

import argparse
from pathlib import Path

from ..envs.outcomes import load_table, shipped_table_path
from ..envs.outcomes.table import OutcomeTable
from ..experiments.compose import build as build_config
from .common import Bar, add_config, composed
from .errors import UsageError


def build(parser: argparse.ArgumentParser, arguments: list[str]) -> int:
    """Builds a table, or finishes one that was begun."""
    from ..envs.outcomes.build import build_table

    add_config(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the table")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes that score, one thread each [1]")
    args = parser.parse_intermixed_args(arguments)
    if args.workers < 1:
        raise UsageError(f"--workers must be at least 1, got {args.workers}")
    config = build_config(composed(args)["outcomes"])
    table = build_table(config, args.out, workers=args.workers, progress=rows_done(Bar()))
    print(f"built: {args.out}: {table.questions} questions x {table.conditions} conditions")
    print(f"next: recallgym train env.table={args.out}")
    return 0
