"""The exact all-action policy gradient over an outcome table: the reference learner.

For an observation the gate gives every bit a probability, and the table gives the outcome of every combination of
bits. So the expected utility, and with it the gradient, is a finite sum instead of an estimate from draws:

    J(o) = sum over codes a of  p(a | o) * (r(row, a, left) + gamma * V(left', steps left'))

Sampled policy gradients weigh one draw of 2**(N+1); here all are weighed, so nothing of the action's variance remains,
and visited observations can be used for many steps without importance weights. Axes: M visited observations,
A = 2**(N+1) action codes (candidate i is worth 2**i, the search bit 2**N), T steps of a session, B sessions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from ..envs.causal_memory import CausalMemoryConfig
from ..envs.causal_memory.core import Dynamics
from ..policies.base import Policy, bernoulli_entropy
from .checkpoint import isolated_randomness
from .learner import SEED_STRIDE, Fit, FitResult, Learner, Progress, prepare
from .reinforce import check_bits, returns_to_go
from .rollout import Sessions, acting, roll
from .trackers import Tracker

#: Shares of the token budget at which its value is computed; a level of a budget of 800 tokens is 3 tokens.
LEVELS = 257
#: Above this many candidates 2**(N+1) values for each observation are no longer cheap.
MOST_CANDIDATES = 12


@dataclass(frozen=True, kw_only=True)
class ExactGradient(Learner):
    """Gradient ascent on the expected net utility over all actions, at the observations that the gate itself visits.

    What is exact: the expectation over the action's bits of the step's net utility, of the tokens that the action
    leaves, and of what the token budget drops, for each visited observation. With ``gamma`` 0, or without a token
    budget, that is the whole effect of an action but one: that reading also yields *feedback* for later steps, whose
    value no learner of single steps sees. What is estimated: which observations are visited (by playing sessions), and
    with ``gamma`` > 0 the value V of the budget that is left, a small regression on the returns of those sessions.

    Attributes:
        batch: Minibatch size.
        epochs: Passes over the visited observations between two rounds of sessions.
        learning_rate: Adam's, falling linearly to zero.
        gamma: Weight of the value of the budget that is left.
        entropy: Weight of the entropy bonus.
        weight_decay: AdamW's, on the policy.
    """

    steps: int = 81_920
    envs: int = 512
    batch: int = 512
    epochs: int = 4
    learning_rate: float = 1e-3
    gamma: float = 1.0
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

            parts = {
                "policy": (policy.state_dict, policy.load_state_dict),
                "value": (value.state_dict, value.load_state_dict),
                "optimizer": (optimizer.state_dict, optimizer.load_state_dict),
                "generator": (generator.get_state, generator.set_state),
                "env": (env.get_state, env.set_state),
            }
            fit = Fit(
                self,
                env_config,
                policy,
                seed=seed,
                parts=parts,
                checkpoint_dir=checkpoint_dir,
                tracker=tracker,
                progress=progress,
            )
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
        worth, following = all_actions(dynamics, sessions)  # (M, A), (M, A, 4)
        if self.gamma:
            with torch.no_grad():
                remains = following[..., -1] > 1e-6
                worth = worth + self.gamma * value(following).squeeze(-1) * remains
        situation = _situation(dynamics, sessions)  # (M, 4)
        returns = returns_to_go(sessions.rewards, self.gamma).flatten()  # (M,)
        observations = sessions.observations.flatten(0, 1)  # (M, D)
        objective = entropy = value_loss = torch.zeros(())
        for _ in range(self.epochs):
            for part in torch.randperm(len(observations), generator=generator).split(self.batch):
                logits = policy(observations[part])  # (m, N+1)
                objective = (code_probabilities(torch.sigmoid(logits)) * worth[part]).sum(-1).mean()
                entropy = bernoulli_entropy(logits).mean()
                value_loss = functional.mse_loss(value(situation[part]).squeeze(-1), returns[part])
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
    steps, width = sessions.rewards.shape
    rows, left = sessions.infos["row"].reshape(-1, 1), tokens_left(dynamics, sessions).reshape(-1, 1)  # (M, 1)
    codes = np.arange(2 << dynamics.table.pool)  # (A,)
    step = dynamics.step(rows, dynamics.choose_bits(rows, codes), left)
    after = 1 - (np.repeat(np.arange(steps), width)[:, None] + 1) / steps
    f = np.stack([*step.feedback, (left - step.tokens) / dynamics.limit, np.broadcast_to(after, step.tokens.shape)], -1)
    return torch.from_numpy(step.reward).float(), torch.from_numpy(f).float()


def tokens_left(dynamics: Dynamics, sessions: Sessions) -> NDArray[np.int64]:
    """Returns the tokens left before every step of some sessions, (T, B)."""
    read = sessions.infos["tokens"]
    return dynamics.limit - np.cumsum(read, axis=0) + read


def _situation(dynamics, sessions):
    steps, width = sessions.rewards.shape
    out = dynamics.outcomes.outcome
    i = sessions.infos
    fb = np.stack([out("u_self", i["row"], i["set"]), out("entropy", i["row"], i["set"])], -1)  # T,B,2
    fb = np.concatenate([np.zeros_like(fb[:1]), fb[:-1]])
    b = tokens_left(dynamics, sessions) / dynamics.limit
    t = np.broadcast_to(1 - np.arange(steps)[:, None] / steps, b.shape)
    return torch.from_numpy(np.concatenate([fb, np.stack([b, t], -1)], -1).reshape(-1, 4)).float()
