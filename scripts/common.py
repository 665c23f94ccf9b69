"""What several commands share: overrides, a progress bar, and the held-out figures of trials."""

import argparse
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..agents.trackers import Tracker
from ..experiments.compose import compose_config, resolved
from ..experiments.metrics import MEASURES, measure
from ..experiments.runner import clock
from ..experiments.statistics import Interval, arm_interval, scores_from_units
from ..experiments.store import Records, Store
from ..experiments.trial import Trial, ensure_fit, load_table

BOOTSTRAP_SEED = 0  # the same trials give the same intervals
UNITS = {
    "regret": "nats a token",
    "net_utility": "nats a token",
    "utility": "nats a token",
    "exact_match": "share of steps",
    "harmful_exposure": "share of passages read",
    "rejection": "share of candidates",
    "search": "share of steps",
    "tokens": "context tokens a step",
}
"""The measures of played sessions that say what a policy is worth, and their units."""


def add_config(parser: argparse.ArgumentParser) -> None:
    """Adds Hydra overrides and ``--config-dir`` to a command."""
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="Hydra overrides, such as policy=keep_all")
    parser.add_argument("--config-dir", type=Path, metavar="DIR", help="folder with further configuration groups")


def composed(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the configuration of a command's overrides, resolved."""
    return resolved(compose_config(args.overrides, args.config_dir))


def ensure_trained(
    store: Store, trial: Trial, *, tracker: Tracker | None = None, callbacks: Sequence[Any] = ()
) -> None:
    """Trains a trial's policy where it is not in the store, with progress; interrupted, the next call goes on."""
    checkpoint = store.root / "checkpoints" / trial.fit_hash
    ensure_fit(store, trial, progress=Bar(), checkpoint_dir=checkpoint, tracker=tracker, callbacks=callbacks)
    shutil.rmtree(checkpoint, ignore_errors=True)


def held_out(store: Store, trials: Sequence[Trial]) -> dict[str, Interval]:
    """Returns what trials that differ in their seeds only scored, by measure."""
    records = [store.read_trial(trial.hash).records for trial in trials]
    return measured(records, [trial.seed for trial in trials], load_table(trials[0].env).meta["families"])


def measured(records: Sequence[Records], seeds: Sequence[int], families: Sequence[str]) -> dict[str, Interval]:
    """Returns every measure that these records allow and that counted something, with its interval.

    Args:
        records: Records of one evaluation, one a seed.
        seeds: The seeds.
        families: Names of the families that records refer to.
    """
    found = {}
    for name in MEASURES:
        try:
            numerator, denominator = (np.stack(part) for part in zip(*(measure(name, r) for r in records), strict=True))
        except KeyError:  # another evaluation's measure
            continue
        scores = scores_from_units(numerator, denominator, records[0]["family"].ravel(), seeds, families)
        if np.isfinite(scores.per_seed).all():
            found[name] = arm_interval(scores, np.random.default_rng(BOOTSTRAP_SEED))
    return found


def grid(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Aligns cells in columns, the first to the left."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = []
    for row in (header, *rows):
        numbers = [f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join([f"{row[0]:<{widths[0]}}", *numbers]).rstrip())
    return "\n".join(lines)


def interval_text(interval: Interval) -> str:
    """Returns an estimate with its interval, to three decimals."""
    return f"{interval.estimate:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


class Bar:
    """Shows how far one training is, on standard error: a line that moves on a terminal, every fifth part in a log."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._printed = 0.0

    def __call__(self, share: float, text: str, left: float | None = None) -> None:
        """Takes the share that is done, in [0, 1], a few words, and the seconds left where the caller knows better."""
        terminal = sys.stderr.isatty()
        if not terminal and share < 1 and share - self._printed < 0.2:
            return
        self._printed = share
        elapsed = time.monotonic() - self._begun
        left = elapsed / max(share, 1e-3) - elapsed if left is None else left
        line = f"{share:4.0%}  {clock(elapsed)} elapsed, about {clock(left)} left  {text}"
        end = "" if terminal and share < 1 else "\n"
        print(f"\r\x1b[K{line}" if terminal else line, end=end, file=sys.stderr, flush=True)
