"""Which version of this package's code is running; recorded beside results and in bundles."""

import subprocess
from pathlib import Path
from typing import Any


def source_revision() -> dict[str, Any]:
    """Returns the git commit of this package's own checkout and whether it is dirty; None for an installed package."""
    root = Path(__file__).resolve().parents[1]

    def git(*arguments: str) -> str:
        return subprocess.run(
            ("git", "-C", root, *arguments), capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        if Path(git("rev-parse", "--show-toplevel")).resolve() == root:  # not a repository that merely holds the venv
            return {"commit": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain"))}
    except (OSError, subprocess.CalledProcessError):
        pass
    return {"commit": None, "dirty": None}
