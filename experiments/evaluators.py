"""Evaluations: what a trained policy is made to do, and what is recorded of it.

An evaluator is a dataclass of settings that is called with a policy and returns records: arrays of one shape, one
element a unit (a step of a session, a noised question). Every evaluator records ``row`` and ``family``, which say what
was asked: arms can be compared where these are the same. Axes: B sessions, T steps, V noises, M rows, N candidates.
"""

from dataclasses import dataclass, replace
from typing import Literal, Protocol, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from ..agents.evaluation import Records
from ..agents.rollout import Sessions, acting, roll
from ..envs.causal_memory import CausalMemoryConfig
from ..envs.causal_memory.oracle import Oracle
from ..envs.outcomes.table import OutcomeTable
from ..policies.base import Policy
from ..policies.causal_gate import CausalGate


class Evaluator(Protocol):
    """Makes a policy act and records what it did."""

    @property
    def split(self) -> str:
        """Split whose questions are asked."""

    def __call__(
        self, policy: Policy, env_config: CausalMemoryConfig, replay: CausalMemoryConfig | None, seed: int
    ) -> Records:
        """Evaluates.

        Args:
            policy: The policy.
            env_config: The environment that it was trained in.
            replay: Where its masks are replayed; None for where they are made.
            seed: Seed of the trial, for draws of a stochastic policy.
        """


@dataclass(frozen=True)
class PlayedSessions:
    """Plays the same sessions with every policy: their questions do not depend on what is done.

    With ``replay`` the policy decides in its own environment, and its masks are then replayed in another one: feedback
    depends on what was read, so a policy that acted there would leave other masks and two things would be compared.

    Attributes:
        split: Split whose questions are asked.
        sessions: Number of sessions.
        seed: Session i is the first one of seed + i.
        stochastic: Draw the bits instead of taking the likelier ones.
    """

    split: str = "test"
    sessions: int = 512
    seed: int = 1000
    stochastic: bool = False

    def __call__(
        self, policy: Policy, env_config: CausalMemoryConfig, replay: CausalMemoryConfig | None, seed: int
    ) -> Records:
        """Returns what each step's info says, and its reward, (B, T)."""
        env = replace(env_config, split=self.split).make_vector(self.sessions)
        generator = torch.Generator().manual_seed(seed) if self.stochastic or policy.stochastic else None
        played = roll(env, acting(policy, env_config.action, generator=generator), seed=self.seed)
        if replay is not None:
            masks = iter(played.actions)
            env = replace(replay, split=self.split).make_vector(self.sessions)
            played = roll(env, lambda _: next(masks), seed=self.seed)
        return session_records(played, env.dynamics.table)


@dataclass(frozen=True)
class OracleSessions:
    """Plays the same sessions with the best reading sets under the token budget: the ceiling, whatever the policy.

    The oracle asks for any set, so it plays in hard mode with early exit whatever the arms' mode is.

    Attributes:
        split: Split whose questions are asked.
        sessions: Number of sessions.
        seed: Session i is the first one of seed + i.
    """

    split: str = "test"
    sessions: int = 512
    seed: int = 1000

    def __call__(
        self, policy: Policy, env_config: CausalMemoryConfig, replay: CausalMemoryConfig | None, seed: int
    ) -> Records:
        """Returns what each step's info says, and its reward, (B, T)."""
        free = replace(env_config, split=self.split, mode="hard", action="bits", early_exit=True)
        env = free.make_vector(self.sessions)
        oracle = Oracle(env.dynamics)
        rows = env.dynamics.session_rows(np.arange(self.seed, self.seed + self.sessions), np.zeros(self.sessions, int))
        columns, _ = oracle.sessions(rows)  # (B, T)
        best = iter(torch.from_numpy(oracle.actions(columns)).transpose(0, 1))
        return session_records(roll(env, lambda _: next(best), seed=self.seed), env.dynamics.table)


Rule = Literal["likelier", "threshold", "calibrated", "truth"]
RULES: tuple[str, ...] = get_args(Rule)


