"""REINFORCE with a learned baseline, in one file to be read from top to bottom.

Williams 1992; the baseline after Sutton & Barto, second edition, 13.4. Axes: T steps of a session, B sessions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..envs.causal_memory import CausalMemoryConfig
from ..policies.base import Policy, bernoulli_entropy, bernoulli_log_prob
from .checkpoint import isolated_randomness
from .learner import SEED_STRIDE, Fit, FitResult, GradientLearner, Part, Progress, prepare
from .rollout import acting, roll
from .trackers import Tracker


@dataclass(frozen=True, kw_only=True)
class Reinforce(GradientLearner):
    """One gradient step for each batch of whole sessions, so every step is on-policy.

    Attributes:
        learning_rate: Adam's. Three times PPO's, since a batch is used once and not for dozens of minibatch steps.
        gamma: Discount. What an action does to later steps, by budget and feedback, soon drowns in their questions.
        entropy: Weight of the entropy bonus.
        baseline: Width of the baseline's hidden layer.
    """

    steps: int = 614_400
    envs: int = 512
    learning_rate: float = 3e-3
    gamma: float = 0.5
    entropy: float = 0.0
    baseline: int = 256

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
            size = policy.observation_size
            baseline = nn.Sequential(nn.Linear(size, self.baseline), nn.Tanh(), nn.Linear(self.baseline, 1))
            optimizer = torch.optim.Adam([*policy.parameters(), *baseline.parameters()], lr=self.learning_rate)

            parts: dict[str, Part] = {
                "policy": (policy.state_dict, policy.load_state_dict),
                "baseline": (baseline.state_dict, baseline.load_state_dict),
                "optimizer": (optimizer.state_dict, optimizer.load_state_dict),
                "generator": (generator.get_state, generator.set_state),
                "env": (env.get_state, env.set_state),
            }
            fit = Fit(self, env_config, policy, seed, parts, checkpoint_dir, tracker, progress)
            act = acting(policy, env_config.action, generator=generator)
            while not fit.done:
                sessions = roll(env, act)
                returns = returns_to_go(sessions.rewards, self.gamma)  # (T, B)
                value = baseline(policy.standardise(sessions.observations)).squeeze(-1)  # (T, B)
                advantage = returns - value.detach()
                advantage = advantage / advantage.std()  # makes the step size independent of the scale of rewards
                logits = policy(sessions.observations.flatten(0, 1))  # (T*B, N+1)
                log_prob = bernoulli_log_prob(logits, sessions.actions.flatten(0, 1))  # (T*B,)
                entropy = bernoulli_entropy(logits).mean()
                value_loss = functional.mse_loss(value, returns)
                loss = value_loss - (log_prob * advantage.flatten()).mean() - self.entropy * entropy
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                metrics = {
                    "reward": sessions.rewards.mean().item(),
                    "entropy": entropy.item(),
                    "value_loss": value_loss.item(),
                }
                fit.boundary(fit.steps + sessions.rewards.numel(), metrics)
            return fit.result()


def returns_to_go(rewards: Tensor, gamma: float) -> Tensor:
    """Returns the discounted sums (T, B) of the rewards (T, B) from each step to the end of its session."""
    returns = torch.zeros_like(rewards)
    following = torch.zeros_like(rewards[0])
    for t in range(len(rewards) - 1, -1, -1):
        following = rewards[t] + gamma * following
        returns[t] = following
    return returns


def check_bits(env_config: CausalMemoryConfig, callbacks: Sequence[Any]) -> None:
    """Raises ValueError where an environment takes weights, or callbacks are given, to a learner of bits."""
    if env_config.action != "bits":
        raise ValueError(f"this learner draws bits, the environment takes {env_config.action}; use agent=ppo")
    if callbacks:
        raise ValueError("callbacks are Stable-Baselines3's and need agent=ppo; use a tracker here")
