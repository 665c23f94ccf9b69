"""Statistics of a table: interquartile means, crossed intervals, paired tests, corrections, what would decide.

Every score is a ratio of sums (a mean is one whose denominator counts), kept per seed and per cluster, so that one
matrix product gives the score of any resample. Axes are named in :class:`Scores` because swapping seeds and clusters
goes unnoticed otherwise and yields intervals of almost no width (rliable #20).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm, t, trim_mean

Floats = NDArray[np.float64]

RESAMPLES = 4000  # the ends of a 95% interval then rest on at least 30 resamples, even widened for 10 seeds
EXACT_FLIPS = 12  # up to 2**12 sign patterns are enumerated; beyond, they are drawn
DRAWN_FLIPS = 9999  # (b + 1) / (B + 1) then has a round grid
MOST_LEVELS = 10_000  # a plan beyond this is no plan


class Interval(NamedTuple):
    """An estimate with the ends of its confidence interval."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Scores:
    """What one arm scored: a ratio of sums for each (seed, cluster).

    Attributes:
        numerator: (seeds, clusters) float64: summed over the units (questions, decisions) of the cluster.
        denominator: (seeds, clusters) float64, >= 0: the units that count.
        seeds: Names of the first axis, one a training run.
        clusters: Names of the second axis: what questions were sampled by (package family, conversation).
    """

    numerator: Floats
    denominator: Floats
    seeds: tuple[int, ...]
    clusters: tuple[str, ...]

    def __post_init__(self) -> None:
        expected = (len(self.seeds), len(self.clusters))
        for name in ("numerator", "denominator"):
            shape = getattr(self, name).shape
            if shape != expected:
                raise ValueError(f"{name} must have shape (seeds, clusters) = {expected}, got {shape}")
        if len(set(self.seeds)) != len(self.seeds) or len(set(self.clusters)) != len(self.clusters):
            raise ValueError(f"seeds and clusters must be distinct, got {self.seeds} and {self.clusters}")
        if not np.isfinite(self.numerator).all() or not np.isfinite(self.denominator).all():
            raise ValueError("scores must be finite; a trial recorded NaN or infinity")
        if (self.denominator < 0).any():
            raise ValueError("denominators count units and cannot be negative")

    @property
    def per_seed(self) -> Floats:
        """Score of each seed over all clusters, (seeds,); NaN where nothing counted."""
        return _ratio(self.numerator.sum(1), self.denominator.sum(1))


def scores_from_units(
    numerator: ArrayLike, denominator: ArrayLike, cluster: ArrayLike, seeds: Sequence[int], names: Sequence[str]
) -> Scores:
    """Sums units by cluster.

    Args:
        numerator: (seeds, units): what each unit adds to the numerator.
        denominator: (seeds, units): what it adds to the denominator.
        cluster: (units,) int: the cluster of each unit, an index into ``names``, the same for every seed.
        seeds: Names of the first axis.
        names: Names of all clusters; those without a unit are left out.

    Returns:
        Scores of shape (seeds, clusters that have units).
    """
    top, bottom = np.asarray(numerator, np.float64), np.asarray(denominator, np.float64)
    labels = np.asarray(cluster)
    if top.shape != (len(seeds), len(labels)) or bottom.shape != top.shape:
        raise ValueError(
            f"expected numerator and denominator of shape (seeds, units) = ({len(seeds)}, {len(labels)}), "
            f"got {top.shape} and {bottom.shape}"
        )
    present = np.unique(labels)
    member = (labels[:, None] == present[None, :]).astype(np.float64)  # (units, clusters)
    return Scores(top @ member, bottom @ member, tuple(seeds), tuple(names[i] for i in present))


