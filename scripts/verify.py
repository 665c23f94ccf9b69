"""``recallgym verify``: needs what loading a bundle needs, and nothing else."""

import argparse
from pathlib import Path

from ..serving.bundle import MANIFEST
from ..serving.verify import verify as verify_bundle
from .errors import UsageError


def verify(parser: argparse.ArgumentParser, arguments: list[str]) -> int:
    """Prints what was checked of a bundle, and what could not be; 1 where it is refused."""
    parser.add_argument("bundle", type=Path, metavar="DIR", help="folder of the bundle")
    parser.add_argument("--digest", metavar="SHA256", help="the digest that the bundle must have")
    args = parser.parse_args(arguments)
    if not (args.bundle / MANIFEST).is_file():
        raise UsageError(f"{args.bundle}: no bundle here ({MANIFEST} is missing); `recallgym export` makes one")
    report = verify_bundle(args.bundle, digest=args.digest)
    print("\n".join(report.lines()))
    return 0 if report.ok else 1
