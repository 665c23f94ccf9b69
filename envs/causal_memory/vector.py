"""``recallgym/CausalMemory-v0``, many at once: native, and equal to the single environment step by step."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from .. import draws
from .config import CausalMemoryConfig
from .core import INFO_KEYS, Dynamics
from .live import Outcomes
from .single import check_state, make_spaces


class CausalMemoryVectorEnv(VectorEnv[NDArray[np.float32], NDArray, NDArray]):
    """B sessions in lock-step; :class:`~recallgym.envs.causal_memory.single.CausalMemoryEnv` documents the task.

    Sub-environment i of a reset with seed s is the single environment reset with seed s + i. All sessions have the
    same length, so all end in the same step; that step returns the first observations of the next sessions
    (SAME_STEP autoreset), and Gymnasium's ``final_obs`` and ``final_info`` hold the last of the old ones.
    :func:`step_infos` reads a step's infos in either case.

    Args:
        num_envs: Number of sub-environments B.
        config: The configuration; the default one if None.
        outcomes: Replaces the table's outcomes by a live reader's.
        **settings: Fields of the configuration to replace.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012 - Gymnasium's form

    def __init__(
        self,
        num_envs: int = 1,
        config: CausalMemoryConfig | None = None,
        *,
        outcomes: Outcomes | None = None,
        **settings: Any,
    ) -> None:
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1, got {num_envs}")
        self.num_envs = num_envs
        self.config = replace(config or CausalMemoryConfig(), **settings)
        self.dynamics = Dynamics(self.config, outcomes)
        self.single_observation_space, self.single_action_space = make_spaces(self.dynamics)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._powers = 1 << np.arange(self.dynamics.table.pool + 1)
        self._everyone = np.ones(num_envs, dtype=bool)
        self._everyone.flags.writeable = False
        self._seeds = self._spread(self.config.seed)  # (B,) uint64
        self._episodes = np.full(num_envs, -1)  # (B,)
        self._rows: NDArray[np.int64] | None = None  # (B, T)
        self._step = 0
        self._left = np.zeros(num_envs, dtype=np.int64)  # (B,)
        self._feedback: tuple[NDArray, NDArray] = (np.zeros(num_envs), np.zeros(num_envs))

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Starts the first session of the given seeds, or the next sessions where none are given.

        Args:
            seed: One seed s for s, s+1, ..., or one for each sub-environment.
            options: Not used.

        Returns:
            Observations (B, D) float32 and infos ``seed`` and ``episode``, (B,), which identify the sessions.
        """
        if seed is not None:
            self._seeds = self._spread(seed)
            self._episodes = np.full(self.num_envs, -1)
        return self._begin()

    def step(
        self, actions: NDArray
    ) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Answers one question in each session.

        Args:
            actions: (B, N+1) bits, or weights in [0, 1]. Only their shape, and NaN among weights, is checked here;
                the single environment checks everything.

        Returns:
            Observations (B, D), rewards (B,), terminations (B,), truncations (B,) and infos: arrays (B,) named as
            in the single environment, each with its mask as Gymnasium has it.

        Raises:
            RuntimeError: The environment was not reset.
            ValueError: The actions have another shape, or hold NaN.
        """
        if self._rows is None:
            raise RuntimeError("call reset() before step()")
        actions = np.asarray(actions)
        if actions.shape != self.action_space.shape:
            raise ValueError(f"actions must have shape {self.action_space.shape}, got {actions.shape}")
        dynamics, rows = self.dynamics, self._rows[:, self._step]
        if self.config.action == "bits":
            choice = dynamics.choose_bits(rows, (actions >= 0.5) @ self._powers)
        elif np.isnan(actions).any():
            raise ValueError(f"weights must lie in [0, 1]; got NaN in {np.isnan(actions).any(axis=1).sum()} rows")
        else:
            choice = dynamics.choose_weights(rows, actions)
        step = dynamics.step(rows, choice, self._left)
        self._left = self._left - step.tokens
        self._feedback = step.feedback
        self._step += 1

        infos = self._masked({key: getattr(step, key) for key in INFO_KEYS})
        ended = np.full(self.num_envs, self._step == self.config.steps)
        if self._step == self.config.steps:
            final = np.empty(self.num_envs, dtype=object)
            final[:] = list(self.observe())
            ending = self._masked({"final_obs": final, "final_info": infos})
            observations, infos = self._begin()
            infos |= ending
        else:
            observations = self.observe()
        return observations, step.reward, ended, np.zeros(self.num_envs, dtype=bool), infos

    def observe(self) -> NDArray[np.float32]:
        """Returns the current observations (B, D), such as after :meth:`set_state`."""
        if self._rows is None:
            raise RuntimeError("call reset() or set_state() before observe()")
        rows = self._rows[:, min(self._step, self.config.steps - 1)]
        return self.dynamics.observe(rows, self._feedback, self._left, self._step)

    def get_state(self) -> dict[str, Any]:
        """Returns all that the future depends on, as numbers and arrays (B,)."""
        if self._rows is None:
            raise RuntimeError("call reset() before get_state()")
        return {
            "table": self.dynamics.table.fingerprint,
            "seed": self._seeds.copy(),
            "episode": self._episodes.copy(),
            "step": self._step,
            "left": self._left.copy(),
            "u_self": np.array(self._feedback[0]),
            "entropy": np.array(self._feedback[1]),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continues from a state of an environment of the same configuration, bit-identically.

        Raises:
            ValueError: The state is of another table or another number of environments.
        """
        check_state(state, self.dynamics)
        shape = np.shape(state["seed"])
        if shape != (self.num_envs,):
            raise ValueError(f"the state is of {shape} environments, this vector has {self.num_envs}")
        self._seeds = np.array(state["seed"], dtype=np.uint64)
        self._episodes = np.array(state["episode"], dtype=np.int64)
        self._rows = self.dynamics.session_rows(self._seeds, self._episodes)
        self._step = int(state["step"])
        self._left = np.array(state["left"], dtype=np.int64)
        self._feedback = (np.array(state["u_self"]), np.array(state["entropy"]))

    def _begin(self) -> tuple[NDArray[np.float32], dict[str, Any]]:
        self._episodes = self._episodes + 1
        self._rows = self.dynamics.session_rows(self._seeds, self._episodes)
        self._step = 0
        self._left = np.full(self.num_envs, self.dynamics.limit)
        self._feedback = (np.zeros(self.num_envs), np.zeros(self.num_envs))
        return self.observe(), self._masked({"seed": self._seeds.copy(), "episode": self._episodes})

    def _masked(self, infos: dict[str, Any]) -> dict[str, Any]:
        return infos | {f"_{key}": self._everyone for key in infos}

    def _spread(self, seed: int | Sequence[int]) -> NDArray[np.uint64]:
        seeds = [seed + i for i in range(self.num_envs)] if isinstance(seed, int) else list(seed)
        if len(seeds) != self.num_envs:
            raise ValueError(f"seed must be one integer or {self.num_envs} of them, got {len(seeds)}")
        return np.concatenate([draws.as_uint64(s) for s in seeds])


def step_infos(infos: dict[str, Any]) -> dict[str, Any]:
    """Returns the infos of the step just taken, which at a session's end SAME_STEP keeps in ``final_info``."""
    return infos.get("final_info", infos)
