"""``recallgym data``: the public data sets that loaders read."""

import argparse
import sys
from pathlib import Path

from ..backends.corpora.catalogue import DATASETS
from ..backends.corpora.datasets import Dataset, check as check_files, fetch as fetch_files
from .errors import UsageError, unknown


def list_(parser: argparse.ArgumentParser, arguments: list[str]) -> int:
    """Prints the catalogue."""
    parser.parse_args(arguments)
    for entry in DATASETS.values():
        print(f"{entry.name}\n  {entry.summary}\n  licence: {entry.licence}")
        for source in entry.sources:
            print(f"  {source.page}")
    print("\n`recallgym data fetch NAME --to DIR` downloads one; nothing else ever does.")
    return 0


def fetch(parser: argparse.ArgumentParser, arguments: list[str]) -> int:
    """Downloads data sets."""
    parser.add_argument("names", nargs="+", metavar="NAME", help="data sets, as `recallgym data list` names them")
    parser.add_argument("--to", type=Path, default=Path("data"), metavar="DIR", help="folder to put them in [data]")
    args = parser.parse_args(arguments)
    entries = [_find(name) for name in args.names]
    for entry in entries:
        print(f"{entry.name}: licence: {entry.licence}")
        files = fetch_files(entry, args.to, progress=_show_bytes)
        print(f"\r{entry.name}: {len(files)} files in {args.to / entry.name}      ")
    return 0


def check(parser: argparse.ArgumentParser, arguments: list[str]) -> int:
    """Compares a directory with what is published; 1 where something is missing or differs."""
    parser.add_argument("directory", type=Path, metavar="DIR", help="folder of a data set, or of several")
    parser.add_argument("names", nargs="*", metavar="NAME", help="data sets to look for [all with a folder there]")
    args = parser.parse_args(arguments)
    directory: Path = args.directory
    named = [name for name in DATASETS if name == directory.resolve().name or (directory / name).is_dir()]
    entries = [_find(name) for name in args.names or named]
    if not entries:
        raise UsageError(f"{directory}: holds no folder of a known data set; name the ones to look for in it")
    problems = 0
    for entry in entries:
        for finding in check_files(entry, directory):
            rows = "" if finding.rows is None else f", {finding.rows} rows"
            print(f"{entry.name}: {finding.path or finding.pattern}: {finding.problem or f'ok{rows}'}")
            problems += bool(finding.problem)
    return 1 if problems else 0


def _find(name: str) -> Dataset:
    if name not in DATASETS:
        raise unknown("data set", name, DATASETS)
    return DATASETS[name]


def _show_bytes(received: int) -> None:
    if sys.stdout.isatty():
        print(f"\r{received / 1e6:.0f} MB", end="", flush=True)