def interquartile_mean(scores: ArrayLike, axis: int = -1) -> Any:
    """Mean of the middle half; of fewer than four scores, the mean; NaN where any score is (never trimmed away).

    Args:
        scores: Any shape, at least one score along ``axis``.
        axis: Axis that is averaged away.

    Returns:
        The same shape without ``axis``.

    Source: ``scipy.stats.trim_mean(scores, 0.25)``, as Agarwal et al. 2021 (arXiv:2108.13264) use it.
    """
    values = np.asarray(scores, np.float64)
    if values.shape[axis] == 0:
        raise ValueError("an interquartile mean needs at least one score, got none")
    return np.where(np.isnan(values).any(axis), np.nan, trim_mean(values, 0.25, axis=axis))[()]


def arm_interval(scores: Scores, rng: np.random.Generator, *, level: float = 0.95) -> Interval:
    """Interquartile mean over seeds, with a crossed bootstrap interval over seeds x clusters.

    The clusters of one arm are pooled in proportion to their units: an interquartile mean over clusters would drop
    the hardest and the easiest ones and estimate something else.
    """
    draws = _resampled(rng, len(scores.seeds), len(scores.clusters))
    return _interval(float(interquartile_mean(scores.per_seed)), _scores_of(scores, *draws), _levels(scores), level)


def paired_interval(a: Scores, b: Scores, rng: np.random.Generator, *, level: float = 0.95) -> Interval:
    """Difference a - b of two arms on the same seeds and clusters, resampled together.

    Args:
        a: Scores of the first arm.
        b: Scores of the second, with the same seeds and clusters in the same order.
        rng: Generator of the resamples.
        level: Confidence level.

    Returns:
        The difference of interquartile means and its crossed-bootstrap interval (Owen 2007, "pigeonhole").

    Raises:
        ValueError: The arms were not scored on the same seeds and clusters.
    """
    require_paired(a, b)
    draws = _resampled(rng, len(a.seeds), len(a.clusters))
    return _interval(_difference(a, b), _scores_of(a, *draws) - _scores_of(b, *draws), _levels(a), level)


def require_paired(a: Scores, b: Scores) -> None:
    """Raises unless both arms were scored on the same seeds and clusters, in the same order."""
    if a.seeds != b.seeds:
        raise ValueError(f"a paired comparison needs the same seeds, got {a.seeds} and {b.seeds}")
    if a.clusters != b.clusters:
        raise ValueError(f"a paired comparison needs the same clusters, got {a.clusters} and {b.clusters}")


class PairedTest(NamedTuple):
    """Two-sided p of swapping the arms' labels, over seeds, over clusters, and over both populations."""

    p: float
    over_seeds: float | None
    over_clusters: float | None


def paired_test(a: Scores, b: Scores, rng: np.random.Generator) -> PairedTest:
    """Tests whether the arms are exchangeable, by swapping their labels within seeds and within clusters.

    Swapping within seeds speaks for other training runs on these questions, within clusters for other questions with
    these runs. ``p`` is the larger: a difference is claimed for both populations or not at all (an
    intersection-union test). An axis with one level cannot be tested and is None. The statistic is the difference of
    means: an interquartile mean ignores a few swaps, so that no p could be as small as :func:`smallest_p` says.

    Args:
        a: Scores of the first arm.
        b: Scores of the second, on the same seeds and clusters.
        rng: Generator of drawn swaps; all are enumerated up to :data:`EXACT_FLIPS` levels.

    Returns:
        p-values in (0, 1], never 0: the identity is always among the swaps.
    """
    require_paired(a, b)
    if np.isnan(a.per_seed).any() or np.isnan(b.per_seed).any():
        raise ValueError("an arm has no score where nothing counted (a denominator of 0); there is nothing to compare")
    observed = abs(float(a.per_seed.mean() - b.per_seed.mean()))
    over_seeds = over_clusters = None
    if len(a.seeds) > 1:
        flips, drawn = _flips(len(a.seeds), rng)  # (B, seeds)
        swapped = np.where(flips, -1.0, 1.0) @ (a.per_seed - b.per_seed) / len(a.seeds)
        over_seeds = _p_value(observed, swapped, drawn)
    if len(a.clusters) > 1:
        flips, drawn = _flips(len(a.clusters), rng)  # (B, clusters)
        keep = flips.astype(np.float64)
        swapped = _mixed(a, b, keep) - _mixed(b, a, keep)
        over_clusters = _p_value(observed, swapped, drawn)
    ps = [p for p in (over_seeds, over_clusters) if p is not None]
    return PairedTest(max(ps, default=1.0), over_seeds, over_clusters)


