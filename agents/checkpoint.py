"""Checkpoints that continue bit-exactly, and random state that never leaks out of a training run."""

import os
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch


class CheckpointError(ValueError):
    """A checkpoint that cannot be continued from: unreadable, or of another configuration."""


def random_state() -> dict[str, Any]:
    """Returns the state of every global generator: Python's, NumPy's and torch's."""
    # NumPy's legacy global state is the one that Stable-Baselines3 shuffles minibatches with.
    return {"python": random.getstate(), "numpy": np.random.get_state(), "torch": torch.get_rng_state()}  # noqa: NPY002


def set_random_state(state: Mapping[str, Any]) -> None:
    """Restores what :func:`random_state` returned."""
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])  # noqa: NPY002
    torch.set_rng_state(state["torch"])


@contextmanager
def isolated_randomness(seed: int) -> Iterator[None]:
    """Seeds the global generators for the body and gives them back as they were.

    Our code draws from explicit generators; Stable-Baselines3 and a user's callbacks may not.
    """
    before = random_state()
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002
    torch.manual_seed(seed)
    try:
        yield
    finally:
        set_random_state(before)


def save_checkpoint(path: Path, state: Mapping[str, Any]) -> None:
    """Writes a state so that a kill at any moment leaves the old file or the new one, never half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    with open(partial, "wb") as file:
        torch.save(dict(state), file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


def load_checkpoint(path: Path, identity: str) -> dict[str, Any] | None:
    """Reads a state back.

    Args:
        path: File of the checkpoint.
        identity: What the state must be of: learner, environment and seed.

    Returns:
        The state, or None where there is no file.

    Raises:
        CheckpointError: The file is damaged, or of another identity.
    """
    if not path.is_file():
        return None
    try:
        # Generator states are tuples and arrays, which weights_only refuses. The file is this run's own.
        state: dict[str, Any] = torch.load(path, weights_only=False)
    except Exception as error:
        raise CheckpointError(
            f"{path}: not a readable checkpoint ({error}); delete it to train from the start"
        ) from None
    if state["identity"] != identity:
        raise CheckpointError(
            f"{path}: a checkpoint of another run:\n  {state['identity']}\nexpected\n  {identity}\n"
            "Delete it or choose another folder."
        )
    return state
