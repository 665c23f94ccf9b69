"""Rules: policies that look at nothing. Each is a baseline, and each exports like a network."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .base import Policy

#: Log-odds of certainty: in float32 a sigmoid of +-100 is exactly 1 and 0, and the number stays finite.
CERTAIN = 100.0


class Constant(Policy):
    """Draws every bit with a fixed probability of 0, 1/2 or 1, whatever is observed.

    Args:
        probabilities: N keep probabilities, then that of searching.
        kwargs: As for :class:`Policy`.
    """

    logits: Tensor

    def __init__(self, probabilities: Sequence[float], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if len(probabilities) != self.pool + 1 or any(p not in (0, 0.5, 1) for p in probabilities):
            raise ValueError(f"expected {self.pool + 1} bits (the keep-bits, then search), got {list(probabilities)}")
        self.register_buffer("logits", CERTAIN * (2 * torch.tensor(probabilities, dtype=torch.float32) - 1))  # (N+1,)

    def forward(self, observation: Tensor) -> Tensor:
        """Returns the constant log-odds, one row an observation."""
        return self.logits.expand(observation.shape[0], -1)


class KeepAll(Constant):
    """Searches and keeps every candidate, so that the reader is shown the retriever's own top k: the floor."""

    def __init__(self, *, pool: int, **kwargs: Any) -> None:
        super().__init__([1] * (pool + 1), pool=pool, **kwargs)


class KeepNone(Constant):
    """Never searches: the reader answers from what it knows."""

    def __init__(self, *, pool: int, **kwargs: Any) -> None:
        super().__init__([0] * (pool + 1), pool=pool, **kwargs)


class TopOne(Constant):
    """Searches and keeps only the first candidate of the pool, whose order is the retrievers' rank."""

    def __init__(self, *, pool: int, **kwargs: Any) -> None:
        super().__init__([1] + [0] * (pool - 1) + [1], pool=pool, **kwargs)


class RandomGate(Constant):
    """Searches and keeps every candidate with probability 1/2: the uniform slice that estimators need.

    At this propensity the mean effect of a candidate is its Banzhaf value.
    """

    stochastic = True

    def __init__(self, *, pool: int, **kwargs: Any) -> None:
        super().__init__([0.5] * pool + [1], pool=pool, **kwargs)


class BestConstant(Constant):
    """One mask for every query: what choosing is worth before any query is read.

    Args:
        bits: N keep-bits, then the search bit. Without them it keeps everything until
            ``agents.baselines.BestConstantSearch`` has found the best ones on the training split.
        pool: Number of candidates N.
        kwargs: As for :class:`Policy`.
    """

    def __init__(self, bits: Sequence[int] | None = None, *, pool: int, **kwargs: Any) -> None:
        super().__init__([1] * (pool + 1) if bits is None else bits, pool=pool, **kwargs)

    def set_bits(self, bits: Tensor) -> None:
        """Replaces the mask by ``bits`` (N+1,), each 0 or 1."""
        if bits.shape != self.logits.shape:
            raise ValueError(f"expected {self.pool + 1} bits (the keep-bits, then search), got {bits.tolist()}")
        self.logits.copy_(CERTAIN * (2 * bits.to(self.logits) - 1))
