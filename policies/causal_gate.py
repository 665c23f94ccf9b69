"""The causal gate: a small network that decides which retrieved candidates may be read.

Source: "Causal Memory Policy", sections 2.2 and 3.1-3.2. Axes: B batch, D observation size, N candidates,
H hidden width, F features of one candidate.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from .base import Policy, Port
from .normaliser import Normaliser

PER_CANDIDATE = ("ranks", "content")
HEADS = ("rank", "bank")
ACTIVATIONS = ("softplus", "sigmoid")
NORMALISATIONS = ("none", "softmax")
#: Keep probabilities under softmax stay this far from 0 and 1, so that propensities divide and log-odds are finite.
FLOOR = 1e-3


class CausalGate(Policy):
    """Linear(D, 512), GELU, Linear(512, N + 1), with a mask of non-negative weights over the pool.

    The pre-activations z give both readings of the gate. As **bits** (the action that production takes) candidate i is
    kept with probability sigmoid(z_i). Under softplus that is 1 - exp(-m_i) for the mask m_i = softplus(z_i), so both
    activations name one family of policies and differ only where a mask is thresholded or used as a dose. As
    **weights**, candidate i's score is multiplied by 1 + alpha * m_i. With softmax the masks sum to one and
    candidate i is kept with probability min(1, k * m_i).

    ``alpha`` gets a gradient through the weights only: the mean of that action is the dose alpha * m_i. Among the
    bits that are kept the order is that of the scores whatever alpha is, so learners of bits leave it as it was.

    Blocks that describe the query or the session enter the published network, and ``memory`` only addresses the bank
    head. Each block is divided by the square root of its width, so that the 384 numbers of a query do not drown the two
    of the feedback and are not learned by heart before anything else is learned.

    Blocks that describe one candidate each (``ranks``, ``content``; the source forbids both, they are for comparison)
    enter one small scorer whose weights all candidates share, and whose output is added to their logits. The published
    flat network over them would have to learn N times that a matching name matters, once for each place in the pool,
    from a table of a few hundred questions. The scorer sees the hidden layer too, so that what the gate knows about the
    query and the session can change how a candidate is judged, and the mean over the pool, because what counts is how
    a candidate compares with the others.

    Args:
        blocks: Name and size of each observation block, in order; they alone decide what the gate sees.
        pool: Number of candidates N.
        budget: Most candidates k that the reader is shown.
        bank_size: Number of memories, for the bank head.
        head: ``rank`` has one output for each place in the pool; ``bank`` has one for each memory, as published, of
            which those of the retrieved memories are computed.
        activation: ``softplus`` (published) or ``sigmoid``: how z becomes a mask.
        normalise: ``softmax`` over the pool (published) or ``none``.
        threshold: None decides by the likelier bit. A number keeps the candidates whose mask is at least that; the
            source rejects masks below 0.01.
        alpha: Initial strength of the boost (0.5 as published).
        hidden: Width of the hidden layer (512 as published).
        scorer: Width of the shared scorer, used only where ``ranks`` or ``content`` is observed.
        keep: Probability with which the untrained gate keeps each candidate. Near one half its draws are nearly uniform
            masks, the design that tells every candidate's effect best, while its decision is still to keep them all.
            From 0.75 PPO stopped short of a toy table's optimum, which it reached from one half.
        search: Probability with which it searches. High, since the keep-bits of a step without a search teach nothing.
        seed: Seed of the initial weights.

    Raises:
        ValueError: An unknown option, a bank head without a ``memory`` block and a bank size, a per-candidate block
            whose size is no multiple of N, or no block at all that describes the query or the session.
    """

    balance: Tensor

    def __init__(
        self,
        *,
        blocks: Sequence[tuple[str, int]],
        pool: int,
        budget: int,
        bank_size: int = 0,
        head: str = "rank",
        activation: str = "softplus",
        normalise: str = "none",
        threshold: float | None = None,
        alpha: float = 0.5,
        hidden: int = 512,
        scorer: int = 64,
        keep: float = 0.55,
        search: float = 0.97,
        seed: int = 0,
    ) -> None:
        super().__init__(blocks=blocks, pool=pool, budget=budget, bank_size=bank_size)
        for option, value, known in (
            ("head", head, HEADS),
            ("activation", activation, ACTIVATIONS),
            ("normalise", normalise, NORMALISATIONS),
        ):
            if value not in known:
                raise ValueError(f"{option} must be one of {', '.join(known)}, got {value!r}")
        for option, probability in (("keep", keep), ("search", search)):
            if not 0 < probability < 1:
                raise ValueError(f"{option} must lie strictly between 0 and 1, got {probability}")
        self.head = head
        self.activation = activation
        self.normalise = normalise
        self.threshold = threshold
        self._slices = _slices(self.blocks)
        self._context = [name for name in self._slices if name not in (*PER_CANDIDATE, "memory")]
        self._candidate = [name for name in self._slices if name in PER_CANDIDATE]
        context = sum(_width(self._slices[name]) for name in self._context)
        features = sum(_width(self._slices[name]) for name in self._candidate)
        if not context:
            raise ValueError(f"observe at least one block about the query or the session, got {list(self._slices)}")
        if any(_width(self._slices[name]) % pool for name in self._candidate):
            raise ValueError(
                f"ranks and content must hold the same features for each of {pool} candidates, got {blocks}"
            )
        if head == "bank" and not ("memory" in self._slices and bank_size > 0):
            raise ValueError(
                f"the bank head needs a memory block and bank_size > 0, got {list(self._slices)} and {bank_size}"
            )

        self.normaliser = Normaliser(self.observation_size)
        widths = [_width(self._slices[name]) for name in self._context]
        self.register_buffer("balance", torch.cat([torch.full((width,), width**-0.5) for width in widths]))
        self.alpha = nn.Parameter(torch.tensor(float(alpha)))
        with torch.random.fork_rng(devices=[]):  # layers draw from the global generator: leave it as it was
            torch.manual_seed(seed)
            self.hidden = _linear(context, hidden, gain=math.sqrt(2))
            self.output = _linear(hidden, (pool if head == "rank" else 0) + 1, bias=_logit(keep))
            nn.init.constant_(self.output.bias[-1:], _logit(search))
            self.bank = _linear(hidden, bank_size, bias=_logit(keep)) if head == "bank" else None
            if features:
                self.candidate = _linear(features // pool, scorer, gain=math.sqrt(2))
                self.rivals = _linear(features // pool, scorer, gain=math.sqrt(2))
                self.judge = _linear(hidden, scorer, gain=math.sqrt(2))
                self.score = _linear(scorer, 1)

    @property
    def inputs(self) -> tuple[Port, ...]:
        """The observation, within the bounds that :meth:`fit_normaliser` was given."""
        return (self._observation_port(tuple(self.normaliser.low.tolist()), tuple(self.normaliser.high.tolist())),)

    def fit_normaliser(self, observations: Tensor, low: Tensor, high: Tensor) -> None:
        """Sets the normaliser from a sample of observations, unless it is set: trained weights rest on its statistics.

        All candidates share the statistics of a per-candidate feature: what a score says must not depend on the place.

        Args:
            observations: (M, D) float32, a sample of what the gate will see.
            low: (D,) float32, the layout's lower bounds.
            high: (D,) float32, its upper bounds.
        """
        if self.normaliser.fitted:
            return
        tied = torch.arange(self.observation_size)
        for name in self._candidate:
            block = tied[self._slices[name]].reshape(self.pool, -1)  # (N, F)
            tied[self._slices[name]] = block[:1].expand_as(block).flatten()
        self.normaliser.fit(observations, low, high, tied)

    def standardise(self, observation: Tensor) -> Tensor:
        """Returns the normalised observation (B, D)."""
        return self.normaliser(observation)

    def pre_activation(self, observation: Tensor) -> Tensor:
        """Returns z (B, N+1): the network's outputs for the candidates, then for searching."""
        x = self.normaliser(observation)
        context = x  # cutting and joining again what is whole would cost a tenth of an exported decision
        if self._context != list(self._slices):
            context = torch.cat([x[:, self._slices[name]] for name in self._context], -1)
        hidden = functional.gelu(self.hidden(context * self.balance))  # (B, H)
        z = self.output(hidden)  # (B, N+1), or (B, 1) beside a bank
        if self.bank is not None:
            # The rows of the published Linear(512, bank) that the retrieved memories need, gathered before the product.
            memory = observation[:, self._slices["memory"]].long().clamp(0, self.bank_size - 1)  # (B, N)
            rows = functional.embedding(memory, self.bank.weight)  # (B, N, H)
            z = torch.cat([(rows * hidden.unsqueeze(1)).sum(-1) + self.bank.bias[memory], z], -1)
        if self._candidate:
            parts = [x[:, self._slices[name]].unflatten(1, (self.pool, -1)) for name in self._candidate]
            features = torch.cat(parts, -1)  # (B, N, F)
            shared = self.rivals(features.mean(1)) + self.judge(hidden)  # (B, scorer)
            judged = functional.gelu(self.candidate(features) + shared.unsqueeze(1))  # (B, N, scorer)
            scores = self.score(judged).squeeze(-1)  # (B, N)
            z = z + functional.pad(scores, (0, 1))
        return z

    def mask(self, observation: Tensor) -> Tensor:
        """Returns the intervention mask (B, N), non-negative: the published output of the gate."""
        return self._mask(self.pre_activation(observation))

    def boost(self, observation: Tensor) -> Tensor:
        """Returns alpha * mask (B, N): a candidate's score is multiplied by one plus this."""
        return self.alpha * self.mask(observation)

    def forward(self, observation: Tensor) -> Tensor:
        """Returns the log-odds (B, N+1) of every bit, given observations (B, D) float32."""
        return self._logits(self.pre_activation(observation))

    def decide(self, observation: Tensor) -> Tensor:
        """Returns bits (B, N+1) float32: the likelier ones, or the masks that reach ``threshold``."""
        z = self.pre_activation(observation)
        decision = torch.sigmoid(self._logits(z)) >= 0.5
        if self.threshold is not None:
            decision = torch.cat([self._mask(z) >= self.threshold, decision[:, self.pool :]], -1)
        return decision.to(torch.float32)

    def mean_dose(self, observation: Tensor) -> Tensor:
        """Returns the doses (B, N+1): the boosts, and the probability of searching. Not clipped, so gradients pass."""
        z = self.pre_activation(observation)
        return torch.cat([self.alpha * self._mask(z), torch.sigmoid(z[:, self.pool :])], -1)

    def _logits(self, z: Tensor) -> Tensor:
        if self.normalise == "none":
            return z
        keep = (self.budget * self._mask(z)).clamp(FLOOR, 1 - FLOOR)  # (B, N)
        return torch.cat([torch.logit(keep), z[:, self.pool :]], -1)

    def _mask(self, z: Tensor) -> Tensor:
        z = z[:, : self.pool]
        weights = functional.softplus(z) if self.activation == "softplus" else torch.sigmoid(z)
        return torch.softmax(weights, -1) if self.normalise == "softmax" else weights


def _slices(blocks: Sequence[tuple[str, int]]) -> dict[str, slice]:
    slices, start = {}, 0
    for name, size in blocks:
        slices[name] = slice(start, start + size)
        start += size
    return slices


def _width(part: slice) -> int:
    return part.stop - part.start


def _logit(probability: float) -> float:
    return math.log(probability / (1 - probability))


def _linear(inputs: int, outputs: int, *, gain: float = 0.01, bias: float = 0.0) -> nn.Linear:
    """A layer with orthogonal weights; a small gain suits a policy's last layer (Andrychowicz et al. 2021, 3.2)."""
    layer = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.constant_(layer.bias, bias)
    return layer