def smallest_p(levels: int) -> float:
    """Smallest two-sided p that a sign-flip test over this many seeds or clusters can give.

    2 of the 2**n swaps (none and all) always reach the observed size: 5 levels cannot go below 0.0625.
    """
    if levels < 1:
        raise ValueError(f"a test needs at least one level, got {levels}")
    return min(1.0, 2.0 / 2**levels) if levels <= EXACT_FLIPS else 1.0 / (DRAWN_FLIPS + 1)


def holm(ps: Sequence[float]) -> list[float]:
    """Holm's step-down p-values, which hold the chance of any false claim within a table.

    Source: Holm 1979; equal to ``statsmodels.stats.multitest.multipletests(ps, method="holm")``.
    """
    values = _checked(ps)
    order = np.argsort(values, kind="stable")
    steps = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    return _back(np.minimum(steps, 1.0), order)


def benjamini_hochberg(ps: Sequence[float]) -> list[float]:
    """Benjamini-Hochberg p-values, which hold the share of false claims within a report.

    Source: Benjamini and Hochberg 1995; equal to ``scipy.stats.false_discovery_control(ps)``.
    """
    values = _checked(ps)
    order = np.argsort(values, kind="stable")
    steps = values[order] * len(values) / np.arange(1, len(values) + 1)
    return _back(np.minimum(np.minimum.accumulate(steps[::-1])[::-1], 1.0), order)


class Needed(NamedTuple):
    """Levels of one axis that would decide, the other held; None where no number of them would."""

    seeds: int | None
    clusters: int | None


def units_needed(a: Scores, b: Scores, delta: float, rng: np.random.Generator) -> Needed:
    """Estimates how many seeds, or how many clusters, would decide an inconclusive contrast.

    The bootstrap variance of the difference is split into the part that each axis brings (resampling it alone); a part
    shrinks with the levels of its axis. Decided means: if the difference stays as observed, the interval excludes 0,
    or lies within the smallest difference of interest, whichever is easier.

    Args:
        a: Scores of the first arm.
        b: Scores of the second.
        delta: Smallest difference of interest, in the metric's unit.
        rng: Generator of the resamples.

    Returns:
        Totals, not additions. An estimate from these data, to plan with, not a guarantee.
    """
    require_paired(a, b)
    estimate = abs(_difference(a, b))
    wanted = max(estimate, delta - estimate)
    seeds, clusters = len(a.seeds), len(a.clusters)
    by_seed = _variance(a, b, *_resampled(rng, seeds, clusters, axis="seeds"))
    by_cluster = _variance(a, b, *_resampled(rng, seeds, clusters, axis="clusters"))
    return Needed(
        _total(seeds, by_seed, clusters, by_cluster, wanted), _total(clusters, by_cluster, seeds, by_seed, wanted)
    )


def _total(own: int, own_variance: float, other: int, other_variance: float, wanted: float) -> int | None:
    """Fewest levels of one axis, above the present ones, that bring the half-width below ``wanted``."""
    if own < 2:
        return None
    totals = np.arange(own + 1, MOST_LEVELS)
    scarcer = np.minimum(totals, other) if other > 1 else totals
    half = _spread_factor(scarcer) * np.sqrt(own_variance * own / totals + other_variance)
    enough = np.flatnonzero(half < wanted)
    return int(totals[enough[0]]) if len(enough) else None


def _spread_factor(levels: Any, level: float = 0.95) -> Any:
    """Half-width of an interval in bootstrap standard deviations, for so many levels of the scarcer axis.

    A percentile interval of n levels is too narrow by sqrt((n - 1) / n) and by normal in place of t quantiles
    (Hesterberg 2015, arXiv:1411.5279, section 5.3, "expanded percentile").
    """
    return np.sqrt(levels / (levels - 1)) * t.ppf((1 + level) / 2, levels - 1)


