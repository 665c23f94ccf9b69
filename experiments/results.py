"""From finished trials to a table: scores, intervals, tests, instrument checks and the verdict, as plain data.

The table's JSON is an interface; ``tables`` and ``figures`` render it and need nothing else.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .ablation import Metric
from .instruments import INSTRUMENTS, Check, Evidence
from .metrics import measure
from .plan import Plan
from .statistics import (
    Interval,
    Scores,
    arm_interval,
    holm,
    interquartile_mean,
    paired_interval,
    paired_test,
    scores_from_units,
    smallest_p,
    units_needed,
)
from .store import Records, Store
from .trial import identity, load_table
from .verdicts import Contrast, Verdict, claimed, explain, judge

BOOTSTRAP_SEED = 0  # of every interval and test, so that a table is a function of its trials
FEW_QUESTIONS = 10  # families below this are named apart: their clusters weigh little and vary much


class Evaluations:
    """The records of a plan's trials, as scores.

    Args:
        plan: The plan; all of its trials are in the store.
        store: The trial store.

    Raises:
        StoreError: A trial is missing or damaged.
    """

    def __init__(self, plan: Plan, store: Store) -> None:
        self.plan = plan
        self.table = load_table(plan.env)
        finished = {trial.hash: store.read_trial(trial.hash) for trial in plan.distinct}
        self._records = {trial: found.records for trial, found in finished.items()}
        self._results = [found.result for found in finished.values()]

    def records(self, metric: str, arm: str) -> list[Records]:
        """Returns the records that a metric of an arm is computed from, one for each seed."""
        return [self._records[self.plan.trials[metric, arm, seed].hash] for seed in self.plan.seeds]

    def cost(self) -> dict[str, Any]:
        """Returns what the trials took, whenever they ran, and what had gone into the outcome table before."""
        fits = {result["fit"]: result for result in self._results}.values()
        trained = [result for result in fits if result["steps"]]
        return {
            "policies_trained": len(trained),
            "environment_steps": sum(result["steps"] for result in trained),
            "training_s": round(sum(result["seconds"]["fit"] for result in trained), 1),
            "evaluation_s": round(sum(result["seconds"]["evaluate"] for result in self._results), 1),
            "reader_calls": sum(result["reader_calls"] for result in self._results),
            "tokens_shown": sum(result["tokens_shown"] for result in self._results),
            "table_reader_calls": self.table.meta.get("reader_calls", 0),  # a toy table is computed: it has neither
            "table_s": self.table.meta.get("seconds", 0.0),
        }

    def scores(self, metric: Metric, arm: str, units: NDArray[np.bool_] | None = None) -> Scores:
        """Returns the scores of an arm.

        Args:
            metric: A metric of the ablation.
            arm: Name of the arm.
            units: (units,) which to count; all by default.

        Raises:
            ValueError: The arm was asked other questions than the first arm.
        """
        first = self.records(metric.name, next(iter(self.plan.ablation.arms)))[0]
        sums = []
        for seed, records in zip(self.plan.seeds, self.records(metric.name, arm), strict=True):
            if not np.array_equal(records["row"], first["row"]):
                raise ValueError(f"{arm}, seed {seed}, was asked other questions than the first arm: nothing is paired")
            sums.append(measure(metric.measure, records))
        numerator, denominator = (np.stack(part) for part in zip(*sums, strict=True))  # (seeds, units)
        counted = np.ones(numerator.shape[1], dtype=bool) if units is None else units
        return scores_from_units(
            numerator[:, counted],
            denominator[:, counted],
            first["family"].ravel()[counted],
            self.plan.seeds,
            self.table.meta["families"],
        )

    def questions(self, metric: Metric) -> dict[str, int]:
        """Returns how many different questions of each family were asked."""
        first = self.records(metric.name, next(iter(self.plan.ablation.arms)))[0]
        asked = np.unique(first["row"] // self.table.conditions)
        names, counts = np.unique(self.table.family[asked], return_counts=True)
        return {self.table.meta["families"][name]: int(count) for name, count in zip(names, counts, strict=True)}

    def strata(self, metric: Metric) -> dict[str, NDArray[np.bool_]]:
        """Returns which units belong to each stratum of the table, condition and noise."""
        first = self.records(metric.name, next(iter(self.plan.ablation.arms)))[0]
        table, row = self.table, first["row"].ravel()
        found = {str(name): np.asarray(table.strata[row, i]) for i, name in enumerate(table.meta["strata"])}
        found |= {f"condition: {name}": row % table.conditions == i for i, name in enumerate(table.meta["conditions"])}
        if "noise" in first:
            found |= {f"noise: {name}": first["noise"].ravel() == i for i, name in enumerate(table.meta["noises"])}
        return found


def compute(plan: Plan, store: Store, command: str, duration_s: float) -> dict[str, Any]:
    """Returns the table of an ablation whose trials are all stored.

    Args:
        plan: The plan.
        store: The trial store.
        command: The command that makes this table.
        duration_s: Time that it took.

    Raises:
        StoreError: A trial is missing or damaged.
    """
    ablation, evaluations = plan.ablation, Evaluations(plan, store)
    metric = ablation.metric
    # Only the primary metric is tested: the others have intervals, and would cost its tests their power under Holm.
    parts = [_metric(evaluations, each, tested=each is metric) for each in ablation.metrics]
    _adjust(parts[0]["comparisons"])
    checks = _checks(evaluations)
    a, b = (evaluations.scores(metric, arm) for arm in (ablation.primary.a, ablation.primary.b))
    contrast = Contrast(
        claimed(_finite(paired_interval(a, b, _rng()), ablation.primary.a), metric.direction),
        ablation.delta,
        ablation.effect_reported,
    )
    passed = all(check.passed for check in checks)
    verdict = judge(contrast, by_construction=metric.by_construction, instruments_passed=passed)
    questions = evaluations.questions(metric)
    sentence = explain(
        verdict,
        contrast,
        metric.unit,
        needed=units_needed(a, b, ablation.delta, _rng()) if verdict is Verdict.INCONCLUSIVE else None,
        per_cluster=sum(questions.values()) / len(questions),
        measured="; ".join(str(check) for check in checks if not check.passed),
    )
    primary, secondary = parts[0], parts[1:]
    return {
        "name": ablation.name,
        "claim": ablation.claim,
        "statement": ablation.statement,
        **primary,
        "primary": {"a": ablation.primary.a, "b": ablation.primary.b, "effect_reported": ablation.effect_reported},
        "delta": ablation.delta,
        "instrument": {"passed": passed, "checks": [_check(check) for check in checks]},
        "verdict": str(verdict),
        "explanation": sentence,
        "secondary": secondary,
        "strata": _strata(evaluations, ablation.primary.a, ablation.primary.b),
        "families": _families(a, b, questions),
        "notes": [*ablation.notes, *_warnings(a, questions, parts)],
        "seeds": plan.seeds,
        "fingerprints": {
            "table": evaluations.table.fingerprint,
            "trials": identity(sorted(trial.hash for trial in plan.distinct)),
        },
        "cost": evaluations.cost(),
        "command": command,
        "duration_s": round(duration_s, 1),
    }


def _metric(evaluations: Evaluations, metric: Metric, tested: bool) -> dict[str, Any]:
    """Arms and comparisons of one metric."""
    ablation = evaluations.plan.ablation
    scores = {name: evaluations.scores(metric, name) for name in ablation.arms}
    arms = []
    for name, arm in ablation.arms.items():
        interval = _interval(scores[name])
        arms.append(
            {
                "name": name,
                "label": arm.label or name.replace("_", " "),
                "role": arm.role,
                "n": len(scores[name].seeds),
                "iqm": _number(interval.estimate),
                "mean": _number(float(scores[name].per_seed.mean())),
                "ci_low": _number(interval.low),
                "ci_high": _number(interval.high),
                "reported": metric.reported.get(name),
            }
        )
    return {
        "metric": metric.name,
        "definition": {
            "numerator": metric.definition.numerator,
            "denominator": metric.definition.denominator,
            "label": metric.definition.label,
        },
        "unit": metric.unit,
        "direction": metric.direction,
        "verdict": str(Verdict.BY_DEFINITION) if metric.by_construction else None,
        "curve": None if metric.at is None else {"measure": metric.measure, "at": metric.at},
        "arms": arms,
        "comparisons": [
            # the p of a definition would mean nothing
            _compare(scores, pair.a, pair.b, tested and not metric.by_construction)
            for pair in ablation.contrasts
        ],
    }


def _compare(scores: Mapping[str, Scores], a: str, b: str, tested: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {"a": a, "b": b, "difference": None, "ci_low": None, "ci_high": None, "p": None}
    if all(_defined(scores[arm]) for arm in (a, b)):
        difference = paired_interval(scores[a], scores[b], _rng())
        entry |= dict(zip(("difference", "ci_low", "ci_high"), map(_number, difference), strict=True))
        if tested:
            test = paired_test(scores[a], scores[b], _rng())
            entry |= {"p": test.p, "p_seeds": test.over_seeds, "p_clusters": test.over_clusters}
    return {**entry, "p_holm": None}


def _adjust(comparisons: Sequence[dict[str, Any]]) -> None:
    """Sets Holm's p of the tested comparisons."""
    tested = [comparison for comparison in comparisons if comparison["p"] is not None]
    for comparison, p in zip(tested, holm([comparison["p"] for comparison in tested]), strict=True):
        comparison["p_holm"] = p


