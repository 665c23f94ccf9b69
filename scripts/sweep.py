"""``recallgym sweep``: every combination of comma-separated overrides, for several seeds."""

import argparse
import itertools
import sys
from collections.abc import Sequence
from functools import partial

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from ..experiments.compose import ConfigError, compose_config, resolved
from ..experiments.reproduce import run_group, run_settings
from ..experiments.runner import Progress, SweepError, run_jobs
from ..experiments.store import Store
from ..experiments.trial import Trial, make_trial, missing_groups
from .common import add_config, grid, held_out, interval_text
from .errors import UsageError

SHOWN = ("net_utility", "regret", "exact_match", "tokens")


def sweep(parser: argparse.ArgumentParser, arguments: list[str]) -> int:
    """Runs what is missing of a sweep, then prints a line a combination; 1 where trials failed."""
    add_config(parser)
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="seeds of each combination, from 0 [1]")
    args = parser.parse_intermixed_args(arguments)
    if args.seeds < 1:
        raise UsageError(f"--seeds must be at least 1, got {args.seeds}")
    shared, varied = expand(args.overrides)
    combinations: dict[str, list[Trial]] = {}
    for choice in varied:
        label = " ".join(choice) or "as configured"
        config = compose_config([*shared, *choice], args.config_dir)
        combinations[label] = []
        for seed in range(args.seeds):
            config.seed = seed
            combinations[label].append(make_trial(resolved(config), label=f"{label}, seed {seed}"))
    settings = run_settings(shared, args.config_dir)
    store = Store(settings["dir"])
    store.clear_stale()
    jobs = missing_groups(store, [trial for trials in combinations.values() for trial in trials])
    try:
        run_jobs(
            jobs,
            partial(run_group, str(store.root.resolve())),
            label=lambda job: job[0].label,
            backend=settings["backend"],
            workers=settings["workers"],
            address=settings["address"],
            report=Progress(len(jobs)) if jobs else None,
        )
    except SweepError as error:
        print(f"recallgym: {error}", file=sys.stderr)
        return 1
    figures = {label: held_out(store, trials) for label, trials in combinations.items()}
    shown = [name for name in SHOWN if all(name in found for found in figures.values())]
    rows = [(label, *(interval_text(found[name]) for name in shown)) for label, found in figures.items()]
    print(grid(("combination", *(name.replace("_", " ") for name in shown)), rows))
    print(f"\n{args.seeds} seeds each; trials in {store.root / 'trials'}")
    return 0


def expand(overrides: Sequence[str]) -> tuple[list[str], list[tuple[str, ...]]]:
    """Splits overrides into those that all trials share and the combinations of those that vary.

    Args:
        overrides: Hydra overrides; ``env.mode=hard,soft`` and ``agent.gamma=choice(0,1)`` vary.

    Returns:
        The shared overrides, and one tuple of overrides a combination (one empty tuple where nothing varies).

    Raises:
        ConfigError: An override is malformed.
    """
    try:
        parsed = OverridesParser.create().parse_overrides(list(overrides))
    except HydraException as error:
        raise ConfigError(str(error).splitlines()[0]) from None
    shared, axes = [], []
    for override, text in zip(parsed, overrides, strict=True):
        if override.is_sweep_override():
            key = override.get_key_element()
            axes.append([f"{key}={value}" for value in override.sweep_string_iterator()])
        else:
            shared.append(text)
    return shared, list(itertools.product(*axes))
