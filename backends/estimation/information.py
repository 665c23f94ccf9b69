"""How much a gate's mask tells of the memories it gates: information of discrete variables, and the guard built on it.

Candidates are retrieved by the query, so that a mask which depends on the query alone still tells much of the memory.
What a content-free gate must not have is information *within* a stratum: at the same query and feedback, over other
memories. Axes: M rows, each a decision. Labels are (M,) of any type that sorts, or (M, L), where a row is one label.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Codes = NDArray[np.int64]
ALARM = 0.05
"""Nats of information over the null's mean that raise the alarm: published (causal memory, section 5.2)."""
LEVEL = 0.05
PERMUTATIONS = 999
ROUNDING = 1e-12  # tables that are equal may differ by this in their sums


class Leakage(NamedTuple):
    """What the guard found. All information is in nats.

    Attributes:
        information: Of mask and memory given the stratum, plug-in.
        null_mean: Mean of the same when the memories are permuted within strata: the plug-in's bias without a leak.
        null_quantile: Its (1 - level) quantile.
        p: (b + 1) / (B + 1), b the permutations of B with at least as much information.
        unconditional: Of mask and memory, by Miller and Madow. Large for a content-free gate too.
        testable: Share of the rows in strata where a leak could show. The others say nothing.
        alarm: p is at most the level, and the excess is over what is allowed.
    """

    information: float
    null_mean: float
    null_quantile: float
    p: float
    unconditional: float
    testable: float
    alarm: bool

    @property
    def excess(self) -> float:
        """Information over the null's mean."""
        return self.information - self.null_mean


def mutual_information(x: ArrayLike, y: ArrayLike, *, corrected: bool = True) -> float:
    """Information that two discrete variables share, in nats, at least 0.

    Args:
        x: (M,) or (M, L) labels.
        y: (M,) or (M, L) labels.
        corrected: Whether the plug-in estimate is corrected to first order for its bias, by the number of different
            labels that occur; see :func:`conditional_mutual_information`.
    """
    return conditional_mutual_information(x, y, np.zeros(len(np.asarray(x))), corrected=corrected)


def conditional_mutual_information(x: ArrayLike, y: ArrayLike, strata: ArrayLike, *, corrected: bool = True) -> float:
    """Mean over strata, by their size, of the information that x and y share in a stratum; in nats, at least 0.

    Plug-in: H(x, z) + H(y, z) - H(x, y, z) - H(z), each of the frequencies. The correction adds (K - 1) / 2M to an
    entropy of K labels that occur, so in all (K_xz + K_yz - K_xyz - K_z) / 2M. It is of first order: where strata hold
    a few rows only it falls short, and only :func:`leakage`, which has a null, says what the number means.

    Args:
        x: (M,) or (M, L) labels.
        y: (M,) or (M, L) labels.
        strata: (M,) or (M, L) labels z.
        corrected: Whether the bias is corrected. The plug-in alone is at most either variable's entropy.

    Source: Miller 1955, Note on the bias of information estimates.
    """
    (a, b, z), rows = _coded(x, y, strata)
    counts = [_counts(a, z), _counts(b, z), _counts(a, b, z), _counts(z)]
    signs = (1, 1, -1, -1)
    found = sum(sign * _entropy(count) for sign, count in zip(signs, counts, strict=True))
    if corrected:
        found += sum(sign * len(count) for sign, count in zip(signs, counts, strict=True)) / (2 * rows)
    return max(float(found), 0.0)


