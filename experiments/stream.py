"""A stream of requests whose packages, retrieval and load change on a schedule, met by a gate that may learn from it.

Time is simulated: days of the schedule. Everything that is drawn depends on the stream's seed and the place in it, so
that all arms meet the same requests. Axes: B requests of the stream, N candidates.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..agents.online import Online, OnlineGate
from ..backends.estimation.flags import needs_review
from ..backends.interventions.sets import bit_codes
from ..envs.causal_memory import CausalMemoryConfig
from ..envs.causal_memory.core import Dynamics
from ..envs.outcomes.table import RELATIONS
from ..policies.base import Policy
from .evaluators import main_effects
from .store import Records

SIGNALS = ("u_self", "u_ref")
ANSWERING = ("gold", "equivalent")
"""What an expert would keep: candidates that state the answer."""


@dataclass(frozen=True)
class Phase:
    """Days on which requests are alike.

    Attributes:
        days: Number of days.
        split: Whose questions are asked.
        requests: Requests a day.
        degraded: Probability that a session meets the table's last retrieval condition instead of its first.
    """

    days: int
    split: str
    requests: int
    degraded: float

    def __post_init__(self) -> None:
        if self.days < 1 or self.requests < 1 or not 0 <= self.degraded <= 1:
            raise ValueError(f"expected days and requests of at least 1 and degraded in [0, 1], got {self}")


@dataclass(frozen=True)
class Stream:
    """Serves the stream request by request, and records what each was worth by U_ref, which the gate does not see.

    The gate learns from U_self, unless a control says otherwise. An answer that is wrong, after a step of low utility,
    goes to an expert, who says ``delay`` days later which candidates state the answer.

    Attributes:
        phases: The schedule.
        learner: How the gate learns.
        signal: ``u_self``; or ``u_ref``, which no running system has: a control that shows what could be learned.
        oracle: Do what is best by U_ref in each step alone, whatever the policy says: the ceiling.
        seed: Seed of the requests; that of the gate's draws is the trial's.
        delay: Days until a label arrives.
        margin: Nats; main effects below it in size count neither as identified nor as not.
        split: What strata and instrument checks look at.
    """

    phases: Sequence[Phase | Mapping[str, Any]]
    learner: Online = field(default_factory=lambda: Online(learning_rate=0.0))
    signal: str = "u_self"
    oracle: bool = False
    seed: int = 1000
    delay: float = 1.0
    margin: float = 0.1
    split: str = "test"

    def __post_init__(self) -> None:
        made = [phase if isinstance(phase, Phase) else Phase(**phase) for phase in self.phases]
        object.__setattr__(self, "phases", tuple(made))
        if self.signal not in SIGNALS:
            raise ValueError(f"signal must be one of {', '.join(SIGNALS)}; got {self.signal!r}")
        if not made:
            raise ValueError("a stream needs at least one phase")

    def __call__(
        self, policy: Policy, env_config: CausalMemoryConfig, replay: CausalMemoryConfig | None, seed: int
    ) -> Records:
        """Returns what each request was worth, (B,)."""
        if env_config.early_exit or env_config.token_budget is not None or env_config.action != "bits":
            raise ValueError("a stream needs env.early_exit=false, env.token_budget=null and env.action=bits")
        dynamics = replace(env_config, split=self.split).make_vector(1).dynamics
        rows, days, phase = self.requests(env_config)
        effects = main_effects(dynamics.table, rows)  # (B, N)
        gate = OnlineGate(policy, self.learner, seed)
        waiting: deque[tuple[float, NDArray[np.float32], NDArray[np.bool_]]] = deque()
        records: dict[str, list[Any]] = {name: [] for name in RECORDED}
        feedback = (0.0, 0.0)
        for number, (row, day) in enumerate(zip(rows.tolist(), days.tolist(), strict=True)):
            while waiting and waiting[0][0] <= day:
                gate.teach(*waiting.popleft()[1:])
            place = number % env_config.steps
            observation = dynamics.observe(row, feedback if place else (0.0, 0.0), dynamics.limit, place)
            outcome = self._serve(gate, dynamics, row, day, observation, waiting)
            feedback = outcome.pop("feedback")
            likelier = outcome.pop("likelier")
            greedy = dynamics.step(row, dynamics.choose_bits(row, _code(likelier)), dynamics.limit)
            judged = np.abs(effects[number]) >= self.margin
            outcome |= {
                "greedy_regret": float(greedy.regret),
                "identified": int(((likelier[:-1] == (effects[number] > 0)) & judged).sum()),
                "judged": int(judged.sum()),
            }
            for name in RECORDED:
                records[name].append(outcome[name])
        table = dynamics.table
        found = {name: np.array(values, dtype=np.float64) for name, values in records.items()}
        later = phase > 0
        return {
            "row": rows,
            "family": table.family[rows // table.conditions],
            "phase": phase,
            **found,
            "later": later,
            **{f"later_{name}": np.where(later, found[name], 0) for name in LATER},
            **{f"first_{name}": np.where(later, 0, found[name]) for name in ("identified", "judged")},
        }

    def requests(self, env_config: CausalMemoryConfig) -> tuple[NDArray[np.int64], NDArray, NDArray[np.int64]]:
        """Returns the row of each request, its day and its phase, (B,) each."""
        rows, days, phases = [], [], []
        begun = 0
        for number, phase in enumerate(self.phases):
            assert isinstance(phase, Phase)
            dynamics = replace(env_config, split=phase.split).make_vector(1).dynamics
            count = phase.days * phase.requests
            sessions = -(-count // env_config.steps)
            drawn = dynamics.session_rows(np.arange(sessions) + self.seed, np.full(sessions, number))
            conditions = dynamics.table.conditions
            degraded = np.random.default_rng([self.seed, number]).random(sessions) < phase.degraded
            row = drawn // conditions * conditions + np.where(degraded, conditions - 1, 0)[:, None]
            rows.append(row.ravel()[:count])
            days.append(begun + np.arange(count) / phase.requests)
            phases.append(np.full(count, number))
            begun += phase.days
        return np.concatenate(rows), np.concatenate(days), np.concatenate(phases)

    def _serve(
        self,
        gate: OnlineGate,
        dynamics: Dynamics,
        row: int,
        day: float,
        observation: NDArray[np.float32],
        waiting: deque[tuple[float, NDArray[np.float32], NDArray[np.bool_]]],
    ) -> dict[str, Any]:
        """One request: act, read, learn, and ask an expert where it went wrong."""
        table = dynamics.table
        likelier = gate.likelier(observation)
        act = gate.act(observation)
        if self.oracle:
            assert dynamics.net is not None
            best = table.sets[int(dynamics.net[row].argmax())]
            act = act._replace(bits=torch.from_numpy(np.append(best, 1).astype(np.float32)))
            likelier = act.bits.numpy() >= 0.5
        done = dynamics.step(row, dynamics.choose_bits(row, _code(act.bits.numpy() >= 0.5)), dynamics.limit)
        unmasked = int(dynamics.keep_all[row])
        signal = table.u_self if self.signal == "u_self" else table.u_ref
        level = float(signal[row, int(done.set)])
        utility = level - float(signal[row, unmasked])
        reset = gate.learn(day, observation, act, utility, level)
        asked = bool(self.learner.label_rate and needs_review(utility, done.exact_match == 0))
        if asked:
            answering = np.isin(table.relation[row], [RELATIONS.index(name) for name in ANSWERING])
            waiting.append((day + self.delay, observation, answering))
        return {
            "feedback": done.feedback,
            "likelier": likelier,
            "regret": float(done.regret),
            "utility": float(done.utility),
            "exact_match": float(done.exact_match),
            "asked": float(asked),
            "reset": float(reset),
            "uniform": float(act.uniform),
            "calls": 1.0 + (int(done.set) != unmasked),  # the unmasked reading is read too, for its U_self
        }


RECORDED = (
    "regret",
    "greedy_regret",
    "utility",
    "exact_match",
    "identified",
    "judged",
    "asked",
    "reset",
    "uniform",
    "calls",
)
LATER = ("regret", "greedy_regret", "utility", "exact_match", "identified", "judged")


def _code(bits: NDArray[np.bool_]) -> int:
    return int(bit_codes(bits[None])[0])
