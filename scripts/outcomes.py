"""``recallgym outcomes``: building, describing and checking outcome tables."""

import argparse
from pathlib import Path

from ..envs.outcomes import load_table, shipped_table_path
from ..envs.outcomes.build import build_table
from ..envs.outcomes.check import check_table, describe
from ..envs.outcomes.orders import audit_orders
from ..envs.outcomes.plan import BuildConfig
from ..envs.outcomes.table import OutcomeTable
from ..experiments.compose import build as build_object
from .common import Bar, add_config, composed
from .errors import UsageError


def build(parser: argparse.ArgumentParser, arguments: list[str]) -> int:
    """Builds a table, or finishes one that was begun."""
    add_config(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the table")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes that score, one thread each [1]")
    args = parser.parse_intermixed_args(arguments)
    if args.workers < 1:
        raise UsageError(f"--workers must be at least 1, got {args.workers}")
    table = build_with_progress(build_object(composed(args)["outcomes"]), args.out, args.workers)
    print("\n".join(describe(table)))
    print(f"built: {args.out}\nnext: recallgym train env.table={args.out}")
    return 0


def info(parser: argparse.ArgumentParser, arguments: list[str]) -> int:
    """Prints what a table holds."""
    parser.add_argument("table", metavar="TABLE", help="a folder, or the name of a table that comes with the package")
    print("\n".join(describe(load_table(_folder(parser.parse_args(arguments).table)))))
    return 0


def check(parser: argparse.ArgumentParser, arguments: list[str]) -> int:
    """Holds a table against its checksums, packages and reader; 1 where something differs."""
    parser.add_argument("table", metavar="TABLE", help="a folder, or the name of a table that comes with the package")
    parser.add_argument("--sample", type=int, default=5, metavar="N", help="rows to score again with the reader [5]")
    parser.add_argument("--device", default="cpu", help="torch device of the reader [cpu]")
    args = parser.parse_args(arguments)
    report = check_table(_folder(args.table), sample=args.sample, device=args.device)
    print("\n".join(report.lines()))
    return 0 if report.ok else 1


def orders(parser: argparse.ArgumentParser, arguments: list[str]) -> int:
    """Scores every order of every reading set of some questions, and prints what order alone does."""
    parser.add_argument("table", metavar="TABLE", help="a folder, or the name of a table that comes with the package")
    parser.add_argument("--questions", type=int, default=50, metavar="N", help="questions, half a minute each [50]")
    parser.add_argument("--device", default="cpu", help="torch device of the reader [cpu]")
    args = parser.parse_args(arguments)
    if args.questions < 1:
        raise UsageError(f"--questions must be at least 1, got {args.questions}")
    bar = Bar()
    audit = audit_orders(
        load_table(_folder(args.table)),
        questions=args.questions,
        device=args.device,
        progress=lambda done, total: bar(done / total, f"question {done} of {total}"),
    )
    print("\n".join(audit.lines()))
    return 0


def _folder(table: str) -> Path:
    """A folder that is there, or looks like a path, is one; anything else names a table of the package."""
    path = Path(table)
    return path if path.is_dir() or len(path.parts) > 1 else shipped_table_path(table)


def build_with_progress(config: BuildConfig, out: Path, workers: int) -> OutcomeTable:
    """Builds a table and shows how far it is."""
    bar = Bar()
    return build_table(
        config,
        out,
        workers=workers,
        progress=lambda done, total, left: bar(done / total, f"question {done} of {total}", left),
    )