def _ratio(top: Floats, bottom: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(bottom > 0, top / bottom, np.nan)


def _difference(a: Scores, b: Scores) -> float:
    return float(interquartile_mean(a.per_seed) - interquartile_mean(b.per_seed))


def _resampled(
    rng: np.random.Generator, seeds: int, clusters: int, axis: str | None = None
) -> tuple[NDArray[np.int64], Floats]:
    """Draws seeds (B, seeds) and cluster weights (B, clusters) with replacement; ``axis`` alone if named."""
    picks = rng.integers(seeds, size=(RESAMPLES, seeds))
    weights = rng.multinomial(clusters, np.full(clusters, 1 / clusters), size=RESAMPLES).astype(np.float64)
    if axis == "clusters":
        picks = np.tile(np.arange(seeds), (RESAMPLES, 1))
    if axis == "seeds":
        weights = np.ones_like(weights)
    return picks, weights


def _scores_of(scores: Scores, picks: NDArray[np.int64], weights: Floats) -> Floats:
    """Interquartile mean of each resample, (B,)."""
    per_seed = _ratio(weights @ scores.numerator.T, weights @ scores.denominator.T)  # (B, seeds)
    return interquartile_mean(np.take_along_axis(per_seed, picks, axis=1))


def _variance(a: Scores, b: Scores, picks: NDArray[np.int64], weights: Floats) -> float:
    return float(np.nanvar(_scores_of(a, picks, weights) - _scores_of(b, picks, weights)))


def _mixed(a: Scores, b: Scores, swap: Floats) -> Floats:
    """Mean score of the arm that takes b's clusters where ``swap`` (B, clusters) is 1 and a's elsewhere, (B,)."""
    top = (1 - swap) @ a.numerator.T + swap @ b.numerator.T  # (B, seeds)
    bottom = (1 - swap) @ a.denominator.T + swap @ b.denominator.T
    return _ratio(top, bottom).mean(-1)


def _levels(scores: Scores) -> int:
    """Levels of the scarcer axis, among those that are resampled at all."""
    return min((n for n in scores.numerator.shape if n > 1), default=1)


def _interval(estimate: float, resampled: Floats, levels: int, level: float) -> Interval:
    """Percentile interval, its tails moved out as few levels need (:func:`_spread_factor`)."""
    if levels < 2:
        return Interval(estimate, estimate, estimate)
    tail = norm.cdf(-_spread_factor(levels, level))
    low, high = np.nanquantile(resampled, (tail, 1 - tail))
    # A resample's interquartile mean may never reach the estimate where few seeds are skewed; the interval holds it.
    return Interval(estimate, min(float(low), estimate), max(float(high), estimate))


def _flips(levels: int, rng: np.random.Generator) -> tuple[NDArray[np.bool_], bool]:
    if levels <= EXACT_FLIPS:
        return np.array(list(product((False, True), repeat=levels))), False
    return rng.random((DRAWN_FLIPS, levels)) < 0.5, True


def _p_value(observed: float, swapped: Floats, drawn: bool) -> float:
    tolerance = 1e-9 * max(1.0, observed)  # sums in another order differ in the last bits and must still count as ties
    reached = int((np.abs(swapped) >= observed - tolerance).sum())
    return (reached + 1) / (len(swapped) + 1) if drawn else reached / len(swapped)


def _checked(ps: Sequence[float]) -> Floats:
    values = np.asarray(ps, np.float64)
    if values.ndim != 1 or not ((values > 0) & (values <= 1)).all():
        raise ValueError(f"p-values must lie in (0, 1], got {list(ps)}")
    return values


def _back(sorted_values: Floats, order: NDArray[np.int64]) -> list[float]:
    out = np.empty_like(sorted_values)
    out[order] = sorted_values
    return [float(v) for v in out]
