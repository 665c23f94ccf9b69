"""What a policy earns on held-out sessions, and how far that is from the exact optimum. Axes: B sessions, T steps."""

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from ..envs.causal_memory import CausalMemoryConfig
from ..envs.causal_memory.oracle import Oracle
from ..policies.base import Policy
from .rollout import acting, roll

Records = dict[str, NDArray]


def evaluate(
    policy: Policy,
    env_config: CausalMemoryConfig,
    *,
    split: str = "test",
    sessions: int = 512,
    seed: int = 1000,
    stochastic: bool = False,
) -> Records:
    """Plays sessions whose questions depend on ``seed`` alone, so that policies can be compared pair by pair.

    Args:
        policy: The policy.
        env_config: The environment; its split is replaced.
        split: Split whose questions are asked.
        sessions: Number of sessions B; session i is the first one of ``seed + i``.
        seed: Seed of the sessions, and of the draws of a stochastic policy.
        stochastic: Draw the bits instead of deciding; a policy that is random by nature always draws.

    Returns:
        Arrays (B, T) by name: everything in the environment's step info, ``reward``, ``family``, ``oracle`` (net
        utility of the best reading under the session's token budget, all of its questions known beforehand) and
        ``session_regret`` (oracle minus reward; only its sum over a session need be >= 0).
    """
    env = replace(env_config, split=split).make_vector(sessions)
    generator = torch.Generator().manual_seed(seed) if stochastic or policy.stochastic else None
    played = roll(env, acting(policy, env_config.action, generator=generator), seed=seed)
    records = {name: np.ascontiguousarray(values.T) for name, values in played.infos.items()}
    records["reward"] = np.ascontiguousarray(played.rewards.numpy().T)
    table = env.dynamics.table
    records["family"] = table.family[records["row"] // table.conditions]
    records["oracle"] = Oracle(env.dynamics).sessions(records["row"])[1]
    records["session_regret"] = records["oracle"] - records["reward"]
    return records