def leakage(
    mask: ArrayLike,
    memory: ArrayLike,
    strata: ArrayLike,
    rng: np.random.Generator,
    *,
    permutations: int = PERMUTATIONS,
    level: float = LEVEL,
    allowed: float = ALARM,
) -> Leakage:
    """The guard: information of mask and memory given query and feedback, against permutations within strata.

    A gate that decides by the stratum, with whatever draw of its own, has rows of a stratum that are exchangeable: it
    alarms with probability at most ``level``. Whatever else the gate sees must be in the stratum: the position, where
    it decides candidate by candidate, and feedback in bins fine enough (:func:`quantile_bins`), as what a coarse
    stratum hides from the null looks like a leak.

    A leak can show in a stratum whose memories are of two kinds or more, one of them twice, and where two masks are
    equal: labels that are all different hold as much information after any permutation. So decide on each query under
    several pools, and name memories by kind, not by identity.

    Args:
        mask: (M,) or (M, L) labels: a bit, or the bits of a whole pool.
        memory: (M,) or (M, L) labels of what is gated, such as kind or cluster.
        strata: (M,) or (M, L) labels of query and feedback.
        rng: Draws the permutations.
        permutations: Number B of them.
        level: Of the test.
        allowed: Nats over the null's mean that raise no alarm.

    Raises:
        ValueError: A leak could show in no stratum; or the level is out of reach of so few permutations.

    Source: the alarm at 0.05 nats is published; conditioning, null and p are ours. Phipson & Smyth 2010 for p.
    """
    if permutations < 1 or (permutations + 1) * level < 1:
        raise ValueError(f"{permutations} permutations cannot reach p = {level:g}; draw at least 1 / level - 1")
    (a, b, z), rows = _coded(mask, memory, strata)
    size, masks, memories = np.bincount(z), _kinds(a, z), _kinds(b, z)  # of each stratum
    testable = float(((memories > 1) & (memories < size) & (masks < size))[z].mean())
    if not testable:
        raise ValueError(
            f"a leak could show in none of {len(size)} strata, as the memories of each are all of one kind or all "
            "different, or its masks are; decide on each query under several pools, or coarsen the labels"
        )
    order = np.argsort(z, kind="stable")
    a, b, z = a[order], b[order], z[order]
    fixed = _entropy(_counts(a, z)) + _entropy(_counts(b, z)) - _entropy(_counts(z))
    found = max(fixed - _entropy(_counts(a, b, z)), 0.0)
    within = _joint(a, z) * (b.max() + 1)
    null = np.empty(permutations)
    for i in range(permutations):
        shuffled = b[np.argsort(z + rng.random(rows))]  # z is sorted, so rows move within their stratum
        null[i] = max(fixed - _entropy(np.unique(within + shuffled, return_counts=True)[1]), 0.0)
    p = float(((null >= found - ROUNDING).sum() + 1) / (permutations + 1))
    mean = float(null.mean())
    return Leakage(
        information=found,
        null_mean=mean,
        null_quantile=float(np.quantile(null, 1 - level)),
        p=p,
        unconditional=mutual_information(a, b),
        testable=testable,
        alarm=p <= level and found - mean > allowed,
    )


def quantile_bins(values: ArrayLike, bins: int) -> Codes:
    """Labels values (M,) by quantile, 0 to ``bins`` - 1, equal ones alike; NaN (no feedback yet) has the label -1."""
    given = np.asarray(values, dtype=np.float64)
    known = ~np.isnan(given)
    labels = np.full(given.shape, -1, dtype=np.int64)
    if known.any():
        inner = np.quantile(given[known], np.arange(1, bins) / bins, method="inverted_cdf")
        labels[known] = np.searchsorted(inner, given[known])
    return labels


def _coded(*labels: ArrayLike) -> tuple[list[Codes], int]:
    """Numbers the labels of each variable; a row of an (M, L) array is one label."""
    given = [np.asarray(label) for label in labels]
    if len({len(g) if g.ndim else 0 for g in given}) > 1 or not all(g.ndim in (1, 2) and len(g) for g in given):
        shapes = ", ".join(str(g.shape) for g in given)
        raise ValueError(f"expected labels (M,) or (M, L) with the same M >= 1, got {shapes}")
    codes = [np.unique(g, axis=0 if g.ndim == 2 else None, return_inverse=True)[1] for g in given]
    return [code.reshape(-1).astype(np.int64) for code in codes], len(given[0])


def _joint(*codes: Codes) -> Codes:
    """Numbers the combinations that occur; at most M, so that joining two never overflows."""
    joined = codes[0]
    for code in codes[1:]:
        joined = np.unique(joined * (code.max() + 1) + code, return_inverse=True)[1].reshape(-1)
    return joined


def _kinds(code: Codes, z: Codes) -> Codes:
    """How many different labels each stratum holds."""
    return np.bincount(np.unique(np.stack([z, code], axis=1), axis=0)[:, 0])


def _counts(*codes: Codes) -> Codes:
    return np.unique(_joint(*codes), return_counts=True)[1]


def _entropy(counts: Codes) -> float:
    """Entropy of frequencies, in nats."""
    total = counts.sum()
    return float(np.log(total) - (counts * np.log(counts)).sum() / total)
