"""Parity: inputs on which every form of a policy must decide alike, and how alike is measured. NumPy only.

A vector set is a mapping of arrays with one row an input: ``observation`` and the fields of a ``Decision``. Rows are
checked in batches of 1, 3 and 64 against the same expected decisions, so that a decision which depends on its
batch-mates is found too.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .bundle import PARITY_BATCHES
from .runtime import Decision, Runtime

ROWS = max(PARITY_BATCHES)
TOLERANCE = 1e-5
"""Largest difference of a weight or a probability, all in [0, 1]. Bits must be equal."""
ROUNDING = 1e-6
"""Relative size of the nudges under which a decision that is no tie stays as it is: about 8 units in the last place."""
NUDGES = 8  # each finds a tie with probability of about one half


class Difference(NamedTuple):
    """How far decisions are from the expected ones: number of unequal bits, largest difference of the numbers."""

    bits: int
    floats: float

    @property
    def ok(self) -> bool:
        """True where the decisions count as the same."""
        return self.bits == 0 and self.floats <= TOLERANCE


def random_rows(
    low: NDArray[np.float32], high: NDArray[np.float32], rows: int, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Draws valid observations (rows, D) with values of every magnitude, down to a ten-millionth of the bounds."""
    anchor = np.clip(np.zeros_like(low), low, high)
    scale = 10 ** rng.uniform(-7, 0, (rows, len(low)))
    values = anchor + scale * (rng.uniform(low, high, (rows, len(low))) - anchor)
    return np.clip(values.astype(np.float32), low, high)


def edge_rows(low: NDArray[np.float32], high: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns observations (12, D) at zero and the bounds, just beyond them, and with NaN and infinities."""
    zero = np.clip(np.zeros_like(low), low, high)
    valid = [zero, low, high, np.where(np.arange(len(low)) % 2, low, high)]
    spoilt = []
    for index in (0, -1):
        for value in (np.nextafter(high[index], np.inf), np.nextafter(low[index], -np.inf), np.nan):
            row = zero.copy()
            row[index] = value
            spoilt.append(row)
    return np.stack([*valid, *spoilt, np.full_like(low, np.inf), np.full_like(low, np.nan)]).astype(np.float32)


def cycle(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Repeats or cuts rows (n, D) so that there are enough for the largest batch."""
    return np.resize(rows, (ROWS, rows.shape[1]))


def drop_ties(
    runtime: Runtime,
    rows: NDArray[np.float32],
    low: NDArray[np.float32],
    high: NDArray[np.float32],
    rng: np.random.Generator,
) -> NDArray[np.float32]:
    """Leaves out rows whose bits change under a nudge of rounding size.

    Such a decision lies on the policy's boundary: two correct float32 implementations may take either side.
    """
    before = runtime.decide(rows)
    firm = np.ones(len(rows), dtype=bool)
    for _ in range(NUDGES):
        nudged = np.clip(rows * (1 + ROUNDING * rng.choice(np.array([-1, 1], np.float32), rows.shape)), low, high)
        after = runtime.decide(np.where(before.fell_back[:, None], rows, nudged))
        firm &= (before.keep == after.keep).all(axis=1) & (before.search == after.search)
    return rows[firm]


def decisions(runtime: Runtime, rows: NDArray[np.float32]) -> dict[str, NDArray]:
    """Returns the vector set of ``rows`` (n, D): the rows and what ``runtime`` decides on them."""
    return {"observation": rows, **runtime.decide(rows)._asdict()}


def differences(runtime: Runtime, expected: Mapping[str, NDArray]) -> Iterator[tuple[int, Difference]]:
    """Yields (batch size, difference) for each batch size in which the rows of a vector set are decided again."""
    rows = expected["observation"]
    for size in PARITY_BATCHES:
        parts = [runtime.decide(rows[start : start + size]) for start in range(0, len(rows), size)]
        yield size, _difference(Decision(*map(np.concatenate, zip(*parts, strict=True))), expected)


def _difference(got: Decision, expected: Mapping[str, NDArray]) -> Difference:
    bits = sum(int((getattr(got, name) != expected[name]).sum()) for name in ("keep", "search", "fell_back"))
    floats = [np.abs(getattr(got, name) - expected[name]).max() for name in ("mask", "propensity")]
    return Difference(bits, float(np.max(floats)))
