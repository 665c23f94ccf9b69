"""What a gate sees: named blocks concatenated into one flat float32 vector with finite bounds.

An environment and a service encode with the same functions, so a policy meets in production what it was trained on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

BLOCKS = ("query", "domain", "feedback", "budget", "ranks", "content", "memory", "latent")
CONTENT_BLOCKS = ("ranks", "content", "memory", "latent")
"""Blocks that depend on what was retrieved (or, for ``latent``, on what no deployment knows)."""

FEEDBACK_LIMIT = 20.0
"""Nats. Mean log-probability and entropy of a greedy answer lie within ln(vocabulary): at most 12.5 for 256k tokens."""

_PATTERNS: dict[str, tuple[tuple[float, float], ...]] = {
    "query": ((-100, 100),),
    "domain": ((-100, 100),),
    "feedback": ((-FEEDBACK_LIMIT, 0), (0, FEEDBACK_LIMIT)),
    "budget": ((0, 1), (0, 1)),
    "ranks": ((-1000, 1000), (-1000, 1000), (-1, 32767), (-1, 32767)),
    "content": ((-100, 100),),
    "memory": ((0, 2**24),),
    "latent": ((0, 1),),
}
"""(low, high) of a block's entries, repeated over the block. 2**24: the integers that float32 holds exactly."""


@dataclass(frozen=True)
class ObservationLayout:
    """Order and size of the blocks of an observation of D entries.

    Attributes:
        blocks: (name, size) pairs in the order of the vector; names are from ``BLOCKS``.
    """

    blocks: tuple[tuple[str, int], ...]

    def __post_init__(self) -> None:
        """Raises ValueError for an empty layout, an unknown or repeated block, or a size that does not fit."""
        if not self.blocks:
            raise ValueError(f"an observation needs at least one block of {', '.join(BLOCKS)}")
        for name, size in self.blocks:
            if name not in _PATTERNS:
                raise ValueError(f"unknown observation block {name!r}; expected some of {', '.join(BLOCKS)}")
            period = len(_PATTERNS[name])
            if size <= 0 or size % period:
                raise ValueError(f"block {name!r} must have a positive multiple of {period} entries, got {size}")
        if len(set(self.names)) < len(self.blocks):
            raise ValueError(f"observation blocks must differ, got {', '.join(self.names)}")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the blocks in order."""
        return tuple(name for name, _ in self.blocks)

    @property
    def size(self) -> int:
        """Number of entries D."""
        return sum(size for _, size in self.blocks)

    @property
    def content_free(self) -> bool:
        """True when no block depends on the candidates, so that swapping the pool cannot change a decision."""
        return not set(self.names) & set(CONTENT_BLOCKS)

    @cached_property
    def low(self) -> NDArray[np.float32]:
        """Lower bounds, (D,) float32, finite."""
        return self._bounds(0)

    @cached_property
    def high(self) -> NDArray[np.float32]:
        """Upper bounds, (D,) float32, finite."""
        return self._bounds(1)

    def slice(self, name: str) -> slice:
        """Returns where a block lies in the vector.

        Raises:
            KeyError: The layout has no such block.
        """
        start = 0
        for block, size in self.blocks:
            if block == name:
                return slice(start, start + size)
            start += size
        raise KeyError(f"no block {name!r} in this layout; it has {', '.join(self.names)}")

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data for JSON; :meth:`from_dict` inverts it."""
        return {"blocks": [[name, size] for name, size in self.blocks]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Builds a layout from what :meth:`to_dict` returned."""
        return cls(tuple((str(name), int(size)) for name, size in data["blocks"]))

    def _bounds(self, side: int) -> NDArray[np.float32]:
        parts = [np.resize(np.array(_PATTERNS[name], dtype=np.float32)[:, side], size) for name, size in self.blocks]
        bounds = np.concatenate(parts)  # (D,)
        bounds.flags.writeable = False
        return bounds


def make_layout(
    observe: Sequence[str], *, query: int, domain: int, pool: int, content: int, conditions: int
) -> ObservationLayout:
    """Lays out the named blocks for data of the given sizes.

    Args:
        observe: Names of the blocks, in order.
        query: Dimension d of a query embedding.
        domain: Number of domain features m.
        pool: Number of candidates N.
        content: Features F of one query-candidate pair.
        conditions: Number of latent retrieval conditions C.

    Raises:
        ValueError: A block is unknown, repeated, or empty in this data.
    """
    sizes = {
        "query": query,
        "domain": domain,
        "feedback": 2,
        "budget": 2,
        "ranks": 4 * pool,
        "content": content * pool,
        "memory": pool,
        "latent": conditions,
    }
    for name in observe:
        if name not in sizes:
            raise ValueError(f"unknown observation block {name!r}; expected some of {', '.join(BLOCKS)}")
    return ObservationLayout(tuple((name, sizes[name]) for name in observe))


def rank_features(scores: NDArray[np.float32], ranks: NDArray[np.integer]) -> NDArray[np.float32]:
    """Joins the retrievers' scores (..., N, 2) and ranks (..., N, 2) into the ``ranks`` block, (..., N, 4).

    A candidate's four entries are dense score, sparse score, dense rank, sparse rank.
    """
    return np.concatenate([scores, ranks], axis=-1, dtype=np.float32)


def encode(layout: ObservationLayout, parts: Mapping[str, NDArray]) -> NDArray[np.float32]:
    """Concatenates blocks in the layout's order and clips them to its bounds; NaN stays NaN.

    Args:
        layout: What the vector holds.
        parts: For each block of the layout an array (B, size), or one that flattens to it, candidate-major
            ((B, N, 4) for ``ranks``). Further entries are ignored.

    Returns:
        Observations of shape (B, D), float32.

    Raises:
        ValueError: A block is missing or of another size.
    """
    missing = [name for name in layout.names if name not in parts]
    if missing:
        raise ValueError(f"missing observation blocks: {', '.join(missing)}; the layout has {', '.join(layout.names)}")
    columns = []
    for name, size in layout.blocks:
        part = np.asarray(parts[name], dtype=np.float32)
        flat = part.reshape(len(part), -1) if part.ndim > 1 else part[:, None]
        if flat.shape[1] != size:
            raise ValueError(f"block {name!r} must have {size} entries a row, got an array of shape {part.shape}")
        columns.append(flat)  # (B, size)
    return np.clip(np.concatenate(columns, axis=1), layout.low, layout.high)
