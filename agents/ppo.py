"""PPO: Stable-Baselines3's, over the batched environment, with the gate itself as its actor."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import stable_baselines3
import torch
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from torch import Tensor, nn

from ..envs.causal_memory import CausalMemoryConfig
from ..envs.causal_memory.sb3 import BatchedVecEnv
from ..policies.base import Policy, bernoulli_entropy, bernoulli_log_prob
from .checkpoint import isolated_randomness
from .learner import SEED_STRIDE, Fit, FitResult, GradientLearner, Part, Progress, prepare
from .trackers import Tracker


@dataclass(frozen=True, kw_only=True)
class PPO(GradientLearner):
    """Proximal policy optimisation (Schulman et al. 2017).

    Attributes:
        rollout: Steps that each session advances between two updates; with 512 sessions, 4,096 transitions.
        batch: Minibatch size.
        epochs: Passes over a rollout.
        learning_rate: Adam's, falling linearly to zero as in the paper's Atari runs. Chosen over 3e-4 on the validation
            families of the shipped table.
        gamma: Discount. What an action does to later steps, by budget and feedback, soon drowns in their questions.
        gae_lambda: Of generalised advantage estimation (Schulman et al. 2016).
        clip: Clip range of the probability ratio, the paper's.
        entropy: Weight of the entropy bonus.
        value: Weight of the critic's loss, Stable-Baselines3's default.
        max_grad_norm: Gradient clipping, Stable-Baselines3's default.
        critic: Widths of the critic's layers.
        log_std: Initial log standard deviation of doses, on the scale [-1, 1], where the environment takes weights;
            Stable-Baselines3's default. At -1 a dose is hardly ever drawn low enough to reject anything.
    """

    steps: int = 204_800
    envs: int = 512
    rollout: int = 8
    batch: int = 512
    epochs: int = 4
    learning_rate: float = 1e-3
    gamma: float = 0.5
    gae_lambda: float = 0.95
    clip: float = 0.2
    entropy: float = 0.0
    value: float = 0.5
    max_grad_norm: float = 0.5
    critic: Sequence[int] = (256, 256)
    log_std: float = 0.0

    def fit(
        self,
        env_config: CausalMemoryConfig,
        policy: Policy,
        *,
        seed: int,
        checkpoint_dir: str | Path | None = None,
        callbacks: Sequence[BaseCallback] = (),
        tracker: Tracker | None = None,
        progress: Progress | None = None,
    ) -> FitResult:
        """Trains ``policy`` in place; see :meth:`Learner.fit`. The state of ``callbacks`` is not in the checkpoint."""
        with isolated_randomness(seed):
            generator = torch.Generator().manual_seed(seed)
            vector = env_config.make_vector(self.envs)
            prepare(vector, env_config, policy, generator)
            env = BatchedVecEnv(vector)
            env.seed(seed * SEED_STRIDE)
            model = stable_baselines3.PPO(
                GateActorCritic,
                env,
                n_steps=self.rollout,
                batch_size=self.batch,
                n_epochs=self.epochs,
                learning_rate=lambda remaining: self.learning_rate * remaining,
                gamma=self.gamma,
                gae_lambda=self.gae_lambda,
                clip_range=self.clip,
                ent_coef=self.entropy,
                vf_coef=self.value,
                max_grad_norm=self.max_grad_norm,
                policy_kwargs={
                    "gate": policy,
                    "critic": tuple(self.critic),
                    "log_std": self.log_std,
                    "generator": generator,
                },
                device="cpu",  # nets this small are slower on a GPU (Stable-Baselines3 #1245)
            )

            def counters() -> tuple[Any, ...]:
                return model.num_timesteps, model._n_updates, model._last_episode_starts

            def set_counters(saved: tuple[Any, ...]) -> None:
                model.num_timesteps, model._n_updates, model._last_episode_starts = saved
                model._last_obs = vector.observe()

            parts: dict[str, Part] = {
                "policy": (model.policy.state_dict, model.policy.load_state_dict),
                "optimizer": (model.policy.optimizer.state_dict, model.policy.optimizer.load_state_dict),
                "generator": (generator.get_state, generator.set_state),
                "env": (vector.get_state, vector.set_state),
                "counters": (counters, set_counters),
            }
            fit = Fit(self, env_config, policy, seed, parts, checkpoint_dir, tracker, progress)
            if not fit.done:
                model.learn(
                    self.steps - fit.steps, callback=[_Boundary(fit), *callbacks], reset_num_timesteps=not fit.steps
                )
            return fit.result()


class GateActorCritic(ActorCriticPolicy):
    """The gate as actor, beside a critic that reads the same normalised observation.

    Written without ``torch.distributions``, whose argument checks would run on every call. Bits are Bernoulli;
    weights are Gaussian around the gate's doses, on the scale [-1, 1] to which the adapter rescales the action space.

    Args:
        observation_space: Flat observations.
        action_space: MultiBinary for bits, Box for weights.
        lr_schedule: Learning rate by the share of training that remains.
        gate: The actor. It is trained in place.
        critic: Widths of the critic's layers.
        log_std: Initial log standard deviation of doses.
        generator: Source of the drawn actions.
        use_sde: Passed by Stable-Baselines3; must be False.
    """

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        lr_schedule: Schedule,
        *,
        gate: Policy,
        critic: Sequence[int],
        log_std: float,
        generator: torch.Generator,
        use_sde: bool = False,
    ) -> None:
        super().__init__(observation_space, action_space, lr_schedule, use_sde=use_sde)
        self.gate = gate
        widths = [gate.observation_size, *critic]
        layers = [part for pair in pairwise(widths) for part in (nn.Linear(*pair), nn.Tanh())]
        self.critic = nn.Sequential(*layers, nn.Linear(widths[-1], 1))
        self.bits = isinstance(action_space, spaces.MultiBinary)
        if not self.bits:
            self.log_std = nn.Parameter(torch.full((gate.pool + 1,), log_std))
        self.generator = generator
        # eps is Stable-Baselines3's for PPO, from OpenAI baselines; fused is the same arithmetic in fewer passes.
        self.optimizer = torch.optim.Adam(self.parameters(), lr=lr_schedule(1), eps=1e-5, fused=True)

    def _build(self, lr_schedule: Schedule) -> None:
        """Builds none of the default networks: the constructor brings its own."""

    def forward(self, obs: Tensor, deterministic: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """Returns actions (B, N+1), values (B, 1) and log-probabilities (B,)."""
        parameters = self._parameters_of(obs)
        actions = self._draw(parameters, deterministic)
        return actions, self.predict_values(obs), self._log_prob(parameters, actions)

    def evaluate_actions(self, obs: PyTorchObs, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns values (B, 1), log-probabilities (B,) of the actions and entropies (B,)."""
        parameters = self._parameters_of(obs)
        return self.predict_values(obs), self._log_prob(parameters, actions), self._entropy(parameters)

    def predict_values(self, obs: PyTorchObs) -> Tensor:
        """Returns values (B, 1)."""
        assert isinstance(obs, Tensor)  # an observation is flat, never a dictionary
        return self.critic(self.gate.standardise(obs))

    def _predict(self, observation: PyTorchObs, deterministic: bool = False) -> Tensor:
        return self._draw(self._parameters_of(observation), deterministic)

    def _parameters_of(self, obs: PyTorchObs) -> Tensor:
        """Log-odds of the bits, or means of the doses rescaled to [-1, 1]; (B, N+1)."""
        assert isinstance(obs, Tensor)
        return self.gate(obs) if self.bits else 2 * self.gate.mean_dose(obs) - 1

    def _draw(self, parameters: Tensor, deterministic: bool) -> Tensor:
        if self.bits:
            if deterministic:
                return (parameters >= 0).float()
            return (torch.rand(parameters.shape, generator=self.generator) < torch.sigmoid(parameters)).float()
        noise = 0 if deterministic else torch.randn(parameters.shape, generator=self.generator)
        return parameters + self.log_std.exp() * noise

    def _log_prob(self, parameters: Tensor, actions: Tensor) -> Tensor:
        if self.bits:
            return bernoulli_log_prob(parameters, actions)
        z = (actions - parameters) / self.log_std.exp()
        return -(0.5 * z**2 + self.log_std + 0.5 * math.log(2 * math.pi)).sum(-1)

    def _entropy(self, parameters: Tensor) -> Tensor:
        if self.bits:
            return bernoulli_entropy(parameters)
        return (self.log_std + 0.5 * math.log(2 * math.pi * math.e)).sum().expand(len(parameters))


class _Boundary(BaseCallback):
    """Tells the bookkeeping of every rollout boundary: before each rollout but the first, and at the end."""

    def __init__(self, fit: Fit) -> None:
        super().__init__()
        self._fit = fit

    def _on_rollout_start(self) -> None:
        metrics = {name: float(value) for name, value in self.logger.name_to_value.items()}
        self._fit.boundary(self.model.num_timesteps, metrics)

    def _on_training_end(self) -> None:
        self._on_rollout_start()

    def _on_step(self) -> bool:
        return True
