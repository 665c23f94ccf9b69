"""The exact all-action policy gradient over an outcome table: the reference learner.

For an observation the gate gives every bit a probability, and the table gives the outcome of every combination of
bits. So the expected utility, and with it the gradient, is a finite sum instead of an estimate from draws:

    J(o) = sum over actions a of  p(a | o) * (r(row, a, tokens left) + gamma * V(situation after a))

A sampled policy gradient weighs one of 2**(N+1) actions for each observation; here all are weighed (Sutton et al.
2001, "Comparing policy-gradient algorithms"). So nothing of the action's variance remains, and the visited observations
can be used for many steps without importance weights. Axes: M visited observations, A = 2**(N+1) actions (candidate
i is worth 2**i, the search bit 2**N), T steps of a session, B sessions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ..envs.causal_memory import CausalMemoryConfig
from ..envs.causal_memory.core import Dynamics
from ..policies.base import Policy, bernoulli_entropy
from .checkpoint import isolated_randomness
from .learner import SEED_STRIDE, Fit, FitResult, GradientLearner, Part, Progress, prepare
from .reinforce import check_bits, returns_to_go
from .rollout import Sessions, acting, roll
from .trackers import Tracker

#: Above this many candidates 2**(N+1) values for each observation are no longer cheap.
MOST_CANDIDATES = 12


@dataclass(frozen=True, kw_only=True)
class ExactGradient(GradientLearner):
    """Gradient ascent on the expected net utility over all actions, at the observations that the gate itself visits.

    What is exact, at each visited observation: the expectation over actions of the step's net utility, with what the
    token budget drops, and of the situation that the action leads to (U_self, entropy, tokens and steps left). With
    ``gamma`` 0 nothing else enters. What is estimated: which observations are visited, by playing sessions, and with
    ``gamma`` > 0 the value V of a situation, a small regression on the returns of those sessions. V knows neither the
    next question nor the hidden condition beyond what the situation says of it, so the worth of budget and of
    feedback enters on average only.

    Attributes:
        batch: Minibatch size.
        epochs: Passes over the visited observations between two rounds of sessions.
        learning_rate: Adam's, falling linearly to zero.
        gamma: Weight of the value of the situation that an action leads to.
        entropy: Weight of the entropy bonus.
        weight_decay: AdamW's, on the policy.
    """

    steps: int = 40_960
    envs: int = 512
    batch: int = 512
    epochs: int = 4
    learning_rate: float = 3e-3
    gamma: float = 0.5
    entropy: float = 0.0
    weight_decay: float = 0.0

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
        """Trains ``policy`` in place; see :meth:`Learner.fit`."""
        check_bits(env_config, callbacks)
        with isolated_randomness(seed):
            generator = torch.Generator().manual_seed(seed)
            env = env_config.make_vector(self.envs)
            prepare(env, env_config, policy, generator)
            env.reset(seed=seed * SEED_STRIDE)
            if env.dynamics.table.pool > MOST_CANDIDATES:
                raise ValueError(
                    f"the exact gradient sums over 2**(N+1) actions, for N <= {MOST_CANDIDATES}; "
                    f"this pool has N = {env.dynamics.table.pool}: use agent=ppo"
                )
            value = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
            optimizer = torch.optim.AdamW(
                [
                    {"params": list(policy.parameters()), "weight_decay": self.weight_decay},
                    {"params": list(value.parameters()), "weight_decay": 0.0},
                ],
                lr=self.learning_rate,
                fused=True,
            )

            parts: dict[str, Part] = {
                "policy": (policy.state_dict, policy.load_state_dict),
                "value": (value.state_dict, value.load_state_dict),
                "optimizer": (optimizer.state_dict, optimizer.load_state_dict),
                "generator": (generator.get_state, generator.set_state),
                "env": (env.get_state, env.set_state),
            }
            fit = Fit(self, env_config, policy, seed, parts, checkpoint_dir, tracker, progress)
            act = acting(policy, env_config.action, generator=generator)
            while not fit.done:
                for group in optimizer.param_groups:
                    group["lr"] = self.learning_rate * (1 - fit.steps / self.steps)
                sessions = roll(env, act)
                metrics = self._update(sessions, env.dynamics, policy, value, optimizer, generator)
                fit.boundary(fit.steps + sessions.rewards.numel(), metrics)
            return fit.result()

    def _update(
        self,
        sessions: Sessions,
        dynamics: Dynamics,
        policy: Policy,
        value: nn.Module,
        optimizer: torch.optim.Optimizer,
        generator: torch.Generator,
    ) -> dict[str, float]:
        rewards, following = all_actions(dynamics, sessions)  # (M, A), (M, A, 4)
        observations, actions = sessions.observations.flatten(0, 1), sessions.actions.flatten(0, 1)
        taken = (actions @ 2.0 ** torch.arange(actions.shape[1])).long()  # (M,)
        reached = following[torch.arange(len(taken)), taken]  # (M, 4)
        later = functional.pad(returns_to_go(sessions.rewards, self.gamma)[1:], (0, 0, 0, 1)).flatten()  # (M,)
        goes_on = (following[:, :1, 3] > 0).float()  # (M, 1): nothing follows a session's last step
        worth = rewards
        if self.gamma:
            with torch.no_grad():
                worth = rewards + self.gamma * goes_on * value(following).squeeze(-1)
        objective = entropy = value_loss = torch.zeros(())
        for _ in range(self.epochs):
            for part in torch.randperm(len(observations), generator=generator).split(self.batch):
                logits = policy(observations[part])  # (m, N+1)
                objective = (code_probabilities(torch.sigmoid(logits)) * worth[part]).sum(-1).mean()
                entropy = bernoulli_entropy(logits).mean()
                predicted = value(reached[part]).squeeze(-1) * goes_on[part, 0]
                value_loss = functional.mse_loss(predicted, later[part])
                loss = value_loss - objective - self.entropy * entropy
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return {
            "reward": sessions.rewards.mean().item(),
            "objective": objective.item(),
            "entropy": entropy.item(),
            "value_loss": value_loss.item(),
        }


def code_probabilities(p: Tensor) -> Tensor:
    """Probabilities (M, 2**K) of all combinations of K independent bits, given theirs (M, K); bit i is worth 2**i."""
    codes = torch.ones_like(p[:, :1])  # (M, 1)
    for i in range(p.shape[1]):
        codes = torch.cat([codes * (1 - p[:, i : i + 1]), codes * p[:, i : i + 1]], -1)  # (M, 2**(i+1))
    return codes


def all_actions(dynamics: Dynamics, sessions: Sessions) -> tuple[Tensor, Tensor]:
    """What every action would have given at every step of some sessions.

    Args:
        dynamics: The environment's rules, over a table.
        sessions: T steps of B sessions.

    Returns:
        Net utilities (T*B, A) float32, and the situations that follow (T*B, A, 4) float32: U_self, entropy, share of
        the tokens left, share of the steps left.
    """
    steps, width = sessions.rewards.shape
    read = sessions.infos["tokens"]  # (T, B)
    left = (dynamics.limit - read.cumsum(axis=0) + read).reshape(-1, 1)  # (M, 1), before the step
    rows = sessions.infos["row"].reshape(-1, 1)  # (M, 1)
    codes = np.arange(2 << dynamics.table.pool)  # (A,)
    step = dynamics.step(rows, dynamics.choose_bits(rows, codes), left)
    tokens_left = (left - step.tokens) / dynamics.limit
    steps_left = 1 - np.arange(1, steps + 1).repeat(width)[:, None] / steps
    following = np.stack(np.broadcast_arrays(*step.feedback, tokens_left, steps_left), axis=-1)
    return torch.from_numpy(step.reward).float(), torch.from_numpy(following).float()
