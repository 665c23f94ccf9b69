"""Learners that take no gradient: the search for the best constant mask, and no training at all."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from ..envs.causal_memory import CausalMemoryConfig
from ..policies.base import Policy
from ..policies.rules import BestConstant
from .learner import SEED_STRIDE, FitResult, Learner, Progress
from .rollout import acting, roll
from .trackers import Tracker


@dataclass(frozen=True, kw_only=True)
class BestConstantSearch(Learner):
    """Tries every mask, with and without searching, on the same training sessions and keeps the one that earns most.

    Sessions are played, not summed over rows: the token budget couples their steps, and the mask that is best row by
    row may run sessions dry. All masks meet the same questions, so that small differences are resolved.

    Attributes:
        sessions: Sessions that each of the 2**(N+1) actions plays.
    """

    sessions: int = 4096

    def fit(
        self,
        env_config: CausalMemoryConfig,
        policy: Policy,
        *,
        seed: int,
        checkpoint_dir: str | Path | None = None,
        callbacks: Sequence[Any] = (),
        tracker: Tracker | None = None,
        progress: Progress | None = None,
    ) -> FitResult:
        """Sets the mask of ``policy``, a BestConstant; a search of seconds, without checkpoints or curves."""
        if not isinstance(policy, BestConstant):
            raise ValueError(f"expected policy=best_constant for agent=best_constant, got {type(policy).__name__}")
        start = perf_counter()
        env = env_config.make_vector(self.sessions)
        width = policy.pool + 1
        actions = (torch.arange(2**width)[:, None] >> torch.arange(width)) & 1  # (2**(N+1), N+1)
        earned = torch.empty(len(actions))
        for i, action in enumerate(actions):
            policy.set_bits(action)
            earned[i] = roll(env, acting(policy, env_config.action), seed=seed * SEED_STRIDE).rewards.mean()
            if progress is not None:
                progress((i + 1) / len(actions), f"best {float(earned[: i + 1].max()):+.4f} nats a step")
        policy.set_bits(actions[earned.argmax()])
        steps = len(actions) * self.sessions * env_config.steps
        return FitResult(policy.eval(), steps, perf_counter() - start)


@dataclass(frozen=True, kw_only=True)
class NoTraining(Learner):
    """Leaves the policy as it is: for rules."""

    def fit(
        self,
        env_config: CausalMemoryConfig,
        policy: Policy,
        *,
        seed: int,
        checkpoint_dir: str | Path | None = None,
        callbacks: Sequence[Any] = (),
        tracker: Tracker | None = None,
        progress: Progress | None = None,
    ) -> FitResult:
        """Returns ``policy``."""
        return FitResult(policy.eval(), 0, 0.0)
