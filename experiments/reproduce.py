"""Reproduces an ablation: composes its trials, runs those that are missing, and writes table, figure and verdict."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from .ablation import load_ablation
from .compose import ConfigError, compose_config, resolved
from .figures import write_figures
from .plan import Estimate, Plan, estimate, plan
from .results import compute
from .runner import Progress, clock, run_jobs
from .statistics import smallest_p
from .store import Store
from .tables import write_tables
from .trial import Trial, run_trials


@dataclass(frozen=True)
class Reproduction:
    """What :func:`reproduce` did.

    Attributes:
        table: The table, as in its JSON.
        files: What was written.
        ran: Number of trials that were run now; the others were in the store.
    """

    table: dict[str, Any]
    files: list[Path]
    ran: int


def reproduce(
    name: str,
    out: str | Path,
    *,
    overrides: Sequence[str] = (),
    config_dir: str | Path | None = None,
    seeds: int | None = None,
    quick: bool = False,
    progress: bool = True,
) -> Reproduction:
    """Reproduces an ablation. Interrupted and repeated, it runs what is missing and ends with the same table.

    Args:
        name: Name or claim of the ablation.
        out: Directory for ``NAME.{json,md,tex,csv,png,svg}``.
        overrides: Hydra overrides for every arm; those of ``run`` say where and how (``run.dir=...``, ``run=ray``).
        config_dir: A directory with further configurations.
        seeds: Number of seeds in place of the ablation's.
        quick: Shrink as the ablation's ``quick`` says.
        progress: Show progress on standard error.

    Raises:
        ConfigError: A name or an override is wrong.
        SweepError: Trials failed; the others are stored.
    """
    begun = time.perf_counter()
    planned = planned_ablation(name, overrides=overrides, config_dir=config_dir, seeds=seeds, quick=quick)
    settings = run_settings(overrides, config_dir)
    ran = run_plan(planned, settings, progress=progress)
    store = Store(settings["dir"])
    command = command_line(planned.ablation.name, overrides, seeds, quick)
    table = compute(planned, store, command, time.perf_counter() - begun)
    return Reproduction(table, [*write_tables(table, out), *write_figures(table, out)], ran)


def planned_ablation(
    name: str,
    *,
    overrides: Sequence[str] = (),
    config_dir: str | Path | None = None,
    seeds: int | None = None,
    quick: bool = False,
) -> Plan:
    """Returns the trials of an ablation; see :func:`reproduce` for the arguments."""
    ablation = load_ablation(name, config_dir)
    if seeds is not None and seeds < 1:
        raise ConfigError(f"--seeds must be at least 1, got {seeds}")
    wanted = seeds if seeds is not None else ablation.quick.seeds if quick else ablation.seeds
    return plan(replace(ablation, seeds=wanted), overrides=overrides, config_dir=config_dir, quick=quick)


def cost(planned: Plan, seeds: int | None, quick: bool) -> str:
    """Says in a sentence what fewer seeds and ``quick`` cost; empty where nothing is shrunk."""
    said = []
    if quick:
        said.append(planned.ablation.quick.cost.rstrip("."))
    used = planned.ablation.seeds
    if seeds is not None or quick:
        reach = smallest_p(used)
        power = "no test over seeds can reach 0.05" if reach > 0.05 else "intervals are wider than the ablation's own"
        said.append(f"{used} seeds: the smallest p over seeds is {reach:.3g}; {power}")
    return ". ".join(said) + "." if said else ""


def describe(planned: Plan, store: Store) -> str:
    """Says what running a plan would do, for ``--dry-run``: its trials and an estimate."""
    found: Estimate = estimate(planned, store)
    lines = []
    for trial in planned.distinct:
        done = "stored" if store.trial_dir(trial.hash).is_dir() else "to run"
        lines.append(f"{trial.hash}  fit {trial.fit_hash}  {done}  {trial.label}")
    left = (
        "unknown until one such fit is stored" if found.seconds is None else f"about {clock(found.seconds)} on one core"
    )
    lines.append(f"{found.trials} trials, {found.stored} stored, {found.fits} policies to train; time: {left}")
    return "\n".join(lines)


def run_plan(planned: Plan, settings: dict[str, Any], *, progress: bool = True) -> int:
    """Runs the trials of a plan that are not in the store, and returns how many they were.

    Args:
        planned: The plan.
        settings: The ``run`` group: ``dir``, ``backend``, ``workers``, ``address``.
        progress: Show progress on standard error.

    Raises:
        SweepError: Trials failed; the others are stored.
    """
    store = Store(settings["dir"])
    store.clear_stale()
    groups = planned.groups(store)
    # A worker has another working directory. On several machines ``run.dir`` must be on a file system that all share.
    run_jobs(
        groups,
        partial(run_group, str(store.root.resolve())),
        label=_label,
        backend=settings["backend"],
        workers=settings["workers"],
        address=settings["address"],
        report=Progress(len(groups)) if progress and groups else None,
    )
    return sum(map(len, groups))


def run_group(root: str, trials: Sequence[Trial]) -> None:
    """Runs trials of one fit; the job of a worker."""
    run_trials(Store(root), trials)


def run_settings(overrides: Sequence[str] = (), config_dir: str | Path | None = None) -> dict[str, Any]:
    """Returns the ``run`` group."""
    settings: dict[str, Any] = resolved(compose_config(overrides, config_dir))["run"]
    return settings


def command_line(name: str, overrides: Sequence[str], seeds: int | None, quick: bool) -> str:
    """Returns the command that makes a table; where trials run is no part of it."""
    options = [*(["--seeds", str(seeds)] if seeds is not None else []), *(["--quick"] if quick else [])]
    own = [o for o in overrides if not o.startswith(("run=", "run.", "tracker=", "tracker."))]
    return " ".join(["recallgym", "reproduce", name, *options, *own])


def _label(trials: Sequence[Trial]) -> str:
    return trials[0].label