@dataclass(frozen=True)
class NoisedDecisions:
    """Asks for keep-or-reject decisions on noised queries over unchanged pools, and holds them against the truth.

    A candidate's truth is the sign of its exact main effect on U_ref: its coefficient in the least-squares fit of U_ref
    on the bits of all enumerated reading sets. Effects below ``margin`` in size count neither way. Decisions are those
    at the start of a session, without feedback, and the pool and its scores stay those of the clean query.

    Attributes:
        split: Split whose questions are asked, under every retrieval condition.
        rule: How masks become decisions: ``likelier`` bits; ``threshold``, masks of at least ``threshold`` are kept;
            ``calibrated``, the threshold at which the policy rejects, of the clean validation candidates, the share
            that should be rejected, so that all arms reject equally often; ``truth``, the truth itself.
        threshold: Of the rule ``threshold``; 0.01 is published.
        margin: Nats; the source's dead zone of step utility is (-0.1, 0].
    """

    split: str = "test"
    rule: Rule = "likelier"
    threshold: float = 0.01
    margin: float = 0.1

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise ValueError(f"rule must be one of {', '.join(RULES)}; got {self.rule!r}")

    def __call__(
        self, policy: Policy, env_config: CausalMemoryConfig, replay: CausalMemoryConfig | None, seed: int
    ) -> Records:
        """Returns counts over the candidates of each noised row, (V, M)."""
        env = replace(env_config, split=self.split).make_vector(1)
        dynamics = env.dynamics
        table, layout = dynamics.table, dynamics.layout
        if "query" not in layout.names:
            raise ValueError(f"noised decisions need a policy that observes the query; it observes {layout.names}")
        generator = torch.Generator().manual_seed(seed) if policy.stochastic else None

        def observe(rows: NDArray[np.int64]) -> NDArray[np.float32]:
            start = (np.zeros(len(rows)), np.zeros(len(rows)))
            return dynamics.observe(rows, start, np.full(len(rows), dynamics.limit), 0)

        def decide(observations: NDArray[np.float32], threshold: float | None) -> NDArray[np.bool_]:
            seen = torch.from_numpy(observations)
            if threshold is None:
                return acting(policy, "bits", generator=generator)(seen)[:, :-1].numpy() >= 0.5
            return _masks(policy, seen) >= threshold

        with torch.no_grad():
            threshold = self._threshold(policy, table, observe)
            rows = split_rows(table, self.split)
            effects = main_effects(table, rows)  # (M, N)
            truth, judged = effects > 0, np.abs(effects) >= self.margin
            observations = observe(rows)  # (M, D)
            concordant, pairs = _ordered_pairs(policy.propensity(torch.from_numpy(observations)).numpy(), truth, judged)
            query, bounds = layout.slice("query"), (layout.low, layout.high)
            clean = truth if self.rule == "truth" else decide(observations, threshold)
            noised = []
            for variant in table.noised:  # (Q, d)
                changed = observations.copy()
                changed[:, query] = variant[rows // table.conditions]
                noised.append(clean if self.rule == "truth" else decide(np.clip(changed, *bounds), threshold))
        decisions = np.stack(noised)  # (V, M, N)
        shape = decisions.shape[:2]
        return {
            "row": np.broadcast_to(rows, shape),
            "family": np.broadcast_to(table.family[rows // table.conditions], shape),
            "noise": np.broadcast_to(np.arange(len(decisions))[:, None], shape),
            "judged": np.broadcast_to(judged.sum(1), shape),
            "misjudged": ((decisions != truth) & judged).sum(2),
            "misjudged_clean": np.broadcast_to(((clean != truth) & judged).sum(1), shape),
            "concordant": np.broadcast_to(concordant, shape),
            "pairs": np.broadcast_to(pairs, shape),
            "flipped": (decisions != clean).sum(2),
            "rejected_noised": (~decisions).sum(2),
            "decisions": np.full(shape, table.pool),
        }

    def _threshold(self, policy: Policy, table: OutcomeTable, observe) -> float | None:  # type: ignore[no-untyped-def]
        if self.rule != "calibrated":
            return self.threshold if self.rule == "threshold" else None
        rows = split_rows(table, "validation")
        effects = main_effects(table, rows)
        reject = float((effects[np.abs(effects) >= self.margin] < 0).mean())
        # A mask that occurs, not a value between two: then masks that order alike are cut alike on any other query.
        return float(np.quantile(_masks(policy, torch.from_numpy(observe(rows))), reject, method="higher"))


def session_records(played: Sessions, table: OutcomeTable) -> Records:
    """Returns the infos and rewards of sessions as records (B, T), with what the candidates of each step add up to."""
    records = {name: np.ascontiguousarray(values.T) for name, values in played.infos.items()}
    records["reward"] = np.ascontiguousarray(played.rewards.numpy().T)
    records["family"] = table.family[records["row"] // table.conditions]
    records["shown"] = table.sets.sum(1)[records["set"]]
    records["candidates"] = np.full(records["row"].shape, table.pool)
    return records


def split_rows(table: OutcomeTable, split: str) -> NDArray[np.int64]:
    """Returns the rows (M,) of a split's questions under every retrieval condition."""
    return (table.question_ids(split)[:, None] * table.conditions + np.arange(table.conditions)).ravel()


def main_effects(table: OutcomeTable, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Returns each candidate's least-squares main effect on U_ref over all enumerated sets, (M, N), nats a token."""
    design = np.concatenate([np.ones((len(table.sets), 1)), table.sets], axis=1)  # (S, N+1)
    return (np.linalg.pinv(design) @ table.u_ref[rows].astype(np.float64).T)[1:].T


def _ordered_pairs(
    propensity: NDArray[np.float32], truth: NDArray[np.bool_], judged: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Counts each row's (helpful, harmful) pairs that the keep probabilities order rightly (ties half), and all."""
    keep = propensity[:, : truth.shape[1]]
    pairs = (truth & judged)[:, :, None] & (~truth & judged)[:, None, :]  # (M, N, N)
    above = np.sign(keep[:, :, None] - keep[:, None, :]) / 2 + 0.5
    return (above * pairs).sum((1, 2)), pairs.sum((1, 2))


def _masks(policy: Policy, observations: torch.Tensor) -> NDArray[np.float32]:
    """Intervention masks (M, N)."""
    if not isinstance(policy, CausalGate):
        raise ValueError(f"only a gate has masks to threshold, got {type(policy).__name__}; use rule: likelier")
    return policy.mask(observations).numpy()