def _checks(evaluations: Evaluations) -> list[Check]:
    ablation = evaluations.plan.ablation
    by_measure = {metric.measure: metric for metric in reversed(ablation.metrics)}
    evidence = Evidence(
        table=evaluations.table,
        split=evaluations.plan.split,
        scores=lambda name, arm: evaluations.scores(by_measure[name], arm),
        direction=ablation.metric.direction,
        metric=ablation.metric.measure,
        control=None if ablation.control is None else (ablation.control.a, ablation.control.b),
        primary=(ablation.primary.a, ablation.primary.b),
    )
    return [INSTRUMENTS[name](evidence) for name in ablation.instrument]


def _strata(evaluations: Evaluations, a: str, b: str) -> list[dict[str, Any]]:
    """The primary contrast within each stratum: to look at, not tested."""
    metric = evaluations.plan.ablation.metric
    found = []
    for name, units in evaluations.strata(metric).items():
        if not units.any():
            continue
        x, y = (evaluations.scores(metric, arm, units) for arm in (a, b))
        if _defined(x) and _defined(y):
            difference, low, high = map(_number, paired_interval(x, y, _rng()))
            share = _number(float(units.mean()))
            found.append({"name": name, "share": share, "difference": difference, "ci_low": low, "ci_high": high})
    return found


