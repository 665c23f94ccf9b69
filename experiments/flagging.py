"""How well the memory-conflict flag of section 6.2 finds readings that do harm.

The flag looks at what the reader thinks of its own answer (U_self); whether a reading did harm is judged by the
reference answer (U_ref) or by what the passages state. Axes: M rows of a split, each with the reading of the unmasked
top k.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..backends.estimation.flags import CONFLICT, conflicts
from ..envs.causal_memory import CausalMemoryConfig
from ..envs.causal_memory.core import HARMFUL
from ..envs.outcomes.check import keep_all_columns
from ..envs.outcomes.table import RELATIONS, OutcomeTable
from ..policies.base import Policy
from .evaluators import split_rows
from .identification import family_folds
from .store import Records

Signal = Literal["u_self", "entropy", "u_ref", "chance", "never", "always"]
SIGNALS: tuple[str, ...] = get_args(Signal)


@dataclass(frozen=True)
class ConflictFlags:
    """Flags readings whose step utility is low, and counts how many of the flagged ones did harm.

    Step utility is here the signal after reading minus that without memory. A reading **did harm** where it cost more
    than ``margin`` of the reference answer's log-probability against no memory at all; it **misled** where a passage
    that was read contradicts the answer or is stale, and none that states it was read.

    Attributes:
        signal: ``u_self``, as published; ``entropy``, its rise, with the sign turned; ``u_ref``, which no running
            system has, for the ceiling; ``chance``, a draw; ``never``; ``always``.
        threshold: A step is flagged below it, nats a token; -0.2 is published.
        rate: Share of steps that ``chance`` flags.
        calibrated: Take instead the threshold that tells harm best (recall minus false alarms) on other families.
        split: Rows that are looked at.
        margin: Nats; the source's dead zone of step utility is (-0.1, 0].
        folds: Folds of families, where calibrated.
    """

    signal: Signal = "u_self"
    threshold: float = CONFLICT
    rate: float = 0.5
    calibrated: bool = False
    split: str = "all"
    margin: float = 0.1
    folds: int = 3

    def __post_init__(self) -> None:
        if self.signal not in SIGNALS:
            raise ValueError(f"signal must be one of {', '.join(SIGNALS)}; got {self.signal!r}")
        if self.threshold > 0 or not 0 <= self.rate <= 1:
            raise ValueError(
                f"expected a threshold of at most 0 and a rate in [0, 1], got {self.threshold} and {self.rate}"
            )

    def __call__(
        self, policy: Policy, env_config: CausalMemoryConfig, replay: CausalMemoryConfig | None, seed: int
    ) -> Records:
        """Returns counts of each row, (M,); the policy and the replay play no part."""
        table = env_config.load_table()
        rows = split_rows(table, self.split)
        columns = keep_all_columns(table)[rows]
        family = table.family[rows // table.conditions]
        harmed = step_utility(table.u_ref, rows, columns) < -self.margin
        utility = self._signal(table, rows, columns, np.random.default_rng(seed))
        if self.calibrated:
            threshold = np.empty(len(rows))
            fold = family_folds(family, self.folds)
            for k in range(self.folds):
                threshold[fold == k] = best_threshold(utility[fold != k], harmed[fold != k])
        else:
            threshold = np.full(len(rows), self.threshold)
        flagged = conflicts(utility - threshold, 0.0)
        return {
            "row": rows,
            "family": family,
            "flagged": flagged,
            "harmed": harmed,
            "true_flags": flagged & harmed,
            "informedness": informedness(flagged, harmed),
            "informedness_misled": informedness(flagged, misled(table, rows, columns)),
            "informedness_wrong": informedness(flagged, table.exact_match[rows, columns] == 0),
        }

    def _signal(
        self, table: OutcomeTable, rows: NDArray[np.int64], columns: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        if self.signal == "u_self":
            return step_utility(table.u_self, rows, columns)
        if self.signal == "u_ref":
            return step_utility(table.u_ref, rows, columns)
        if self.signal == "entropy":
            return -step_utility(table.entropy, rows, columns)
        drawn = {"chance": self.rate, "never": 0.0, "always": 1.0}[self.signal]
        return np.where(rng.random(len(rows)) < drawn, -np.inf, np.inf)


def step_utility(
    outcome: NDArray[np.float32], rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Returns what reading did to an outcome against no memory, (M,); column 0 of a table is the empty set."""
    return outcome[rows, columns].astype(np.float64) - outcome[rows, 0]


def misled(table: OutcomeTable, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Returns (M,) whether something contradicting or stale was read, and nothing that states the answer."""
    read = table.sets[columns]  # (M, N)
    relation = table.relation[rows]
    harmful = np.isin(relation, [RELATIONS.index(name) for name in HARMFUL])
    states = np.isin(relation, [RELATIONS.index(name) for name in ("gold", "equivalent")])
    wrong, right = (np.asarray((read & part).any(1), dtype=np.bool_) for part in (harmful, states))
    return wrong & ~right


def informedness(flagged: NDArray[np.bool_], label: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Returns each row's part of recall minus false-alarm rate (Youden's J), (M,); its mean is J.

    J is 0 for flags that do not look, however many, so that neither never nor always flagging can win; and 0 where all
    rows have the label or none has, as there is nothing to tell apart.
    """
    positive = label.mean()
    if not 0 < positive < 1:
        return np.zeros(len(label))
    weight: NDArray[np.float64] = np.where(label, 1 / positive, -1 / (1 - positive))
    return weight * flagged


def best_threshold(utility: NDArray[np.float64], label: NDArray[np.bool_]) -> float:
    """Returns the threshold below which flagging has the largest J on these rows (the lowest such one)."""
    order = np.unique(utility)  # sorted; the lowest flags nothing
    gains = [informedness(conflicts(utility, candidate), label).mean() for candidate in order]
    return float(order[int(np.argmax(gains))])
