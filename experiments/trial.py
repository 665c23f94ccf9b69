"""A trial: one configuration and seed, in two stages that are stored apart.

The **fit** stage trains a policy; it is identified by environment, policy, agent, seed, data and the source of the
modules that these import. The **evaluate** stage makes it act; it is identified by its fit, the environment that masks
are replayed in and the evaluation. Arms that differ in the second stage only share one fit. Where and how a trial runs
(``run``, ``tracker``), git commit and library versions are no part of its identity; the last two are recorded.
"""

import hashlib
import json
import platform
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
import torch
from hydra.utils import get_object

from .. import __version__
from ..agents.learner import FitResult
from ..backends.provenance import source_revision
from ..backends.storage import file_digest
from ..envs.outcomes.table import OutcomeTable
from ..policies.base import Policy
from .compose import ConfigError, build
from .sources import source_digest
from .store import Records, Store, write_json

STAGES = 1
"""Version of what this module computes; part of every identity, since the digests do not cover this module."""

SESSIONS = "recallgym.experiments.evaluators.PlayedSessions"
"""Evaluator of an ``evaluation`` that names no ``_target_``."""

Config = dict[str, Any]


@dataclass(frozen=True)
class Trial:
    """What to run, and the identities of both stages.

    Attributes:
        env: Configuration of the environment to train in.
        policy: Configuration of the policy.
        agent: Configuration of the learner.
        seed: Seed of the training.
        evaluation: Configuration of the evaluator.
        replay: Configuration of the environment that masks are replayed in, or None.
        label: For progress lines.
        data: Fingerprint of the outcome table.
        fit_hash: Identity of the fit stage.
        hash: Identity of the trial.
    """

    env: Config
    policy: Config
    agent: Config
    seed: int
    evaluation: Config
    replay: Config | None
    label: str
    data: str
    fit_hash: str
    hash: str


def make_trial(config: Mapping[str, Any], *, replay: Config | None = None, label: str = "") -> Trial:
    """Identifies a trial.

    Args:
        config: A composed and resolved configuration: ``env``, ``policy``, ``agent``, ``seed``, ``evaluation``; other
            groups are ignored.
        replay: Configuration of the environment that masks are replayed in, where it is another one.
        label: For progress lines.

    Raises:
        ConfigError: A part names no such target.
        TableError: The environment's table cannot be trusted.
    """
    env, policy, agent, seed = config["env"], config["policy"], config["agent"], int(config["seed"])
    evaluation = {"_target_": SESSIONS, **config["evaluation"]}
    replay = None if replay == env else replay
    data = load_table(env).fingerprint
    fit_hash = identity(
        {
            "stages": STAGES,
            "env": _without_path(env),
            "policy": policy,
            "agent": agent,
            "seed": seed,
            "data": data,
            "code": source_digest(*_modules(env, policy, agent)),
        }
    )
    trial_hash = identity(
        {
            "stages": STAGES,
            "fit": fit_hash,
            "replay": None if replay is None else _without_path(replay),
            "evaluation": evaluation,
            "code": source_digest(*_modules(evaluation, *([] if replay is None else [replay]))),
        }
    )
    return Trial(env, policy, agent, seed, evaluation, replay, label, data, fit_hash, trial_hash)


def identity(content: Any) -> str:
    """Returns 16 hexadecimal digits that depend on every value of plain data, and not on the order of keys."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def run_trials(store: Store, trials: Sequence[Trial]) -> None:
    """Runs those of some trials of one fit that are not in the store, and stores them.

    Args:
        store: The trial store.
        trials: Trials with the same ``fit_hash``; the policy is fitted or loaded once.
    """
    missing = [trial for trial in trials if not store.trial_dir(trial.hash).is_dir()]
    if not missing:
        return
    with one_thread():
        policy = ensure_fit(store, missing[0])
        for trial in missing:
            start = time.perf_counter()
            records = evaluate(policy, trial)
            store.write_trial(trial.hash, _result(store, trial, records, time.perf_counter() - start), records)


def missing_groups(store: Store, trials: Iterable[Trial]) -> list[list[Trial]]:
    """Returns the trials that are not in the store, each once, grouped by fit: a group is one job."""
    groups: dict[str, dict[str, Trial]] = {}
    for trial in trials:
        if not store.trial_dir(trial.hash).is_dir():
            groups.setdefault(trial.fit_hash, {})[trial.hash] = trial
    return [list(group.values()) for group in groups.values()]


def ensure_fit(store: Store, trial: Trial, **options: Any) -> Policy:
    """Returns a trial's fitted policy, after fitting and storing it where it is not in the store.

    Args:
        store: The trial store.
        trial: The trial.
        options: Further arguments of the learner's ``fit``: callbacks, tracker, progress, checkpoint_dir.
    """
    if not store.fit_dir(trial.fit_hash).is_dir():
        fitted = fit(trial, **options)
        with store.staged(store.fit_dir(trial.fit_hash)) as staging:
            torch.save(fitted.policy.state_dict(), staging / "policy.pt")
            write_json(
                staging / "fit.json",
                {
                    "hash": trial.fit_hash,
                    "config": {"env": trial.env, "policy": trial.policy, "agent": trial.agent, "seed": trial.seed},
                    "data": trial.data,
                    "steps": fitted.steps,
                    "seconds": fitted.seconds,
                    "curve": fitted.curve,
                    "policy_sha256": file_digest(staging / "policy.pt"),
                    **provenance(),
                },
            )
    return load_fit(store, trial.fit_hash)[0]


def fit(trial: Trial, **options: Any) -> FitResult:
    """Trains a trial's policy; ``options`` are further arguments of the learner's ``fit``."""
    with one_thread():
        env_config = load_env(trial.env)
        result: FitResult = build(trial.agent).fit(env_config, make_policy(trial), seed=trial.seed, **options)
        return result


def evaluate(policy: Policy, trial: Trial) -> Records:
    """Evaluates a fitted policy as its trial says."""
    with one_thread():
        replay = None if trial.replay is None else load_env(trial.replay)
        records: Records = build(trial.evaluation)(policy, load_env(trial.env), replay, trial.seed)
        return records


def make_policy(trial: Trial) -> Policy:
    """Returns a trial's policy, untrained."""
    return _policy(trial.env, trial.policy)


