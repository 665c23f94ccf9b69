"""What step utilities set off: the memory-conflict flag, the review queue, and how good such flags are.

Positive utility is good, so that flags look for low ones. Axes: M steps, B queries, k hits.
"""

from bisect import insort
from collections.abc import Mapping
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .effects import LEVEL

Bools = NDArray[np.bool_]
CONFLICT = -0.2
"""Step utility below which a memory conflict is flagged: published (causal memory, section 6.2)."""
REVIEW = -0.3
"""Step utility below which a wrong answer goes to an expert: published (causal memory, section 4.3)."""


class FlagQuality(NamedTuple):
    """How flags meet labels. Intervals are Wilson's, at 95%; [0, 1] and a NaN estimate where nothing was counted.

    They take steps to be independent: over steps of few families or sessions, resample those instead.

    Attributes:
        precision: Share of the flagged that have the label.
        precision_interval: Lower and upper end.
        recall: Share of the labelled that are flagged.
        recall_interval: Lower and upper end.
        flagged: Number of flags.
        labelled: Number of labels.
        both: Number of flags with the label.
    """

    precision: float
    precision_interval: tuple[float, float]
    recall: float
    recall_interval: tuple[float, float]
    flagged: int
    labelled: int
    both: int


def conflicts(utility: ArrayLike, threshold: float = CONFLICT) -> Bools:
    """Flags memory conflicts: steps whose utility lies strictly below the threshold.

    Args:
        utility: (M,) step utilities, nats a token. NaN, where there was no outcome, says nothing and is not flagged; a
            label of such a step then counts as missed in :func:`flag_quality`.
        threshold: -0.2 is published.

    Returns:
        (M,) bool.
    """
    return np.asarray(np.asarray(utility, dtype=np.float64) < threshold, dtype=np.bool_)


def needs_review(utility: ArrayLike, wrong: ArrayLike, threshold: float = REVIEW) -> Bools:
    """Says which steps go to an expert: utility strictly below the threshold, and the answer marked as wrong.

    Args:
        utility: (M,) step utilities; NaN is never reviewed on its own account.
        wrong: (M,) bool, or one for all: ``True`` where nobody marks answers.
        threshold: -0.3 is published.

    Returns:
        (M,) bool.
    """
    return conflicts(utility, threshold) & np.asarray(wrong, dtype=np.bool_)


def top_1_disagreement(ids: ArrayLike, other: ArrayLike) -> Bools:
    """Says for which queries two retrievers put different documents first; only then does a person look at a fallback.

    Args:
        ids: (B, k) integer ids of one retriever, best first, or (B,) the best alone; -1 where nothing was found.
        other: The same of another retriever over the same documents; k may differ.

    Returns:
        (B,) bool. One that found nothing disagrees with one that did; two that found nothing agree.

    Raises:
        ValueError: The queries are not the same in number, k is 0, or ids are not integers.

    Source: causal memory, section 5.2: the fallback's best against the main retriever's.
    """
    first, second = np.asarray(ids), np.asarray(other)
    for given in (first, second):
        if given.dtype.kind not in "iu" or given.ndim not in (1, 2) or given.shape[1:] == (0,):
            raise ValueError(f"expected integer ids (B,) or (B, k) with k >= 1, got {given.dtype} {given.shape}")
    if len(first) != len(second):
        raise ValueError(f"expected hits for the same queries, got {len(first)} and {len(second)}")
    best, best_of_other = (given[:, 0] if given.ndim == 2 else given for given in (first, second))
    differ: Bools = best != best_of_other
    return differ


def flag_quality(flags: ArrayLike, labels: ArrayLike) -> FlagQuality:
    """Counts flags (M,) against labels (M,), both bool.

    Raises:
        ValueError: The shapes differ, or one is not of booleans (a utility or a NaN label would count as true).
    """
    flagged, labelled = np.asarray(flags), np.asarray(labels)
    if flagged.shape != labelled.shape or flagged.ndim != 1 or not flagged.dtype == labelled.dtype == np.bool_:
        raise ValueError(
            f"expected bool flags (M,) and labels (M,), got {flagged.dtype} {flagged.shape} and "
            f"{labelled.dtype} {labelled.shape}; compare with a threshold first, and leave unlabelled steps out"
        )
    raised, positive, both = int(flagged.sum()), int(labelled.sum()), int((flagged & labelled).sum())
    precision = both / raised if raised else np.nan
    recall = both / positive if positive else np.nan
    return FlagQuality(precision, wilson(both, raised), recall, wilson(both, positive), raised, positive, both)


def wilson(successes: int, trials: int, level: float = LEVEL) -> tuple[float, float]:
    """Interval of a proportion; (0, 1) without trials.

    Source: Wilson 1927; Brown, Cai & DasGupta 2001 recommend it for few trials.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"expected 0 <= successes <= trials, got {successes} of {trials}")
    if not trials:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + level) / 2)
    share, weight = successes / trials, z**2 / trials
    centre = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * np.sqrt(share * (1 - share) / trials + weight / (4 * trials))
    return max(float(centre - half), 0.0), min(float(centre + half), 1.0)


class ReviewQueue:
    """Steps that wait for an expert, lowest utility first, equal ones by arrival. Keeps the lowest.

    Args:
        capacity: Most that wait. Beyond it the one with the highest utility falls out, of equal ones the latest.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"expected a capacity of at least 1, got {capacity}")
        self.capacity = capacity
        self._arrived = 0
        self._waiting: list[tuple[float, int, str]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def waiting(self) -> list[str]:
        """Names of the steps that wait, the next one first."""
        return [name for _, _, name in self._waiting]

    def push(self, name: str, utility: float) -> str | None:
        """Adds a step and returns the name of the one that fell out: an earlier one, this one, or None.

        Raises:
            ValueError: The utility is NaN, which has no place in an order.
        """
        if np.isnan(utility):
            raise ValueError(f"step {name!r} has utility NaN; push only what needs_review() selects")
        insort(self._waiting, (float(utility), self._arrived, name))
        self._arrived += 1
        return self._waiting.pop()[2] if len(self._waiting) > self.capacity else None

    def pop(self) -> str:
        """Takes the step with the lowest utility.

        Raises:
            IndexError: Nothing waits.
        """
        return self._waiting.pop(0)[2]

    def get_state(self) -> dict[str, Any]:
        """Returns all that the future depends on, as plain numbers and names."""
        return {"capacity": self.capacity, "arrived": self._arrived, "waiting": [list(step) for step in self._waiting]}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continues from a state of a queue of the same capacity.

        Raises:
            ValueError: The state is of another capacity.
        """
        if state["capacity"] != self.capacity:
            raise ValueError(f"the state is of a queue of {state['capacity']}, this one holds {self.capacity}")
        self._arrived = int(state["arrived"])
        self._waiting = [(float(utility), int(arrived), str(name)) for utility, arrived, name in state["waiting"]]
