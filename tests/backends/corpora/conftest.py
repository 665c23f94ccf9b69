"""Public data sets: tiny ones in the published formats, and the real ones where RECALLGYM_DATA says they are."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes a file of a data set and returns the folder that holds the data sets."""

    def written(dataset: str, name: str, content: Any, *, lines: bool = False) -> Path:
        folder = tmp_path / dataset
        folder.mkdir(exist_ok=True)
        if lines:
            text = "\n".join(json.dumps(row, ensure_ascii=False) for row in content)
        else:
            text = json.dumps(content, ensure_ascii=False)
        (folder / name).write_text(text, encoding="utf-8")
        return tmp_path

    return written


@pytest.fixture
def published() -> Path:
    """The folder with the published data sets."""
    if "RECALLGYM_DATA" in os.environ:
        return Path(os.environ["RECALLGYM_DATA"])
    reason = "RECALLGYM_DATA names no folder of data sets: `recallgym data fetch NAME --to DIR`"
    if "data" in os.environ.get("RECALLGYM_REQUIRE", "").split(","):
        pytest.fail(f"RECALLGYM_REQUIRE names data: {reason}")
    pytest.skip(reason)