def load_fit(store: Store, fit_hash: str) -> tuple[Policy, dict[str, Any]]:
    """Returns a stored policy and what was recorded of its training.

    Raises:
        StoreError: It is missing or damaged.
    """
    entry = store.check_fit(fit_hash)
    policy = _policy(entry["config"]["env"], entry["config"]["policy"])
    policy.load_state_dict(torch.load(store.fit_dir(fit_hash) / "policy.pt", weights_only=True))
    return policy.eval(), entry


def load_env(env: Config) -> Any:
    """Returns the environment's configuration object, with its outcome table loaded where it takes one.

    Checking a table's checksums takes longer than a short trial, so that a process loads each table once.
    """
    return _loaded(json.dumps(env, sort_keys=True))[0]


def load_table(env: Config) -> OutcomeTable:
    """Returns the outcome table of an environment's configuration."""
    return _loaded(json.dumps(env, sort_keys=True))[1]


@contextmanager
def one_thread() -> Iterator[None]:
    """Computes on one thread: sweeps run a trial a core, and sums over several threads differ in their last bits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@cache
def provenance() -> dict[str, Any]:
    """Returns what is recorded but not part of an identity: git commit, whether files differ from it, versions."""
    versions = {
        "recallgym": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": torch.__version__,
    }
    return {"git": source_revision(), "versions": versions}


def _policy(env: Config, policy: Config) -> Policy:
    table = load_table(env)
    built: Policy = build(
        policy,
        blocks=load_env(env).layout().blocks,
        pool=table.pool,
        budget=table.budget,
        bank_size=len(table.meta["passages"]),
    )
    return built


@lru_cache(maxsize=64)
def _loaded(env: str) -> tuple[Any, OutcomeTable]:
    settings = json.loads(env)
    config = build(settings)
    if "table" not in settings:
        return config, config.load_table()
    table = _shared_table(settings["_target_"], str(settings["table"]))
    return replace(config, table=table), table


@cache
def _shared_table(target: str, table: str) -> OutcomeTable:
    """One copy for all configurations that name it."""
    loaded: OutcomeTable = build({"_target_": target, "table": table}).load_table()
    return loaded


def _without_path(env: Config) -> Config:
    """The fingerprint says which data, wherever they lie."""
    return {key: value for key, value in env.items() if key != "table"}


def _modules(*configs: Config) -> list[str]:
    """The modules of all targets, those inside a target's arguments too."""
    modules = []
    for config in configs:
        try:
            modules.append(get_object(config["_target_"]).__module__)
        except (ImportError, KeyError, AttributeError, ValueError) as error:
            raise ConfigError(f"no such target {config.get('_target_')!r}: {str(error).splitlines()[0]}") from None
        modules += _modules(*(part for part in config.values() if isinstance(part, dict) and "_target_" in part))
    return sorted(set(modules))


def _result(store: Store, trial: Trial, records: Records, seconds: float) -> dict[str, Any]:
    fitted = store.check_fit(trial.fit_hash)
    return {
        "fit": trial.fit_hash,
        "config": {
            "env": trial.env,
            "policy": trial.policy,
            "agent": trial.agent,
            "seed": trial.seed,
            "evaluation": trial.evaluation,
            "replay": trial.replay,
        },
        "data": trial.data,
        "steps": fitted["steps"],
        "seconds": {"fit": fitted["seconds"], "evaluate": seconds},
        "reader_calls": 0,  # outcomes come from a table
        "tokens_shown": int(records["tokens"].sum()) if "tokens" in records else 0,
        **provenance(),
    }
