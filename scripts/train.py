"""``recallgym train`` and ``recallgym evaluate``: one trial, by its two stages."""

import argparse
from typing import Any

import numpy as np

from ..backends.estimation.information import ALARM
from ..experiments.compose import build
from ..experiments.store import Store
from ..experiments.trial import Trial, evaluate as evaluate_trial, load_fit, make_policy, make_trial, run_trials
from .common import add_config, composed, ensure_trained, grid, held_out, interval_text
from .errors import UsageError

GUARD = "recallgym.experiments.guards.GuardedDecisions"


def train(parser: argparse.ArgumentParser, arguments: list[str]) -> int:
    """Trains a policy where it is not in the store, and evaluates it."""
    add_config(parser)
    args = parser.parse_intermixed_args(arguments)
    config = composed(args)
    trial = make_trial(config)
    store = Store(config["run"]["dir"])
    folder = store.fit_dir(trial.fit_hash)
    if folder.is_dir():
        print(f"already trained: {folder}")
    else:
        tracker = build(config["tracker"]) if config["tracker"]["_target_"] else None
        callbacks = [build(callback) for callback in config["callbacks"].values()]
        ensure_trained(store, trial, tracker=tracker, callbacks=callbacks)
        if tracker is not None:
            tracker.close()
        print(f"trained: {folder}")
    _evaluate(store, trial)
    print(guard_line(store, config))
    print(f"next: recallgym export {store.trial_dir(trial.hash)} --out bundle")
    return 0


def evaluate(parser: argparse.ArgumentParser, arguments: list[str]) -> int:
    """Evaluates a policy that is trained, or needs no training."""
    add_config(parser)
    args = parser.parse_intermixed_args(arguments)
    config = composed(args)
    trial = make_trial(config)
    store = Store(config["run"]["dir"])
    trains = any(parameter.requires_grad for parameter in make_policy(trial).parameters())
    if trains and not store.fit_dir(trial.fit_hash).is_dir():
        raise UsageError(
            f"this policy is not trained in {store.root}: `recallgym train` with the same overrides trains it"
        )
    _evaluate(store, trial)
    return 0


def guard_line(store: Store, config: dict[str, Any]) -> str:
    """Runs the guard of claim C12 on a trained policy and returns what it says, in a line."""
    trial = make_trial({**config, "evaluation": {"_target_": GUARD}})
    try:
        records = evaluate_trial(load_fit(store, trial.fit_hash)[0], trial)
    except ValueError as error:  # a table whose memories are all of one kind
        return f"guard: cannot be tested here: {error}"
    changed, information = (float(np.mean(records[name])) for name in ("swapped", "conditional_information"))
    verdict = "ALARM, it decides by the memories" if records["alarm"].any() else "no alarm"
    return (
        f"guard: another pool changes the keep-bits of {changed:.0%} of queries; they tell {information:.3f} nats of "
        f"the memories, given query and position: {verdict} (above {ALARM} nats)"
    )


def _evaluate(store: Store, trial: Trial) -> None:
    run_trials(store, [trial])
    rows = [(name.replace("_", " "), interval_text(interval)) for name, interval in held_out(store, [trial]).items()]
    split = trial.evaluation.get("split", "test")
    print(f"\n{grid((f'on the {split} split', 'mean, 95% interval over families'), rows)}\n")
    result = store.read_result(trial.hash)
    seconds = result["seconds"]
    print(
        f"cost: training {result['steps']:,} environment steps in {seconds['fit']:.0f} s, evaluation "
        f"{seconds['evaluate']:.1f} s; context tokens shown {result['tokens_shown']:,}, reader calls "
        f"{result['reader_calls']:,}"
    )
    print(f"evaluated: {store.trial_dir(trial.hash)}")