def _families(a: Scores, b: Scores, questions: Mapping[str, int]) -> list[dict[str, Any]]:
    """The primary contrast within each family."""
    found = []
    for i, name in enumerate(a.clusters):
        parts = [Scores(s.numerator[:, [i]], s.denominator[:, [i]], s.seeds, (name,)) for s in (a, b)]
        difference = float(np.subtract(*[interquartile_mean(part.per_seed) for part in parts]))
        found.append({"name": name, "questions": questions[name], "difference": _number(difference)})
    return found


def _warnings(scores: Scores, questions: Mapping[str, int], parts: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a reader must know about the power of the tests."""
    said = []
    tested = sum(comparison["p"] is not None for part in parts for comparison in part["comparisons"])
    for levels, axis in ((len(scores.seeds), "seeds"), (len(scores.clusters), "families")):
        if levels < 2:
            said.append(f"With {levels} of the {axis} there is no test, and no part in the intervals, over {axis}.")
        elif smallest_p(levels) > 0.05:
            said.append(
                f"With {levels} {axis} no test over {axis} can reach 0.05: the smallest p is {smallest_p(levels):.3g}."
            )
        elif smallest_p(levels) * tested > 0.05:
            said.append(
                f"With {levels} {axis} and {tested} comparisons no p can be below 0.05 after Holm's correction: "
                f"the smallest is {min(1.0, smallest_p(levels) * tested):.3g}."
            )
    few = [name for name, count in questions.items() if count < FEW_QUESTIONS]
    if few:
        said.append(f"Families with fewer than {FEW_QUESTIONS} questions: {', '.join(few)}.")
    return said


def _interval(scores: Scores) -> Interval:
    return arm_interval(scores, _rng()) if _defined(scores) else Interval(math.nan, math.nan, math.nan)


def _defined(scores: Scores) -> bool:
    return bool(np.isfinite(scores.per_seed).all())


def _finite(interval: Interval, arm: str) -> Interval:
    if not np.isfinite(interval).all():
        raise ValueError(
            f"the primary metric is undefined for {arm} or the arm that it is compared with: nothing counted"
        )
    return interval


def _check(check: Check) -> dict[str, Any]:
    value, low, high = map(_number, check.measured)
    return {
        "name": check.name,
        "passed": check.passed,
        "value": value,
        "ci_low": low,
        "ci_high": high,
        "required": check.required,
        "note": check.note,
    }


def _number(value: float) -> float | None:
    """Six digits: what is beyond differs between machines. JSON has no NaN."""
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _rng() -> np.random.Generator:
    return np.random.default_rng(BOOTSTRAP_SEED)
