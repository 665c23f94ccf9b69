"""Where a learner's curves go: Weights & Biases or TensorBoard, two methods each."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol


class Tracker(Protocol):
    """Takes numbers as training goes on. Never part of a trial's identity."""

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Records ``metrics`` at ``step`` environment steps."""

    def close(self) -> None:
        """Writes what is pending. A closed tracker takes no more."""


class WandbTracker:
    """Weights & Biases; offline where no API key is set, since an online run would stop to ask for one.

    Args:
        directory: Folder under which the run's files go.
        project: Name of the project.
        name: Name of the run; None lets W&B choose.
        config: What to show beside the curves.
    """

    def __init__(
        self,
        directory: str | Path,
        *,
        project: str = "recallgym",
        name: str | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        import wandb

        # A key in ~/.netrc counts as a key. WANDB_MODE decides where it is set; it is passed on, since wandb reads the
        # environment once a process.
        has_key = os.environ.get("WANDB_API_KEY") or wandb.api.api_key
        mode = os.environ.get("WANDB_MODE") or (None if has_key else "offline")
        Path(directory).mkdir(parents=True, exist_ok=True)
        self._run = wandb.init(
            dir=directory,
            project=project,
            name=name,
            config=dict(config or {}),
            mode=mode,  # type: ignore[arg-type]  # any text stands in the environment; wandb refuses what it does not know
            reinit="create_new",  # several trials may run in one process
            settings=wandb.Settings(silent=True),
        )

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Records ``metrics`` at ``step`` environment steps."""
        self._run.log(dict(metrics), step=step)

    def close(self) -> None:
        """Finishes the run; without it the next run in this process would write into this one."""
        self._run.finish()


class TensorBoardTracker:
    """TensorBoard event files.

    Args:
        directory: Folder of the event files.
    """

    def __init__(self, directory: str | Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(directory))

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Records ``metrics`` at ``step`` environment steps."""
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Writes what is pending and closes the files."""
        self._writer.close()
