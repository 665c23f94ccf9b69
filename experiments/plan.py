"""Which trials an ablation consists of, composed from its arms, seeds and metrics."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .ablation import Ablation, Arm, Metric
from .compose import ConfigError, compose_config, keys_of, resolved
from .store import Store
from .trial import Trial, make_trial, missing_groups


@dataclass(frozen=True)
class Plan:
    """The trials of an ablation.

    Attributes:
        ablation: The ablation, with the number of seeds that is used.
        trials: A trial for each (metric's evaluation, arm, seed), by metric name, arm name and seed.
        split: Split that the primary metric is judged on.
        env: Configuration of the environment that the first arm trains in.
    """

    ablation: Ablation
    trials: dict[tuple[str, str, int], Trial]
    split: str
    env: dict[str, Any]

    @property
    def seeds(self) -> list[int]:
        """Seeds of every arm."""
        return _seeds(self.ablation)

    @property
    def distinct(self) -> list[Trial]:
        """The trials, each once, in order."""
        return list({trial.hash: trial for trial in self.trials.values()}.values())

    def groups(self, store: Store) -> list[list[Trial]]:
        """Returns the trials that are not in the store, grouped by fit."""
        return missing_groups(store, self.distinct)


def plan(
    ablation: Ablation, *, overrides: Sequence[str] = (), config_dir: str | Path | None = None, quick: bool = False
) -> Plan:
    """Composes the trials of an ablation.

    Args:
        ablation: The ablation; its ``seeds`` say how many of each arm.
        overrides: Overrides by the user. A group's choice (``agent=ppo``) joins the base, so that what an arm chooses
            itself stands; a value (``agent.steps=1000``) goes last to every arm that has the key.
        config_dir: A directory with further configurations.
        quick: Apply the ablation's ``quick`` overrides too.

    Raises:
        ConfigError: An override is wrong.
        TableError: The outcome table cannot be trusted.
    """
    trials: dict[tuple[str, str, int], Trial] = {}
    if any(override.startswith("seed=") for override in overrides):
        seeds = _seeds(ablation)
        raise ConfigError(f"an ablation has seeds {seeds[0]} to {seeds[-1]} for every arm; say how many with --seeds")
    shared = [*(ablation.quick.overrides if quick else []), *overrides]
    unused = {override for override in [*ablation.base, *shared] if not _chooses(override)}

    @cache
    def keys(choices: tuple[str, ...]) -> set[str]:
        return keys_of(compose_config(choices, config_dir))

    for name, arm in ablation.arms.items():
        # Composing takes a tenth of a second, so that an arm is composed for all its seeds at once.
        own = _own_overrides(ablation.base, arm, shared, keys)
        unused -= set(own)
        config = compose_config(own, config_dir)
        replayed = compose_config([*own, *arm.replay], config_dir) if arm.replay else None
        for seed in _seeds(ablation):
            config.seed = seed
            settings = resolved(config)
            env = None if replayed is None else resolved(replayed)["env"]
            for metric in ablation.metrics:
                evaluation = _evaluation(settings["evaluation"], ablation, arm, metric, quick)
                trials[metric.name, name, seed] = make_trial(
                    {**settings, "evaluation": evaluation}, replay=env, label=f"{name}, seed {seed}"
                )
    if unused:
        compose_config(sorted(unused), config_dir)  # names what is near a misspelt key
        raise ConfigError(f"no arm of {ablation.name} has what these override: {', '.join(sorted(unused))}")
    first = next(iter(trials.values()))
    return Plan(ablation, trials, str(first.evaluation.get("split", "test")), first.env)


def _seeds(ablation: Ablation) -> list[int]:
    return list(range(ablation.first_seed, ablation.first_seed + ablation.seeds))


def _own_overrides(
    base: Sequence[str], arm: Arm, shared: Sequence[str], keys: Callable[[tuple[str, ...]], set[str]]
) -> list[str]:
    """Orders the overrides of an arm: choices of all arms, values of all arms, its own, then values that are shared."""
    choices = [override for override in [*base, *shared] if _chooses(override)]
    known = keys((*choices, *filter(_chooses, arm.overrides)))

    def values(overrides: Sequence[str]) -> list[str]:
        return [o for o in overrides if not _chooses(o) and (o.startswith(("+", "~")) or o.partition("=")[0] in known)]

    return [*choices, *values(base), *arm.overrides, *values(shared)]


def _chooses(override: str) -> bool:
    """Whether an override chooses an option of a group rather than setting a value."""
    return "." not in override.partition("=")[0]


def _evaluation(composed: dict[str, Any], ablation: Ablation, arm: Arm, metric: Metric, quick: bool) -> dict[str, Any]:
    own = ablation.evaluation
    start = own if "_target_" in own else {**composed, **own}
    return {**start, **(ablation.quick.evaluation if quick else {}), **metric.evaluation, **arm.evaluation}


@dataclass(frozen=True)
class Estimate:
    """What running a plan would take.

    Attributes:
        trials: Trials in all.
        stored: Trials that are in the store already.
        fits: Policies that must be trained.
        seconds: Estimated time on one core, from stored fits of the same learner and steps; None where there are none.
    """

    trials: int
    stored: int
    fits: int
    seconds: float | None


def estimate(plan: Plan, store: Store) -> Estimate:
    """Estimates what running a plan would take, from what is in the store."""
    groups = plan.groups(store)
    missing = [group[0] for group in groups if not store.fit_dir(group[0].fit_hash).is_dir()]
    spent: dict[str, list[float]] = {}
    for path in (store.root / "fits").iterdir():
        entry = store.check_fit(path.name)
        spent.setdefault(_learner(entry["config"]["agent"]), []).append(entry["seconds"])
    known = [spent.get(_learner(trial.agent)) for trial in missing]
    seconds = sum(sum(times) / len(times) for times in known if times) if all(known) else None
    left = sum(map(len, groups))
    return Estimate(len(plan.distinct), len(plan.distinct) - left, len(missing), seconds)


def _learner(agent: dict[str, Any]) -> str:
    """Learners that take about equally long: the same one, for the same number of steps."""
    return f"{agent['_target_']} {agent.get('steps')}"
