"""Whole sessions in lock-step: what learners learn from and what evaluation measures.

Axes: T steps of a session, B sessions, D observation size, N candidates of the pool.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray
from torch import Tensor

from ..policies.base import Policy

Act = Callable[[Tensor], Tensor]
"""Observations (B, D) to actions (B, N+1)."""


@dataclass(frozen=True)
class Sessions:
    """B whole sessions of T steps.

    Attributes:
        observations: (T, B, D) float32.
        actions: (T, B, N+1) float32.
        rewards: (T, B) float32, nats a token.
        infos: What the environment reported with each step, (T, B) arrays by name.
    """

    observations: Tensor
    actions: Tensor
    rewards: Tensor
    infos: dict[str, NDArray]


@torch.no_grad()
def roll(env: VectorEnv, act: Act, *, seed: int | None = None) -> Sessions:
    """Plays one session in every sub-environment.

    Args:
        env: A vector environment with SAME_STEP autoreset whose sessions all have the same length.
        act: Chooses the actions.
        seed: Sub-environment i plays the first session of seed + i; None plays the next sessions.
    """
    observation, _ = env.reset(seed=seed)
    observations, actions, rewards, infos = [], [], [], []
    ended = False
    while not ended:
        seen = torch.from_numpy(observation)
        action = act(seen)
        observation, reward, terminated, truncated, info = env.step(action.numpy())
        ended = bool((terminated | truncated).all())
        info = info.get("final_info", info)  # SAME_STEP autoreset moves the last step's info there
        observations.append(seen)
        actions.append(action)
        rewards.append(torch.from_numpy(reward).float())
        infos.append({key: value for key, value in info.items() if not key.startswith("_")})
    return Sessions(
        observations=torch.stack(observations),
        actions=torch.stack(actions),
        rewards=torch.stack(rewards),
        infos={key: np.stack([info[key] for info in infos]) for key in infos[0]},
    )


def acting(policy: Policy, action: str, *, generator: torch.Generator | None = None) -> Act:
    """Returns how a policy acts in an environment.

    Args:
        policy: The policy.
        action: ``bits`` or ``weights``, what the environment takes.
        generator: Draws bits (which are doses of 0 and 1 where weights are taken); None decides deterministically.
    """
    if generator is not None:
        return lambda observation: policy.sample(observation, generator)[0]
    return policy.decide if action == "bits" else policy.dose
