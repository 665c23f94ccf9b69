"""What a gate's decisions tell of the memories that they gate, and which harmful ones it keeps.

Section 5.2: a gate that sees memory content learns "memory present means high mask". Axes: M rows, P pools that each
query is decided under, N candidates.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from ..agents.rollout import acting
from ..backends.estimation.information import leakage
from ..backends.interventions.observation import CONTENT_BLOCKS
from ..envs.causal_memory import CausalMemoryConfig
from ..policies.base import Policy
from .evaluators import main_effects, split_rows
from .store import Records


@dataclass(frozen=True)
class GuardedDecisions:
    """Asks for the decisions at the start of a session, for each query under its own pool and under others.

    Under its own pool, kept candidates are held against their exact main effects on U_ref. Under ``pools`` pools, its
    own among them, the guard measures the information of keep-bit and kind of memory (what the candidate states) given
    query and position: whatever the gate knows of a candidate beyond these two, it has from the pool.

    Attributes:
        split: Split whose questions are asked, under every retrieval condition.
        pools: Pools P that each row's query is decided under.
        permutations: Of the guard's null.
        margin: Nats; effects below it in size count neither way.
        truth: Keep what helps and reject what harms, whatever the policy says: the ceiling.
    """

    split: str = "test"
    pools: int = 16
    permutations: int = 199
    margin: float = 0.1
    truth: bool = False

    def __call__(
        self, policy: Policy, env_config: CausalMemoryConfig, replay: CausalMemoryConfig | None, seed: int
    ) -> Records:
        """Returns counts of each row, (M,); what the guard says is the same for all of them."""
        dynamics = replace(env_config, split=self.split).make_vector(1).dynamics
        table, layout = dynamics.table, dynamics.layout
        rng = np.random.default_rng(seed)
        generator = torch.Generator().manual_seed(seed) if policy.stochastic else None
        rows = split_rows(table, self.split)  # (M,)
        effects = main_effects(table, rows)  # (M, N)
        start = (np.zeros(len(rows)), np.zeros(len(rows)))
        own = dynamics.observe(rows, start, np.full(len(rows), dynamics.limit), 0)  # (M, D)

        def decide(observations: NDArray[np.float32], shown: NDArray[np.int64]) -> NDArray[np.bool_]:
            if self.truth:
                return main_effects(table, rows[shown]) > 0
            keep = acting(policy, "bits", generator=generator)(torch.from_numpy(observations))
            bits: NDArray[np.bool_] = keep[:, :-1].numpy() >= 0.5
            return bits

        masks, kinds = [], []
        with torch.no_grad():
            for number in range(self.pools):
                shown = np.arange(len(rows)) if number == 0 else rng.permutation(len(rows))
                observations = own.copy()
                for name in set(CONTENT_BLOCKS) & set(layout.names):
                    observations[:, layout.slice(name)] = own[shown][:, layout.slice(name)]
                masks.append(decide(observations, shown))
                kinds.append(table.relation[rows[shown]])
        mask, kind = np.stack(masks), np.stack(kinds)  # (P, M, N)
        question, position = np.broadcast_arrays((rows // table.conditions)[:, None], np.arange(table.pool))
        strata = np.stack([np.broadcast_to(part, mask.shape).ravel() for part in (question, position)], axis=1)
        if mask.any() and not mask.all():
            found = leakage(mask.ravel(), kind.ravel(), strata, rng, permutations=self.permutations)
            excess, unconditional, alarm = found.excess, found.unconditional, found.alarm
        else:
            excess, unconditional, alarm = 0.0, 0.0, False  # a constant tells nothing
        kept, harmful, helpful = mask[0], effects < -self.margin, effects > self.margin
        return {
            "row": rows,
            "family": table.family[rows // table.conditions],
            "kept_harmful": (kept & harmful).sum(1),
            "harmful_candidates": harmful.sum(1),
            "rejected_helpful": (~kept & helpful).sum(1),
            "helpful_candidates": helpful.sum(1),
            "misjudged": (kept & harmful).sum(1) + (~kept & helpful).sum(1),
            "judged": harmful.sum(1) + helpful.sum(1),
            "conditional_information": np.full(len(rows), excess),
            "unconditional_information": np.full(len(rows), unconditional),
            "alarm": np.full(len(rows), float(alarm)),
            "swapped": (mask != mask[0]).any(axis=(0, 2)),
        }
