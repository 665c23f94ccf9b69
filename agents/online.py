"""A gate that keeps learning while it serves: the three levels of section 4.3, and a slice of uniform masks.

It learns from what a running system has: the utility of a step by the reader's opinion of its own answer (U_self), and
labels that experts gave. The reference answer's log-probability (U_ref) never reaches it. Axes: D observation size,
N candidates, M logged steps.
"""

from collections import deque
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from ..backends.estimation.drift import DriftMonitor, DriftRule
from ..policies.base import Policy, bernoulli_log_prob
from ..policies.causal_gate import CausalGate

DEAD_ZONE = -0.1
"""Utilities in (DEAD_ZONE, 0] reward nothing: published (section 4.3, with the sign of the penalty put right)."""
LARGEST_WEIGHT = 5.0  # of a logged step in the warm-up; truncated as in Ionides 2008, which bounds the variance


@dataclass(frozen=True)
class Online:
    """How a gate learns while it serves.

    Attributes:
        learning_rate: Adam's, of the REINFORCE update after each step (level 1). 1e-5 is published; 0 learns nothing.
        label_rate: Adam's, of the update of the last layer with an expert's label (level 2); 0 ignores labels.
        drift: When the last layer is reset (level 3); None never.
        warm_up: Passes over the steps of the last ``drift.window`` days after a reset, of the last layer only.
        warm_up_rate: Adam's, in these.
        uniform: Share of steps with uniform masks. Nothing is learned from them: they are there for estimates that
            do not depend on the gate.
    """

    learning_rate: float = 1e-5
    label_rate: float = 0.0
    drift: DriftRule | None = None
    warm_up: int = 5
    warm_up_rate: float = 1e-3
    uniform: float = 0.05

    def __post_init__(self) -> None:
        if min(self.learning_rate, self.label_rate, self.warm_up_rate, self.warm_up) < 0 or not 0 <= self.uniform < 1:
            raise ValueError(f"expected rates and passes of at least 0 and a uniform share in [0, 1), got {self}")

    @property
    def draws(self) -> bool:
        """Whether bits are drawn: only where something is learned from them."""
        return self.learning_rate > 0 or self.drift is not None


class Act(NamedTuple):
    """One action.

    Attributes:
        bits: (N+1,) float32, what is done.
        propensity: (N+1,) float32, with what probability each bit was set: log it.
        uniform: The step belongs to the slice of uniform masks.
    """

    bits: Tensor
    propensity: Tensor
    uniform: bool


class Logged(NamedTuple):
    """A step that can be learned from again."""

    day: float
    observation: Tensor
    bits: Tensor
    log_prob: float
    reward: float


