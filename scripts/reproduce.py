"""``recallgym reproduce`` and ``recallgym report``: ablation tables."""

import argparse
import sys
from pathlib import Path

from ..experiments.report import write_report
from ..experiments.reproduce import cost, describe, planned_ablation, reproduce as run_reproduction, run_settings
from ..experiments.runner import SweepError
from ..experiments.store import Store
from .common import add_config


def reproduce(parser: argparse.ArgumentParser, arguments: list[str]) -> int:
    """Writes an ablation's table and figure; 1 where trials failed."""
    parser.add_argument("name", metavar="NAME", help="an ablation's name, or its claim (C4)")
    add_config(parser)
    parser.add_argument("--out", type=Path, default=Path("results"), metavar="DIR", help="where to write [results]")
    parser.add_argument("--seeds", type=int, metavar="N", help="seeds in place of the ablation's own")
    parser.add_argument("--quick", action="store_true", help="shrink the ablation, and say what that costs")
    parser.add_argument("--dry-run", action="store_true", help="list the trials and estimate the time; run nothing")
    args = parser.parse_intermixed_args(arguments)
    choice = {"overrides": args.overrides, "config_dir": args.config_dir, "seeds": args.seeds, "quick": args.quick}
    planned = planned_ablation(args.name, **choice)
    if args.dry_run:
        print(describe(planned, Store(run_settings(args.overrides, args.config_dir)["dir"])))
        return 0
    if loss := cost(planned, args.seeds, args.quick):
        print(f"shrunk: {loss}", file=sys.stderr)
    try:
        done = run_reproduction(args.name, args.out, **choice)
    except SweepError as error:
        print(f"recallgym: {error}", file=sys.stderr)
        return 1
    page = next(file for file in done.files if file.suffix == ".md")
    print(f"{page.read_text(encoding='utf-8')}\nwritten: {', '.join(map(str, done.files))}")
    return 0


def report(parser: argparse.ArgumentParser, arguments: list[str]) -> int:
    """Writes one page over several tables."""
    parser.add_argument("tables", nargs="+", type=Path, metavar="JSON", help="tables that `recallgym reproduce` wrote")
    parser.add_argument("--out", type=Path, default=Path("results"), metavar="DIR", help="where to write [results]")
    args = parser.parse_args(arguments)
    print(f"written: {', '.join(map(str, write_report(args.tables, args.out)))}")
    return 0
