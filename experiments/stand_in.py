"""How well the reader's opinion of its own answer stands in for the reference answer, and where it does not.

Axes: M rows of a split, S reading sets.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..backends.estimation.metrics import rank_correlation
from ..envs.causal_memory import CausalMemoryConfig
from ..envs.outcomes.check import keep_all_columns
from ..envs.outcomes.table import OutcomeTable
from ..policies.base import Policy
from .evaluators import split_rows
from .store import Records

Signal = Literal["u_self", "entropy", "u_ref", "tokens", "unmasked", "chance"]
SIGNALS: tuple[str, ...] = get_args(Signal)


@dataclass(frozen=True)
class StandIn:
    """Chooses for every row the reading set that a signal likes best, and holds the signal against U_ref over all sets.

    Attributes:
        signal: ``u_self``; ``entropy``, low is liked; ``tokens``, long prompts are liked; ``chance``; ``unmasked``, the
            top k of the first retriever, which looks at no outcome; ``u_ref`` itself.
        split: Rows that are looked at.
        margin: Nats; readings that differ from no memory by less in U_ref count neither as help nor as harm.
    """

    signal: Signal = "u_self"
    split: str = "all"
    margin: float = 0.1

    def __post_init__(self) -> None:
        if self.signal not in SIGNALS:
            raise ValueError(f"signal must be one of {', '.join(SIGNALS)}; got {self.signal!r}")

    def __call__(
        self, policy: Policy, env_config: CausalMemoryConfig, replay: CausalMemoryConfig | None, seed: int
    ) -> Records:
        """Returns what each row's choice was worth, (M,); the policy and the replay play no part."""
        table = env_config.load_table()
        rows = split_rows(table, self.split)
        unmasked = keep_all_columns(table)[rows]
        liked = self._liked(table, rows, unmasked, np.random.default_rng(seed))  # (M, S)
        chosen = liked.argmax(1)
        u_ref = table.u_ref[rows].astype(np.float64)  # (M, S)
        effect = u_ref - u_ref[:, :1]  # against no memory: column 0 is the empty set
        judged = np.abs(effect) > self.margin
        right = (np.sign(liked - liked[:, :1]) == np.sign(effect)) & judged
        place = np.arange(len(rows))
        return {
            "row": rows,
            "family": table.family[rows // table.conditions],
            "chosen_utility": u_ref[place, chosen] - u_ref[place, unmasked],
            "chosen_right": table.exact_match[rows, chosen],
            "signal_correlation": np.array([rank_correlation(a, b) for a, b in zip(liked, u_ref, strict=True)]),
            "sign_right": right.sum(1),
            "sign_judged": judged.sum(1),
            "harm_seen": (right & (effect < 0)).sum(1),
            "harm": (judged & (effect < 0)).sum(1),
        }

    def _liked(
        self, table: OutcomeTable, rows: NDArray[np.int64], unmasked: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        shape = (len(rows), len(table.sets))
        if self.signal == "chance":
            return rng.random(shape)
        if self.signal == "unmasked":
            return (np.arange(shape[1]) == unmasked[:, None]).astype(np.float64)
        values = np.asarray(getattr(table, self.signal)[rows], dtype=np.float64)
        return -values if self.signal == "entropy" else values
