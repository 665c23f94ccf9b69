"""Instrument checks: positive controls that must pass before a claim is judged.

A reader that cannot use the right passage, or a gate that judges no better than a constant, must not "show" that a
method makes no difference. Each check returns what it measured, so that "cannot be tested here" comes with a figure.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..backends.interventions.scores import top_k
from ..backends.interventions.sets import bit_codes
from ..envs.outcomes.table import RELATIONS, OutcomeTable
from .evaluators import split_rows
from .statistics import Interval, Scores, arm_interval, paired_interval, scores_from_units
from .verdicts import claimed

HEADROOM = 0.1  # nats: the source's own dead zone of step utility, (-0.1, 0]
CHANCE = 0.5  # AUROC of a judge that knows nothing
HARM = 0.02  # share of readings: below it there is next to nothing to find
RECOGNISABLE = 0.5  # share of noised queries that are still nearest to their own question


@dataclass(frozen=True)
class Check:
    """Outcome of an instrument check.

    Attributes:
        name: Name of the check.
        passed: Whether the instrument works.
        measured: What was measured, with its interval.
        required: What would pass.
        note: Further figures.
    """

    name: str
    passed: bool
    measured: Interval
    required: str
    note: str = ""

    def __str__(self) -> str:
        value, low, high = self.measured
        note = f" ({self.note})" if self.note else ""
        return f"{self.name}: {value:.3g} [{low:.3g}, {high:.3g}], {self.required} is required{note}"


@dataclass(frozen=True)
class Evidence:
    """What the checks may look at.

    Attributes:
        table: Outcome table of the ablation.
        split: Split that the arms are judged on.
        scores: Scores of an arm by a measure.
        direction: Which values of the primary metric are better.
        metric: Name of the primary metric's measure.
        control: The control arm and the arm that it must beat, where the ablation names them.
        primary: The arms of the primary contrast.
    """

    table: OutcomeTable
    split: str
    scores: Callable[[str, str], Scores]
    direction: str
    metric: str
    control: tuple[str, str] | None
    primary: tuple[str, str]


def reader_gold(evidence: Evidence) -> Check:
    """The reader gives the reference answer more probability with the gold passage alone than with nothing."""
    table = evidence.table
    rows = split_rows(table, evidence.split)
    gold = table.relation[rows] == RELATIONS.index("gold")  # (M, N)
    rows, gold = rows[gold.any(1)], gold[gold.any(1)]
    if not len(rows):
        return Check("reader_gold", False, Interval(0.0, 0.0, 0.0), "a gold passage in some pool", "there is none")
    alone = table.lookup[1 << gold.argmax(1)]  # (M,) column of the set of the first gold passage
    gain = table.u_ref[rows, alone].astype(np.float64) - table.u_ref[rows, 0]
    measured = _mean(table, rows, gain)
    right = [float(table.exact_match[rows, column].mean()) for column in (alone, np.zeros_like(alone))]
    note = f"U_ref with gold minus without, {len(rows)} rows; exact match {right[0]:.3f} with, {right[1]:.3f} without"
    return Check("reader_gold", measured.low > 0, measured, "an interval above 0 nats", note)


def headroom(evidence: Evidence) -> Check:
    """The best reading set of a row beats the unmasked one by more than the source's dead zone of utility."""
    table = evidence.table
    rows = split_rows(table, evidence.split)
    keep_all = table.lookup[bit_codes(top_k(table.scores[rows, :, 0], table.budget))]  # (M,)
    gain = table.u_ref[rows].max(1).astype(np.float64) - table.u_ref[rows, keep_all]
    measured = _mean(table, rows, gain)
    return Check(
        "headroom",
        measured.low > HEADROOM,
        measured,
        f"an interval above {HEADROOM} nats",
        "U_ref, oracle minus keep-all",
    )


def latent(evidence: Evidence) -> Check:
    """A control that sees the hidden condition beats the arm that cannot: there is something for feedback to reveal."""
    return _control("latent", evidence)


def learnable(evidence: Evidence) -> Check:
    """A control that learns from what no running system has beats the arm that does not learn: there is something."""
    return _control("learnable", evidence)


def _control(name: str, evidence: Evidence) -> Check:
    if evidence.control is None:
        raise ValueError(f"the {name} check needs a control arm and an arm that it must beat")
    a, b = evidence.control
    better, worse = (evidence.scores(evidence.metric, arm) for arm in (a, b))
    measured = claimed(paired_interval(better, worse, np.random.default_rng(0)), evidence.direction)
    return Check(name, measured.low > 0, measured, "an interval above 0", f"{a} - {b}, positive is better")


def noise(evidence: Evidence) -> Check:
    """The noised queries moved, and most are still nearest to the question that they came from."""
    table = evidence.table
    questions = table.question_ids(evidence.split)
    clean = _unit(table.query[questions].astype(np.float64))  # (M, d)
    noised = _unit(table.noised[:, questions].astype(np.float64))  # (V, M, d)
    cosine = (noised * clean).sum(-1)  # (V, M)
    own = (noised @ clean.T).argmax(-1) == np.arange(len(questions))  # (V, M)
    measured = _mean(table, questions * table.conditions, own.mean(0))
    passed = measured.low > RECOGNISABLE and float(cosine.mean()) < 1 - 1e-3
    note = f"share of noised queries nearest to their own question; mean cosine with it {cosine.mean():.3f}"
    return Check("noise", passed, measured, f"an interval above {RECOGNISABLE} and a mean cosine below 0.999", note)


def judgement(evidence: Evidence) -> Check:
    """On clean queries both arms of the contrast order a pool's helpful and harmful candidates better than chance.

    A gate that judges at chance has nothing that noise could spoil.
    """
    rng = np.random.default_rng(0)
    measured = [(arm_interval(evidence.scores("clean_auroc", arm), rng), arm) for arm in evidence.primary]
    weakest, arm = min(measured, key=lambda entry: entry[0].low)
    return Check(
        "judgement", weakest.low > CHANCE, weakest, f"an interval above {CHANCE}", f"AUROC within pools, {arm}"
    )


def harm(evidence: Evidence) -> Check:
    """Some of the unmasked readings do harm: there is something for a flag to find and for a fallback to bring back."""
    table = evidence.table
    rows = split_rows(table, evidence.split)
    keep_all = table.lookup[bit_codes(top_k(table.scores[rows, :, 0], table.budget))]  # (M,)
    loss = table.u_ref[rows, 0].astype(np.float64) - table.u_ref[rows, keep_all]
    measured = _mean(table, rows, (loss > HEADROOM).astype(np.float64))
    note = f"unmasked readings with U_ref more than {HEADROOM} nats below that of no memory"
    return Check("harm", measured.low > HARM, measured, f"an interval above {HARM}", note)


INSTRUMENTS: Mapping[str, Callable[[Evidence], Check]] = {
    "reader_gold": reader_gold,
    "headroom": headroom,
    "latent": latent,
    "learnable": learnable,
    "noise": noise,
    "judgement": judgement,
    "harm": harm,
}


def _mean(table: OutcomeTable, rows: NDArray[np.int64], values: NDArray[np.float64]) -> Interval:
    """Mean over rows, with an interval over families."""
    family = table.family[rows // table.conditions]
    scores = scores_from_units(values[None], np.ones((1, len(rows))), family, (0,), table.meta["families"])
    return arm_interval(scores, np.random.default_rng(0))


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
