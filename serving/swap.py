"""The swap test: a content-free gate must decide bit for bit the same when only the pool is another.

Query, session feedback and budget stay; everything that depends on the candidates (scores, ranks, content, identity,
the latent retrieval condition) is exchanged, and the observation is encoded anew by the function that a service uses.
So the test covers the encoder as well as the gate: a pool that leaks into a block about the query changes a decision.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..backends.interventions.observation import CONTENT_BLOCKS, ObservationLayout
from .parity import random_rows
from .runtime import Runtime

Encoder = Callable[[ObservationLayout, Mapping[str, NDArray]], NDArray[np.float32]]
POOLS = 8
"""Pools that each query is decided under: random ones, the first one reversed, and an empty-looking one of zeros."""


class SwapTest(NamedTuple):
    """Outcome of the swap test.

    Attributes:
        queries: Number of different queries with their feedback and budget.
        pools: Number of pools that each was decided under.
        changed: For each query whether any pool changed any bit of its keep-bits, mask, search or propensity.
    """

    queries: int
    pools: int
    changed: NDArray[np.bool_]

    @property
    def identical(self) -> bool:
        """True where no decision changed."""
        return not self.changed.any()


def swap_test(
    runtime: Runtime,
    layout: ObservationLayout,
    contexts: NDArray[np.float32],
    *,
    pool: int,
    encode: Encoder,
    rng: np.random.Generator,
) -> SwapTest:
    """Decides on every context under several pools and compares the decisions bit for bit.

    Args:
        runtime: What decides: the policy before export, or the bundle after it.
        layout: Layout of the observations.
        contexts: (B, D) observations that supply query, domain, feedback and budget.
        pool: Number of candidates N.
        encode: Builds observations from named parts, as a service does. It gets the pool's parts whether or not the
            layout has blocks for them.
        rng: Source of the pools.
    """
    fixed = {name: contexts[:, layout.slice(name)] for name in layout.names if name not in CONTENT_BLOCKS}
    pools = [_draw_pool(layout, len(contexts), pool, rng) for _ in range(POOLS - 2)]
    pools.append({name: part[:, ::-1] for name, part in pools[0].items()})
    pools.append({name: np.zeros_like(part) for name, part in pools[0].items()})
    seen = [runtime.decide(encode(layout, {**fixed, **parts})) for parts in pools]
    changed = np.zeros(len(contexts), dtype=bool)
    for decision in seen[1:]:
        for before, after in zip(seen[0], decision, strict=True):
            changed |= (_bits(before) != _bits(after)).any(axis=1)
    return SwapTest(len(contexts), len(pools), changed)


def _draw_pool(
    layout: ObservationLayout, queries: int, pool: int, rng: np.random.Generator
) -> dict[str, NDArray[np.float32]]:
    """Draws every part that describes candidates, candidate-major, in the layout's size or a plausible one."""
    sizes = {"ranks": 4 * pool, "content": pool, "memory": pool, "latent": 2} | dict(layout.blocks)
    parts = {}
    for name in CONTENT_BLOCKS:
        block = ObservationLayout(((name, sizes[name]),))
        parts[name] = random_rows(block.low, block.high, queries, rng)
    return parts


def _bits(part: NDArray) -> NDArray[np.uint8]:
    """Returns the raw bytes of each row, so that not even the sign of a zero may differ."""
    rows = np.ascontiguousarray(part)
    return rows.view(np.uint8).reshape(len(rows), -1)