class OnlineGate:
    """A gate in service.

    Args:
        policy: What was deployed; a copy of it learns. A rule acts as it is and learns nothing.
        settings: How it learns.
        seed: Seed of its draws.

    Raises:
        ValueError: Something is to be learned by what is not a gate with a rank head.
    """

    def __init__(self, policy: Policy, settings: Online, seed: int) -> None:
        learns = settings.draws or settings.label_rate > 0
        if learns and not (isinstance(policy, CausalGate) and policy.head == "rank"):
            raise ValueError(f"only a gate with head=rank learns online, got {type(policy).__name__}; use rates of 0")
        self.policy = deepcopy(policy)
        self.settings = settings
        self.resets = 0
        self._generator = torch.Generator().manual_seed(seed)
        self._recent: deque[Logged] = deque()
        self._monitor = None if settings.drift is None else DriftMonitor(settings.drift)
        if isinstance(self.policy, CausalGate):
            self._deployed = deepcopy(self.policy.output.state_dict())
            self._all = _adam(self.policy.parameters(), settings.learning_rate)
            self._last = _adam(self.policy.output.parameters(), settings.label_rate)

    @torch.no_grad()
    def act(self, observation: NDArray[np.float32]) -> Act:
        """Acts on one observation (D,); every step draws the same random numbers, whatever it does with them."""
        width = self.policy.pool + 1
        drawn = torch.rand(width + 1, generator=self._generator)
        seen = torch.from_numpy(observation)[None]
        if self.settings.draws and drawn[-1] < self.settings.uniform:
            half = torch.full((width,), 0.5)
            return Act((drawn[:-1] < half).float(), half, True)
        propensity = self.policy.propensity(seen)[0]
        if self.settings.draws or self.policy.stochastic:
            return Act((drawn[:-1] < propensity).float(), propensity, False)
        return Act(self.policy.decide(seen)[0], propensity, False)

    @torch.no_grad()
    def likelier(self, observation: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Returns the bits (N+1,) that the policy would take at an observation (D,) if it drew nothing."""
        bits: NDArray[np.bool_] = self.policy.decide(torch.from_numpy(observation)[None])[0].numpy() >= 0.5
        return bits

    def learn(self, day: float, observation: NDArray[np.float32], act: Act, utility: float, level: float) -> bool:
        """Level 1, and level 3 where the stream has drifted.

        Args:
            day: Simulated time in days, in order.
            observation: (D,) what was acted on.
            act: What was done.
            utility: Step utility by U_self, nats a token: that of the reading minus that of the unmasked one. NaN where
                the reader gave no outcome: nothing is learned.
            level: U_self of the reading itself, which the drift monitor follows.

        Returns:
            Whether the gate was reset.
        """
        if not (np.isfinite(utility) and np.isfinite(level)):
            return False
        if self.settings.draws and not act.uniform:
            reward = 0.0 if DEAD_ZONE < utility <= 0 else utility
            seen = torch.from_numpy(observation)[None]
            log_prob = bernoulli_log_prob(self.policy(seen), act.bits[None])[0]
            if self._monitor is not None:
                self._recent.append(Logged(day, seen[0], act.bits, log_prob.item(), reward))
            if self.settings.learning_rate and reward:
                _step(self._all, -reward * log_prob)
        if self._monitor is None or not self._monitor.update(day, level).alarm:
            return False
        self._reset(day)
        return True

    def teach(self, observation: NDArray[np.float32], keep: NDArray[np.bool_]) -> None:
        """Level 2: fits the last layer to which candidates (N,) an expert would have kept at an observation (D,)."""
        logits = self.policy(torch.from_numpy(observation)[None])[0, :-1]
        _step(self._last, functional.binary_cross_entropy_with_logits(logits, torch.from_numpy(keep).float()))

    def get_state(self) -> dict[str, Any]:
        """Returns all that the future depends on."""
        state: dict[str, Any] = {
            "policy": self.policy.state_dict(),
            "generator": self._generator.get_state(),
            "recent": list(self._recent),
            "resets": self.resets,
            "monitor": None if self._monitor is None else self._monitor.get_state(),
        }
        if isinstance(self.policy, CausalGate):
            state |= {"all": self._all.state_dict(), "last": self._last.state_dict(), "deployed": self._deployed}
        return deepcopy(state)

    def set_state(self, state: dict[str, Any]) -> None:
        """Goes on from a state of a gate with the same settings, bit-identically."""
        state = deepcopy(state)
        self.policy.load_state_dict(state["policy"])
        self._generator.set_state(state["generator"])
        self._recent, self.resets = deque(state["recent"]), state["resets"]
        if self._monitor is not None:
            self._monitor.set_state(state["monitor"])
        if isinstance(self.policy, CausalGate):
            self._all.load_state_dict(state["all"])
            self._last.load_state_dict(state["last"])
            self._deployed = state["deployed"]

    def _reset(self, day: float) -> None:
        """Puts the deployed last layer back and fits it, alone, to the steps of the last window of days."""
        assert isinstance(self.policy, CausalGate)
        assert self.settings.drift is not None
        self.resets += 1
        self.policy.output.load_state_dict(self._deployed)
        self._all = _adam(self.policy.parameters(), self.settings.learning_rate)
        self._last = _adam(self.policy.output.parameters(), self.settings.label_rate)
        while self._recent and self._recent[0].day <= day - self.settings.drift.window:
            self._recent.popleft()
        if not self._recent:
            return
        seen = torch.stack([step.observation for step in self._recent])  # (M, D)
        bits = torch.stack([step.bits for step in self._recent])  # (M, N+1)
        logged = torch.tensor([step.log_prob for step in self._recent])  # (M,)
        reward = torch.tensor([step.reward for step in self._recent])
        optimizer = _adam(self.policy.output.parameters(), self.settings.warm_up_rate)
        for _ in range(self.settings.warm_up):
            log_prob = bernoulli_log_prob(self.policy(seen), bits)  # (M,)
            weight = (log_prob.detach() - logged).exp().clamp(max=LARGEST_WEIGHT)
            _step(optimizer, -(weight * reward * log_prob).mean())


def _adam(parameters: Any, rate: float) -> torch.optim.Adam:
    return torch.optim.Adam(parameters, lr=rate)


def _step(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
