"""What every policy is: a module with declared ports, a propensity and a deterministic decision.

Axes: B batch, D observation size, N candidates of the pool. An action is N keep-bits, then the search bit.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

FLOAT_MAX = torch.finfo(torch.float32).max


@dataclass(frozen=True)
class Port:
    """One named input or output of a policy, as a bundle declares it.

    Attributes:
        name: Name of the tensor in the exported graph.
        shape: Its shape; ``"batch"`` stands for the free axis.
        dtype: Its element type, as NumPy spells it.
        low: Least value of each feature, one per element of the last axis.
        high: Greatest value of each feature.
        nan: What a NaN in it means, or what is done about one.
    """

    name: str
    shape: tuple[int | str, ...]
    dtype: str
    low: tuple[float, ...]
    high: tuple[float, ...]
    nan: str


def bernoulli_log_prob(logits: Tensor, bits: Tensor) -> Tensor:
    """Log-probability of independent bits: the sum over the last axis of bit * logit - softplus(logit).

    Args:
        logits: (..., M) finite log-odds of each bit.
        bits: (..., M) float, 0 or 1.

    Returns:
        (...,) in nats.
    """
    return (bits * logits - functional.softplus(logits)).sum(-1)


def bernoulli_entropy(logits: Tensor) -> Tensor:
    """Entropy (...,) in nats of independent bits with log-odds (..., M)."""
    return (functional.softplus(logits) - torch.sigmoid(logits) * logits).sum(-1)


class Policy(nn.Module):
    """A decision rule over a pool: keep-bits for its N candidates, then whether to search at all.

    Args:
        blocks: Name and size of each observation block, in order (``ObservationLayout.blocks``).
        pool: Number of candidates N.
        budget: Most candidates k that the reader is shown.
        bank_size: Number of memories in the bank; only the bank head of the gate uses it.
    """

    #: True where a decision is a draw even in evaluation (a rule whose point is its randomness).
    stochastic: bool = False

    def __init__(self, *, blocks: Sequence[tuple[str, int]], pool: int, budget: int, bank_size: int = 0) -> None:
        super().__init__()
        if not 0 < budget <= pool:
            raise ValueError(f"budget must lie in 1..pool, got budget={budget} with pool={pool}")
        self.blocks = tuple((str(name), int(size)) for name, size in blocks)
        self.pool = pool
        self.budget = budget
        self.bank_size = bank_size
        self.observation_size = sum(size for _, size in self.blocks)

    @property
    def inputs(self) -> tuple[Port, ...]:
        """The one input: the observation. A rule reads nothing, so it accepts any finite value."""
        size = self.observation_size
        return (self._observation_port((-FLOAT_MAX,) * size, (FLOAT_MAX,) * size),)

    @property
    def outputs(self) -> tuple[Port, ...]:
        """The decision of :meth:`decide` and the probability of every bit, in this order."""
        width = self.pool + 1
        nan = "never: an observation with a NaN never reaches the policy"
        return tuple(
            Port(name, ("batch", width), "float32", (0.0,) * width, (1.0,) * width, nan)
            for name in ("decision", "propensity")
        )

    def fit_normaliser(self, observations: Tensor, low: Tensor, high: Tensor) -> None:
        """Lets a policy set input statistics before its training; one without them, such as a rule, does nothing.

        Args:
            observations: (M, D) float32, a sample of what the policy will see.
            low: (D,) float32, the layout's lower bounds.
            high: (D,) float32, its upper bounds.
        """

    def _observation_port(self, low: tuple[float, ...], high: tuple[float, ...]) -> Port:
        shape = ("batch", self.observation_size)
        nan = "the bundle's declared fallback decides instead, and is counted"
        return Port("observation", shape, "float32", low, high, nan)

    @abstractmethod
    def forward(self, observation: Tensor) -> Tensor:
        """Returns the log-odds (B, N+1) of every bit, given observations (B, D) float32. Always finite."""

    def propensity(self, observation: Tensor) -> Tensor:
        """Returns the probability (B, N+1) with which :meth:`sample` sets each bit; log it with every decision."""
        return torch.sigmoid(self(observation))

    def decide(self, observation: Tensor) -> Tensor:
        """Returns the deterministic action (B, N+1) float32, 0 or 1: each bit's likelier value, ties kept."""
        return (self.propensity(observation) >= 0.5).to(torch.float32)

    def mean_dose(self, observation: Tensor) -> Tensor:
        """Returns the mean (B, N+1) of the action where the environment takes weights, before the clip to [0, 1]."""
        return self.propensity(observation)

    def dose(self, observation: Tensor) -> Tensor:
        """Returns the deterministic action (B, N+1) in [0, 1] where the environment takes weights, not bits."""
        return self.mean_dose(observation).clamp(0, 1)

    def standardise(self, observation: Tensor) -> Tensor:
        """Returns the observation (B, D) as the policy's network sees it, for a critic to share."""
        return observation

    def sample(self, observation: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draws independent bits.

        Args:
            observation: (B, D) float32.
            generator: Source of the draw.

        Returns:
            Bits (B, N+1) float32 and their joint log-probability (B,) in nats.
        """
        logits = self(observation)  # (B, N+1)
        draw = torch.rand(logits.shape, generator=generator, device=logits.device)
        bits = (draw < torch.sigmoid(logits)).to(torch.float32)
        return bits, bernoulli_log_prob(logits, bits)
