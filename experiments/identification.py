"""How well estimators of utility find the exact effects of an attribution table, for what they spend on reader calls.

The table knows the outcome of every mask, so that each estimate is held against enumeration: no second estimate stands
in for the truth. Axes: M rows, N candidates, S = 2**N masks.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..agents.estimators.interface import CountedReader, Estimator, Pool, TrainingPool
from ..backends.estimation import metrics, values
from ..backends.estimation.effects import Effects
from ..backends.interventions.sets import bit_codes, reading_sets
from ..envs.causal_memory import CausalMemoryConfig
from ..envs.outcomes.table import OutcomeTable
from ..policies.base import Policy
from .evaluators import split_rows
from .store import Records

EXACT = {
    "banzhaf": values.banzhaf,
    "shapley": values.shapley,
    "leave_one_out": values.leave_one_out,
    "add_one_in": values.add_one_in,
    "order": values.banzhaf,
}
"""What each estimand is, from outcomes (S,) by bit code; a proxy is scaled to Banzhaf values by what it learned."""
OUTCOMES = ("u_ref", "u_self")
ROUNDING = 1e-9  # nats: an exact interval is a point, and sums in another order differ by less


@dataclass(frozen=True)
class Identification:
    """Lets an estimator spend a budget of reader calls on every row of an attribution table.

    Pooled estimators learn from rows of other package families only: families are dealt into folds, and the rows of a
    fold are estimated by what was learned on the other folds. The masks of a row depend on the trial's seed and the
    row, so that estimators of one design are compared on the same masks.

    Attributes:
        estimator: The estimator.
        split: Questions that are asked; nothing is trained on a split here, so all of them by default.
        budget: Most distinct reader calls a row.
        outcome: ``u_ref``, or ``u_self``, what production could measure.
        folds: Number of folds of families.
        held_out: Most masks, of those not asked, that predictions are compared with (LDS).
        top: Candidates that are taken away for the top-k drop.
        sever: Cut one candidate's bit off from the outcome, so that its effect is exactly 0 (negative control).
        placebo: Deal the outcomes to the masks at random, so that no candidate has an effect beyond chance.
    """

    estimator: Estimator
    split: str = "all"
    budget: int = 32
    outcome: str = "u_ref"
    folds: int = 3
    held_out: int = 64
    top: int = 2
    sever: bool = False
    placebo: bool = False

    def __post_init__(self) -> None:
        if self.outcome not in OUTCOMES:
            raise ValueError(f"outcome must be one of {', '.join(OUTCOMES)}, got {self.outcome!r}")
        if self.folds < 2:
            raise ValueError(f"folds must be at least 2, or nothing is left to learn from; got {self.folds}")

    def __call__(
        self, policy: Policy, env_config: CausalMemoryConfig, replay: CausalMemoryConfig | None, seed: int
    ) -> Records:
        """Returns what each row's estimate was worth, (M,); the policy and the replay play no part."""
        table = env_config.load_table()
        rows = split_rows(table, self.split)
        games = outcomes_by_code(table, rows, self.outcome)  # (M, S)
        pools = [
            TrainingPool(pool_of(table, r), game, attention_of(table, r)) for r, game in zip(rows, games, strict=True)
        ]
        fold = family_folds(table.family[rows // table.conditions], self.folds)  # (M,)
        fitted = [
            self.estimator.fit([p for p, f in zip(pools, fold, strict=True) if f != k]) for k in range(self.folds)
        ]
        found = [
            self._row(fitted[fold[i]], pools[i], np.random.default_rng([seed, int(row)])) for i, row in enumerate(rows)
        ]
        return {
            "row": rows,
            "family": table.family[rows // table.conditions],
            **{name: np.array([one[name] for one in found]) for name in found[0]},
        }

    def _row(self, estimator: Estimator, known: TrainingPool, rng: np.random.Generator) -> dict[str, float]:
        size = known.pool.size
        game, severed = known.outcomes, -1
        controls = np.random.default_rng(rng.integers(2**63))  # its own stream: equal masks with and without controls
        if self.sever:
            severed = int(controls.integers(size))
            game = game[np.arange(len(game)) & ~(1 << severed)]
        if self.placebo:
            game = controls.permutation(game)
        reader = CountedReader(
            lambda masks: game[bit_codes(masks)], lambda: known.attention, pool=size, budget=self.budget
        )
        effects = estimator.estimate(known.pool, reader, rng)
        truth = np.zeros(size) if self.placebo else EXACT[estimator.estimand](game)  # (N,)
        return {
            "calls": reader.calls,
            "covered": float(covered(effects, truth).sum()),
            "intervals": float(np.isfinite(effects.low).sum()),
            "width": float(np.nansum(effects.high - effects.low)),
            "null_covered": float(covered(effects, truth)[severed]) if self.sever else 0.0,
            "null_intervals": float(np.isfinite(effects.low[severed])) if self.sever else 0.0,
            **self._agreement(effects, game, reader, controls),
        }

    def _agreement(
        self, effects: Effects, game: NDArray[np.float64], reader: CountedReader, rng: np.random.Generator
    ) -> dict[str, float]:
        """Against the Banzhaf values, whatever the estimand is: all estimators are asked which memory mattered."""
        exact = values.banzhaf(game)
        masks = reading_sets(reader.pool, reader.pool)
        unasked = masks[[code not in reader.asked for code in bit_codes(masks).tolist()]]
        chosen = unasked[rng.permutation(len(unasked))[: self.held_out]]
        return {
            "error": metrics.rmse(effects.values, exact),
            "rank_correlation": metrics.rank_correlation(effects.values, exact),
            "lds": metrics.lds(chosen @ effects.values, game[bit_codes(chosen)]) if len(chosen) else 0.0,
            "predicted": float(len(chosen) > 0),
            "drop": metrics.top_k_drop(game, effects.values, self.top),
        }


def covered(effects: Effects, truth: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Returns which intervals (N,) hold the truth; a candidate without an interval has none that does."""
    return (effects.low - ROUNDING <= truth) & (truth <= effects.high + ROUNDING)


def outcomes_by_code(table: OutcomeTable, rows: NDArray[np.int64], outcome: str) -> NDArray[np.float64]:
    """Returns (M, 2**N) float64 outcomes indexed by the bit code of the mask.

    Raises:
        ValueError: The table lacks some subsets.
    """
    if table.budget < table.pool:
        raise ValueError(
            f"{table.meta['name']} shows at most {table.budget} of {table.pool} candidates, so that effects are not "
            "known exactly; expected an attribution table (budget = pool), such as env.table=apidocs_attribution"
        )
    stored: NDArray[np.float32] = getattr(table, outcome)
    return stored[rows][:, table.lookup].astype(np.float64)


def pool_of(table: OutcomeTable, row: int) -> Pool:
    """Returns what is known of a row before the reader is called."""
    return Pool(table.query[row // table.conditions], table.scores[row], table.ranks[row], table.content[row])


def attention_of(table: OutcomeTable, row: int) -> NDArray[np.float32]:
    """Returns the shares of attention (N,) of a row.

    Raises:
        ValueError: The table has none.
    """
    if table.attention is None:
        raise ValueError(f"{table.meta['name']} has no attention; build it again with `recallgym outcomes build`")
    return np.asarray(table.attention[row])


def family_folds(family: NDArray[np.uint8], folds: int) -> NDArray[np.int64]:
    """Deals families into folds of about equal size, the largest families first; returns the fold of each row (M,).

    Raises:
        ValueError: There are fewer families than folds.
    """
    names, counts = np.unique(family, return_counts=True)
    if len(names) < folds:
        raise ValueError(f"{folds} folds need as many families, got {len(names)}")
    filled = np.zeros(folds, dtype=np.int64)
    place: dict[int, int] = {}
    for i in _largest_first(counts):
        place[int(names[i])] = fold = int(filled.argmin())
        filled[fold] += counts[i]
    return np.array([place[int(f)] for f in family])


def _largest_first(counts: NDArray[np.int64]) -> Iterable[int]:
    return np.argsort(-counts, kind="stable").tolist()
