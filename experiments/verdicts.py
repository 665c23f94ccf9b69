"""Verdicts: what a primary contrast says about a published claim, in seven words that mean one thing each.

The rules are tried in this order and the first that holds is the verdict, so that every contrast has exactly one:

===================== ==========================================================================================
holds by definition   true by construction of the arms
cannot be tested here an instrument check failed
reproduced            interval in the claimed direction, beyond delta, and reaching half the published effect
equivalent            interval within +- delta
same direction        interval excludes 0 in the claimed direction
opposite              interval excludes 0 the other way
inconclusive          none of these
===================== ==========================================================================================

Equivalent comes before the two directions: an interval that excludes 0 but lies within the smallest difference of
interest shows a difference that, by the ablation's own word, is of no interest. The sentence names its direction.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

from .statistics import Interval, Needed


class Verdict(StrEnum):
    """The seven verdicts."""

    REPRODUCED = "reproduced"
    SAME_DIRECTION = "same direction"
    EQUIVALENT = "equivalent"
    OPPOSITE = "opposite"
    INCONCLUSIVE = "inconclusive"
    BY_DEFINITION = "holds by definition"
    UNTESTABLE = "cannot be tested here"


@dataclass(frozen=True)
class Contrast:
    """The primary contrast, turned so that positive means as claimed.

    Attributes:
        interval: Effect in the claimed direction with its interval, in the metric's unit.
        delta: Smallest difference of interest, >= 0, in the same unit.
        published: Published effect in the claimed direction, > 0; None where the source gives none for this metric.
    """

    interval: Interval
    delta: float
    published: float | None = None

    def __post_init__(self) -> None:
        low, estimate, high = self.interval.low, self.interval.estimate, self.interval.high
        if not (math.isfinite(low) and math.isfinite(high) and low <= estimate <= high):
            raise ValueError(f"an interval needs finite low <= estimate <= high, got {low}, {estimate}, {high}")
        if not self.delta >= 0:
            raise ValueError(f"delta must be >= 0, got {self.delta}")
        if self.published is not None and not self.published > 0:
            raise ValueError(f"a published effect is positive in the claimed direction, got {self.published}")


def claimed(difference: Interval, direction: str) -> Interval:
    """Turns a difference a - b, where the claim is that a is better, into an effect that is positive as claimed.

    Args:
        difference: a - b of the metric.
        direction: ``higher`` or ``lower``: which values of the metric are better.
    """
    if direction == "higher":
        return difference
    if direction == "lower":
        return Interval(-difference.estimate, -difference.high, -difference.low)
    raise ValueError(f"direction must be higher or lower, got {direction!r}")


def judge(contrast: Contrast, *, by_construction: bool = False, instruments_passed: bool = True) -> Verdict:
    """Returns the verdict on a contrast.

    Args:
        contrast: The effect with its interval, delta and the published effect.
        by_construction: The arms differ in this metric by their definition, so that measuring proves nothing.
        instruments_passed: Whether every positive control of the claim passed.
    """
    low, high = contrast.interval.low, contrast.interval.high
    if by_construction:
        return Verdict.BY_DEFINITION
    if not instruments_passed:
        return Verdict.UNTESTABLE
    # Without a published effect there is no figure to reproduce; the most that can be said is the direction.
    if low > contrast.delta and contrast.published is not None and high >= contrast.published / 2:
        return Verdict.REPRODUCED
    if -contrast.delta < low and high < contrast.delta:
        return Verdict.EQUIVALENT
    if low > 0:
        return Verdict.SAME_DIRECTION
    if high < 0:
        return Verdict.OPPOSITE
    return Verdict.INCONCLUSIVE


def explain(
    verdict: Verdict,
    contrast: Contrast,
    unit: str,
    *,
    needed: Needed | None = None,
    per_cluster: float | None = None,
    measured: str = "",
) -> str:
    """Says in one sentence why the verdict is what it is.

    Args:
        verdict: What :func:`judge` returned.
        contrast: What it was given.
        unit: Unit of the metric.
        needed: For an inconclusive contrast, what would decide.
        per_cluster: Questions in a cluster, on average, to say it in questions too.
        measured: For one that cannot be tested, the failed checks with their measured figures.
    """
    e = contrast.interval
    effect = f"{e.estimate:+.3g} [{e.low:+.3g}, {e.high:+.3g}] {unit} (positive: as claimed)"
    if verdict is Verdict.BY_DEFINITION:
        return f"true by construction; {effect}. Look at what it costs in the other metrics"
    if verdict is Verdict.UNTESTABLE:
        return f"the instrument check failed: {measured}"
    if verdict is Verdict.REPRODUCED:
        return f"{effect}, beyond {contrast.delta:g} and reaching half the published {contrast.published:g}"
    if verdict is Verdict.EQUIVALENT:
        side = ", though it excludes 0" if e.low > 0 or e.high < 0 else ""
        return f"{effect}, within ±{contrast.delta:g}{side}"
    if verdict is Verdict.SAME_DIRECTION:
        return f"{effect}; {_shortfall(contrast)}"
    if verdict is Verdict.OPPOSITE:
        return f"{effect}; the interval excludes 0 the other way"
    return f"{effect}; undecided. {_would_decide(needed, per_cluster)}"


def _shortfall(contrast: Contrast) -> str:
    if contrast.interval.low <= contrast.delta:
        return f"not surely beyond {contrast.delta:g}"
    if contrast.published is None:
        return "no effect is published for this metric"
    return f"not reaching half the published {contrast.published:g}"


def _would_decide(needed: Needed | None, per_cluster: float | None) -> str:
    ways = []
    if needed is not None and needed.seeds is not None:
        ways.append(f"{needed.seeds} seeds")
    if needed is not None and needed.clusters is not None:
        questions = "" if per_cluster is None else f" (some {needed.clusters * per_cluster:.0f} questions)"
        ways.append(f"{needed.clusters} clusters{questions}")
    if not ways:
        return "Neither more seeds nor more questions alone would decide it at this difference"
    return f"If the difference stays as it is, about {' or '.join(ways)} in all would decide it"
