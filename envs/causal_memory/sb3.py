"""Stable-Baselines3 over a native vector environment, without a Python loop over its sub-environments."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn


class BatchedVecEnv(VecEnv):
    """Speaks SB3's 4-tuple for a SAME_STEP vector environment.

    Continuous actions are presented as [-1, 1], which SB3's Gaussian policies assume, and mapped back to the
    environment's bounds. An info dictionary is filled only where a session ended (``terminal_observation`` and
    ``TimeLimit.truncated``); :attr:`infos` holds the step's info arrays.

    Args:
        env: The vector environment; ``get_attr``, ``set_attr`` and ``env_method`` act on it as a whole.

    Attributes:
        infos: What the environment's last ``reset`` or ``step`` returned as infos.

    Raises:
        ValueError: The environment does not reset in the step that ends a session.
    """

    def __init__(self, env: VectorEnv[NDArray[np.float32], NDArray, NDArray]) -> None:
        mode = env.metadata.get("autoreset_mode")
        if mode is not AutoresetMode.SAME_STEP:
            raise ValueError(f"expected a vector environment with SAME_STEP autoreset, as SB3 presumes; got {mode}")
        self.env = env
        self.infos: dict[str, Any] = {}
        self._bounds: tuple[NDArray, NDArray] | None = None
        action_space = env.single_action_space
        if isinstance(action_space, spaces.Box):
            self._bounds = (action_space.low, action_space.high)
            action_space = spaces.Box(-1, 1, action_space.shape, dtype=np.float32)
        super().__init__(env.num_envs, env.single_observation_space, action_space)

    def reset(self) -> NDArray[np.float32]:
        """Starts sessions with the seeds given to :meth:`seed`, or the next sessions, and returns (B, D)."""
        seeds = None if self._seeds[0] is None else self._seeds
        observations, self.infos = self.env.reset(seed=seeds)  # type: ignore[arg-type]  # ours takes one seed each
        self._reset_seeds()
        self._reset_options()
        return observations

    def step_async(self, actions: NDArray) -> None:
        """Takes the actions (B, ...) of the next :meth:`step_wait`."""
        if self._bounds is not None:
            low, high = self._bounds
            actions = np.clip(low + (actions + 1) / 2 * (high - low), low, high)
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """Steps and returns observations (B, D), rewards (B,) float32, dones (B,) and a dictionary for each."""
        observations, rewards, terminated, truncated, self.infos = self.env.step(self._actions)
        dones = terminated | truncated
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(dones):
            infos[i]["terminal_observation"] = self.infos["final_obs"][i]
            infos[i]["TimeLimit.truncated"] = bool(truncated[i] and not terminated[i])
        return observations, rewards.astype(np.float32), dones, infos

    def close(self) -> None:
        """Closes the vector environment."""
        self.env.close()

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Returns the vector environment's attribute, once for each index."""
        return [getattr(self.env, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Sets an attribute of the vector environment; ``indices`` must be None, since it is one object."""
        self._require_all(indices)
        setattr(self.env, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Calls a method of the vector environment once and returns its result for each index (None: all)."""
        self._require_all(indices)
        return [getattr(self.env, method_name)(*method_args, **method_kwargs)] * self.num_envs

    def env_is_wrapped(self, wrapper_class: type[gym.Wrapper], indices: VecEnvIndices = None) -> list[bool]:
        """Returns False for each index: a native vector environment has no wrapped sub-environments."""
        return [False for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[NDArray | None]:
        """Returns None for each: there is nothing to see."""
        return [None] * self.num_envs

    def _require_all(self, indices: VecEnvIndices) -> None:
        if indices is not None:
            raise ValueError(f"the sub-environments are one object: indices must be None, got {indices!r}")
