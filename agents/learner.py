"""What all learners share: their common settings, validation, the best snapshot, curves and checkpoints."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from gymnasium import spaces
from gymnasium.vector import VectorEnv
from torch import Tensor

from ..envs.causal_memory import CausalMemoryConfig
from ..policies.base import Policy
from .checkpoint import load_checkpoint, random_state, save_checkpoint, set_random_state
from .rollout import acting, roll
from .trackers import Tracker

Progress = Callable[[float, str], None]
"""Called with the share of the training done, in [0, 1], and a short text."""

Part = tuple[Callable[[], Any], Callable[[Any], Any]]
"""How a piece of a learner's state is read, and how it is put back."""

#: Learners of seeds s and s + 1 start this many session seeds apart, so that they share no sessions.
SEED_STRIDE = 2**20
#: The validation sessions are the same for every learner and seed.
VALIDATION_SEED = 0


@dataclass(frozen=True)
class FitResult:
    """What training gives.

    Attributes:
        policy: The policy that was passed in, trained: its best snapshot by validation, else its last.
        steps: Environment steps that were taken.
        seconds: Wall time, over all resumed parts.
        curve: One point for each validation: ``steps``, ``seconds``, ``validation`` (mean reward, nats a step).
    """

    policy: Policy
    steps: int
    seconds: float
    curve: list[dict[str, float]] = field(default_factory=list)


class Learner(ABC):
    """Anything that makes a policy ready: an algorithm with its hyperparameters."""

    @abstractmethod
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
        """Trains ``policy`` in place.

        Args:
            env_config: The environment, on the split to train on.
            policy: The policy to train.
            seed: Seed of everything that is drawn. Equal seeds give equal parameters, bit for bit.
            checkpoint_dir: Folder of the checkpoint. Where it holds one of this very run, training continues from it
                and ends as it would have ended without the interruption, bit for bit.
            callbacks: Stable-Baselines3 callbacks; only PPO takes them.
            tracker: Where curves go. It stays open.
            progress: Called after every update.
        """


@dataclass(frozen=True, kw_only=True)
class GradientLearner(Learner):
    """Settings that every learner of gates has.

    Attributes:
        steps: Environment steps to train for.
        envs: Sessions that are played in lock-step.
        validate_every: Updates between two validations; 0 never validates and returns the last policy. A table has a
            few hundred questions, so a gate that sees embeddings learns them by heart: what is kept is the snapshot
            that does best on the validation families.
        validation_sessions: Sessions that a validation plays.
        checkpoint_every: Updates between two checkpoints.
    """

    steps: int
    envs: int
    validate_every: int = 4
    validation_sessions: int = 256
    checkpoint_every: int = 20


class Fit:
    """One training run's bookkeeping around the updates of a learner.

    Args:
        learner: The learner's settings.
        env_config: The environment to train in.
        policy: The policy that is trained.
        seed: Seed of the run.
        parts: What a checkpoint must hold of the learner: for each part how its state is read, and how it is put back.
        checkpoint_dir: Folder of the checkpoint, or None.
        tracker: Where curves go.
        progress: Called after every update.
    """

    def __init__(
        self,
        learner: GradientLearner,
        env_config: CausalMemoryConfig,
        policy: Policy,
        seed: int,
        parts: Mapping[str, Part],
        checkpoint_dir: str | Path | None,
        tracker: Tracker | None,
        progress: Progress | None,
    ) -> None:
        self.steps = 0
        self._learner = learner
        self._policy = policy
        self._parts = parts
        self._tracker = tracker
        self._progress = progress
        self._checkpoint = None if checkpoint_dir is None else Path(checkpoint_dir) / "checkpoint.pt"
        self._identity = f"{learner!r}, {env_config!r}, seed={seed}"
        self._updates = 0
        self._curve: list[dict[str, float]] = []
        self._best: dict[str, Tensor] | None = None
        self._validation = None
        if learner.validate_every:
            self._validation = replace(env_config, split="validation").make_vector(learner.validation_sessions)
        self._act = acting(policy, env_config.action)
        self._start = time.perf_counter()
        if self._checkpoint is not None and (saved := load_checkpoint(self._checkpoint, self._identity)) is not None:
            self.steps, self._updates, self._curve, self._best = saved["fit"]
            self._start -= saved["seconds"]
            for name, (_, put) in parts.items():
                put(saved["parts"][name])
            set_random_state(saved["random"])

    @property
    def done(self) -> bool:
        """Whether the learner has taken all its steps."""
        return self.steps >= self._learner.steps

    def boundary(self, steps: int, metrics: Mapping[str, float]) -> None:
        """Call after every update; a second call at the same boundary, as after resuming, does nothing.

        Args:
            steps: Environment steps so far.
            metrics: What the update measured.
        """
        if steps <= self.steps:
            return
        self.steps = steps
        self._updates += 1
        text = ""
        if self._validation is not None and (self._updates % self._learner.validate_every == 0 or self.done):
            score = float(roll(self._validation, self._act, seed=VALIDATION_SEED).rewards.mean())
            if self._best is None or score > max(point["validation"] for point in self._curve):
                self._best = {key: value.clone() for key, value in self._policy.state_dict().items()}
            self._curve.append({"steps": float(steps), "seconds": self._seconds(), "validation": score})
            metrics = {**metrics, "validation": score}
            text = f"validation {score:+.4f} nats a step"
        if self._tracker is not None:
            self._tracker.log(metrics, steps)
        if self._checkpoint is not None and (self._updates % self._learner.checkpoint_every == 0 or self.done):
            self._save(self._checkpoint)
        if self._progress is not None:
            self._progress(min(1.0, steps / self._learner.steps), text)

    def result(self) -> FitResult:
        """Puts the best snapshot into the policy and returns it."""
        if self._best is not None:
            self._policy.load_state_dict(self._best)
        return FitResult(self._policy.eval(), self.steps, self._seconds(), list(self._curve))

    def _save(self, path: Path) -> None:
        save_checkpoint(
            path,
            {
                "identity": self._identity,
                "parts": {name: get() for name, (get, _) in self._parts.items()},
                "fit": (self.steps, self._updates, self._curve, self._best),
                "seconds": self._seconds(),
                "random": random_state(),
            },
        )

    def _seconds(self) -> float:
        return time.perf_counter() - self._start


def prepare(env: VectorEnv, env_config: CausalMemoryConfig, policy: Policy, generator: torch.Generator) -> None:
    """Sets the policy's normaliser from sessions that its untrained self plays in ``env``.

    Raises:
        ValueError: There is nothing to train.
    """
    if not any(parameter.requires_grad for parameter in policy.parameters()):
        raise ValueError(f"{type(policy).__name__} has no parameters to train; use agent=none (or best_constant)")
    space = env.single_observation_space
    assert isinstance(space, spaces.Box)
    sessions = roll(env, acting(policy, env_config.action, generator=generator), seed=0)
    policy.fit_normaliser(sessions.observations.flatten(0, 1), torch.tensor(space.low), torch.tensor(space.high))
