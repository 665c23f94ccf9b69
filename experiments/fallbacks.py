"""What is read after a gate has rejected every candidate, and how often that is the wrong thing.

Section 5.2: falling back on the retriever whose candidates were rejected brings them back, so the fallback should be
another one, and where the two put different passages first a person should look.
"""

from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ..backends.estimation.flags import top_1_disagreement
from ..backends.interventions.intervene import FALLBACKS, Fallback, intervene
from ..backends.interventions.sets import bit_codes
from ..envs.causal_memory import CausalMemoryConfig
from ..envs.causal_memory.core import HARMFUL
from ..envs.outcomes.table import RELATIONS, OutcomeTable
from ..policies.base import Policy
from .evaluators import PlayedSessions
from .store import Records

CHOICES = (*FALLBACKS, "better", "worse")


@dataclass(frozen=True)
class EmptiedSteps:
    """Lets a policy play, and looks at the steps in which it rejected every candidate.

    The fallback's reading is **wrong** where it costs more than ``margin`` of the reference answer's log-probability
    against reading nothing, which is what the gate had asked for.

    Attributes:
        fallback: ``none``, ``same`` or ``heterogeneous``, or for the bounds ``better`` and ``worse``: that of the two
            retrievers whose reading is the better or the worse by U_ref, which no running system knows.
        review: Leave steps in which the retrievers put different candidates first to a person, and read nothing.
        split: Split whose questions are asked.
        sessions: Number of sessions.
        seed: Session i is the first one of seed + i.
        margin: Nats; the source's dead zone of step utility is (-0.1, 0].
    """

    fallback: str = "heterogeneous"
    review: bool = False
    split: str = "test"
    sessions: int = 512
    seed: int = 1000
    margin: float = 0.1

    def __post_init__(self) -> None:
        if self.fallback not in CHOICES:
            raise ValueError(f"fallback must be one of {', '.join(CHOICES)}; got {self.fallback!r}")

    def __call__(
        self, policy: Policy, env_config: CausalMemoryConfig, replay: CausalMemoryConfig | None, seed: int
    ) -> Records:
        """Returns counts of each step, (B, T); what a session's later steps are does not depend on the fallback."""
        play = PlayedSessions(split=self.split, sessions=self.sessions, seed=self.seed)
        played = play(policy, replace(env_config, early_exit=True), None, seed)
        table = env_config.load_table()
        row = played["row"]
        emptied = played["rejected"] == played["candidates"]
        columns = fallback_columns(table, self.fallback)[row]  # (B, T)
        first = table.scores.argmax(1)  # (R, 2)
        reviewed = emptied & top_1_disagreement(first[:, 0], first[:, 1])[row] & self.review
        columns = np.where(reviewed, 0, columns)
        gain = np.where(emptied, table.u_ref[row, columns].astype(np.float64) - table.u_ref[row, 0], 0.0)
        harmful = np.isin(table.relation[row], [RELATIONS.index(name) for name in HARMFUL])  # (B, T, N)
        read = table.sets[columns].astype(bool) & emptied[..., None]
        return {
            "row": row,
            "family": played["family"],
            "emptied": emptied,
            "wrong_fallback": emptied & (gain < -self.margin),
            "fallback_gain": gain,
            "fallback_right": emptied & (table.exact_match[row, columns] == 1),
            "fallback_harmful": (read & harmful).sum(-1),
            "fallback_read": read.sum(-1),
            "reviewed": reviewed,
        }


def fallback_columns(table: OutcomeTable, fallback: str) -> NDArray[np.int64]:
    """Returns the column that each row's fallback reads, (R,)."""
    if fallback in ("better", "worse"):
        both = np.stack([fallback_columns(table, name) for name in ("same", "heterogeneous")], axis=1)  # (R, 2)
        u_ref = np.take_along_axis(np.asarray(table.u_ref), both, axis=1)
        chosen = u_ref.argmax(1) if fallback == "better" else u_ref.argmin(1)
        columns: NDArray[np.int64] = np.take_along_axis(both, chosen[:, None], axis=1)[:, 0]
        return columns
    nothing = np.zeros((table.rows, table.pool))
    method = cast(Fallback, fallback)
    reading = intervene(table.scores, nothing, mode="hard", k=table.budget, fallback=method)
    return table.lookup[bit_codes(reading.bits)].astype(np.int64)
