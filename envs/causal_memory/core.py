"""The dynamics of CausalMemory: sessions, readings and prices, for one environment or many.

Every function takes integers or arrays (B,) alike, so the single and the vector environment run the same code.
Most of a step is a lookup: what a bit mask lets the reader see is decided once for every row and mask.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...backends.interventions.intervene import intervene
from ...backends.interventions.observation import encode, rank_features
from ...backends.interventions.scores import rejection_threshold, top_k
from ...backends.interventions.sets import bit_codes
from .. import draws
from ..outcomes.table import RELATIONS, OutcomeTable
from .config import CausalMemoryConfig
from .live import Outcomes, TabularOutcomes

FAMILY, CONDITION, QUESTION, SWITCH = range(4)
"""Streams of the counter-based draws."""

HARMFUL = ("contradicting", "stale")
"""Relations of a candidate to the question that count as harmful exposure when it is read."""

UNLIMITED = 2**62
"""Tokens left where a session has no budget."""


class Choice(NamedTuple):
    """What an action asks for, before the token budget.

    Attributes:
        column: Reading set, as a column of the table.
        searched: Whether the retriever ran.
        fell_back: Whether the fallback chose the set.
        rejected: Bit code of the rejected candidates.
    """

    column: Any
    searched: Any
    fell_back: Any
    rejected: Any

    def at(self, i: int) -> "Choice":
        """Returns element i of a batch."""
        return Choice(*(array[i] for array in self))


class Step(NamedTuple):
    """Outcome of a step; all but the last two are the step's ``info``. Tokens are context tokens.

    Attributes:
        row: Question x condition row that was answered.
        set: Column of the reading set that was read, after the token budget.
        utility: U_ref of the set minus U_ref of the keep-all reading, nats a token; positive is good.
        u_ref: U_ref of the set.
        tokens: Tokens read.
        searched: Whether the retriever ran.
        fell_back: Whether the fallback chose the set.
        rejected: Number of rejected candidates.
        leaked: Number of rejected candidates that were read all the same.
        harmful: Number of contradicting or stale candidates that were read.
        exact_match: Whether the greedy answer is right, 0 or 1.
        f1: Token F1 of the greedy answer.
        regret: Best net utility of any reading set of this row minus the step's reward, not counting the budget;
            NaN where outcomes are live.
        reward: Net utility.
        feedback: U_self and entropy of the answer that the reader generated.
    """

    row: Any
    set: Any
    utility: Any
    u_ref: Any
    tokens: Any
    searched: Any
    fell_back: Any
    rejected: Any
    leaked: Any
    harmful: Any
    exact_match: Any
    f1: Any
    regret: Any
    reward: Any
    feedback: tuple[Any, Any]


INFO_KEYS = Step._fields[:-2]


def net_utility(utility: Any, tokens: Any, searched: Any, config: CausalMemoryConfig) -> Any:
    """Returns what a reading is worth, in nats a token: the one definition of reward, regret and oracle.

    Args:
        utility: U_ref of the reading minus U_ref of the keep-all reading.
        tokens: Context tokens read.
        searched: Whether the retriever ran.
        config: Holds the prices.
    """
    return utility - config.token_price * (tokens / 100) - config.search_price * searched


class Dynamics:
    """A configuration bound to its table.

    Args:
        config: The environment's configuration.
        outcomes: Where outcomes come from; the table by default.

    Attributes:
        config: The configuration.
        table: The outcome table.
        layout: Layout of the observations.
        static: (R, D) float32: the observation of each row, with feedback and budget left at zero.
        keep_all: (R,) column of the unmasked top k of the primary retriever.
        sizes: (S,) number of candidates in each reading set.
        context: (R, S) context tokens, and net: (R, S) net utilities with the cheapest way to read each set (the
            empty set without a search where early exit allows it); both None where outcomes are live.

    Raises:
        ValueError: The configuration does not fit the table.
    """

    def __init__(self, config: CausalMemoryConfig, outcomes: Outcomes | None = None) -> None:
        self.config = config
        self.table = table = config.load_table()
        self.layout = config.layout(table)
        self.outcomes: Outcomes = outcomes or TabularOutcomes(table)
        self.static = _static_observation(config, table)
        self.limit = UNLIMITED if config.token_budget is None else int(config.token_budget)
        self._feedback = self.layout.slice("feedback").start if "feedback" in self.layout.names else None
        self._budget = self.layout.slice("budget").start if "budget" in self.layout.names else None
        self._members, self._family_sizes = _families(config, table)

        if not np.isfinite(table.scores).all():
            raise ValueError("the table's retrieval scores must be finite: every candidate needs one by each retriever")
        self._scores = np.asarray(table.scores, dtype=np.float64)  # (R, N, 2)
        self._threshold = _thresholds(config, table)  # (R,)
        self.keep_all = self._columns(top_k(self._scores[..., 0], table.budget))  # (R,)

        self._codes = bit_codes(table.sets)  # (S,)
        self.sizes = table.sets.sum(axis=1)  # (S,)
        last = np.where(self.sizes > 0, 1 << (table.pool - 1 - table.sets[:, ::-1].argmax(axis=1)), 0)
        self._drop = table.lookup[self._codes ^ last].astype(np.int64)  # (S,) the set without its last candidate
        self._popcount = np.array([code.bit_count() for code in range(1 << table.pool)])  # (2**N,)
        harmful = np.isin(table.relation, [RELATIONS.index(name) for name in HARMFUL])  # (R, N)
        self._harmful = bit_codes(harmful)  # (R,)
        if config.action == "bits":
            self._bits = self._enumerate_bits()

        self.context: NDArray[np.int64] | None = None
        self.net: NDArray[np.float64] | None = None
        self._best = np.full(table.rows, np.nan)  # (R,)
        if outcomes is None:
            rows, columns = np.arange(table.rows)[:, None], np.arange(len(table.sets))
            u_ref = self.outcomes.outcome("u_ref", rows, columns)  # (R, S)
            utility = u_ref - np.take_along_axis(u_ref, self.keep_all[:, None], axis=1)
            self.context = self.outcomes.outcome("context", rows, columns)
            self.net = net_utility(utility, self.context, (columns > 0) | (not config.early_exit), config)
            self._best = self.net.max(axis=1)

    def session_rows(self, seeds: draws.Counter, episodes: draws.Counter) -> NDArray[np.int64]:
        """Draws the rows of whole sessions: they do not depend on what is done in them.

        A session draws a family of the split's, a retrieval condition, and for each step a question of the family,
        with replacement; between steps the condition changes with probability ``switch``.

        Args:
            seeds: Seeds (B,).
            episodes: Episode numbers (B,).

        Returns:
            Rows (B, T).
        """
        seeds, episodes = draws.as_uint64(seeds)[:, None], draws.as_uint64(episodes)[:, None]
        start = draws.uniform(seeds, episodes, 0, np.array([FAMILY, CONDITION]))  # (B, 2)
        streams = np.array([QUESTION, SWITCH])[:, None, None]
        question_u, switch_u = draws.uniform(seeds, episodes, np.arange(self.config.steps), streams)  # (B, T) each
        family = draws.index(start[:, :1], len(self._family_sizes))  # (B, 1)
        question = self._members[family, draws.index(question_u, self._family_sizes[family])]  # (B, T)
        conditions = self.table.conditions
        condition = draws.index(start[:, 1:], conditions)  # (B, 1)
        if conditions > 1 and self.config.switch > 0:
            u = switch_u / self.config.switch  # below 1 the condition changes, and u says to which
            shift = np.where(u < 1, 1 + draws.index(np.minimum(u, 1 - 1e-12), conditions - 1), 0)
            shift[:, 0] = 0
            condition = (condition + shift.cumsum(axis=1)) % conditions
        return question * conditions + condition

    def choose_bits(self, rows: Any, codes: Any) -> Choice:
        """Looks up what bit actions lead to.

        Args:
            rows: Rows, an integer or (B,).
            codes: Bit codes of the N+1 action bits, likewise.
        """
        columns, fell_back, searched, rejected = self._bits
        return Choice(columns[rows, codes], searched[codes], fell_back[rows, codes], rejected[codes])

    def choose_weights(self, rows: NDArray[np.int64], weights: NDArray[np.floating]) -> Choice:
        """Works out what weights (B, N+1) lead to in rows (B,)."""
        return self._choose(rows, weights[:, :-1], weights[:, -1] >= 0.5, 1.0, self._threshold[rows])

    def step(self, rows: Any, choice: Choice, left: Any) -> Step:
        """Reads.

        Args:
            rows: Rows, an integer or (B,).
            choice: What the action asks for.
            left: Tokens left in the session. Where the set does not fit, its last candidates are dropped.
        """
        outcome = self.outcomes.outcome
        columns = choice.column
        tokens = outcome("context", rows, columns)
        while (over := tokens > left).any():
            columns = np.where(over, self._drop[columns], columns)[()]
            tokens = outcome("context", rows, columns)
        u_ref = outcome("u_ref", rows, columns)
        utility = u_ref - outcome("u_ref", rows, self.keep_all[rows])
        reward = net_utility(utility, tokens, choice.searched, self.config)
        codes = self._codes[columns]
        return Step(
            row=rows,
            set=columns,
            utility=utility,
            u_ref=u_ref,
            tokens=tokens,
            searched=choice.searched,
            fell_back=choice.fell_back,
            rejected=self._popcount[choice.rejected],
            leaked=self._popcount[codes & choice.rejected],
            harmful=self._popcount[codes & self._harmful[rows]],
            exact_match=outcome("exact_match", rows, columns),
            f1=outcome("f1", rows, columns),
            regret=self._best[rows] - reward,
            reward=reward,
            feedback=(outcome("u_self", rows, columns), outcome("entropy", rows, columns)),
        )

    def observe(self, rows: Any, feedback: tuple[Any, Any], left: Any, step: int) -> NDArray[np.float32]:
        """Encodes what the policy sees.

        Args:
            rows: Rows to be answered, an integer or (B,).
            feedback: U_self and entropy of the previous step; zeros at the first.
            left: Tokens left.
            step: Number of steps done.

        Returns:
            A new observation (D,) or (B, D), float32, within the layout's bounds.
        """
        observation = self.static.take(rows, axis=0)
        if self._feedback is not None:
            observation[..., self._feedback], observation[..., self._feedback + 1] = feedback
        if self._budget is not None:
            observation[..., self._budget] = left / self.limit
            observation[..., self._budget + 1] = 1 - step / self.config.steps
        return observation

    def _enumerate_bits(self) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_], NDArray[np.int64]]:
        """Decides all A = 2**(N+1) bit actions of every row: columns, fell_back (R, A); searched, rejected (A,)."""
        table = self.table
        actions = (np.arange(2 << table.pool)[:, None] >> np.arange(table.pool + 1)) & 1  # (A, N+1)
        rows = np.repeat(np.arange(table.rows), len(actions))  # (R*A,)
        mask = np.tile(actions[:, :-1].astype(np.float64), (table.rows, 1))  # (R*A, N)
        choice = self._choose(rows, mask, np.tile(actions[:, -1] == 1, table.rows), self.config.alpha, 0.5)
        shape = (table.rows, len(actions))
        searched, rejected = choice.searched[: len(actions)], choice.rejected[: len(actions)]
        return choice.column.reshape(shape), choice.fell_back.reshape(shape), searched, rejected

    def _choose(
        self, rows: NDArray[np.int64], mask: NDArray, search: NDArray[np.bool_], alpha: float, threshold: ArrayLike
    ) -> Choice:
        config = self.config
        reading = intervene(
            self._scores[rows],
            mask,
            mode=config.mode,
            k=self.table.budget,
            alpha=alpha,
            threshold=threshold,
            fallback=config.fallback,
            backfill=config.backfill,
        )
        searched = (search & ~reading.rejected.all(axis=1)) if config.early_exit else np.ones(len(rows), dtype=bool)
        columns = np.where(searched, self._columns(reading.bits), 0)
        return Choice(columns, searched, searched & reading.fell_back, bit_codes(reading.rejected))

    def _columns(self, bits: NDArray[np.bool_]) -> NDArray[np.int64]:
        return self.table.lookup[bit_codes(bits)].astype(np.int64)


def _families(config: CausalMemoryConfig, table: OutcomeTable) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the questions of each of the split's F families, padded with zeros (F, M), and how many they are (F,)."""
    questions = table.question_ids(config.split)
    if not len(questions):
        raise ValueError(f"the table {table.meta['name']!r} has no questions in the split {config.split!r}")
    families = [questions[table.family[questions] == family] for family in np.unique(table.family[questions])]
    sizes = np.array([len(members) for members in families])
    padded = np.zeros((len(families), sizes.max()), dtype=np.int64)
    for i, members in enumerate(families):
        padded[i, : len(members)] = members
    return padded, sizes


def _thresholds(config: CausalMemoryConfig, table: OutcomeTable) -> NDArray[np.floating]:
    """Returns the rejection threshold of each row (R,)."""
    kind, base = config.threshold.kind, config.threshold.base
    norms = np.linalg.norm(table.query, axis=1)  # (Q,)
    train = table.question_ids("train")
    if kind != "fixed" and not len(train):
        raise ValueError(f"threshold kind {kind!r} needs questions in the training split for its reference norm")
    reference = float(norms[train].mean()) if len(train) else 1.0
    return np.repeat(rejection_threshold(base, norms, kind, reference), table.conditions)


def _static_observation(config: CausalMemoryConfig, table: OutcomeTable) -> NDArray[np.float32]:
    """Returns the observation (R, D) of every row with feedback and budget at zero."""
    noises = table.meta["noises"]
    if config.noise is not None and config.noise not in noises:
        raise ValueError(f"noise must be one of {', '.join(noises)}, or None; got {config.noise!r}")
    query = table.query if config.noise is None else table.noised[noises.index(config.noise)]
    question, condition = np.divmod(np.arange(table.rows), table.conditions)
    parts = {
        "query": query[question],
        "domain": table.domain[question],
        "feedback": np.zeros((table.rows, 2)),
        "budget": np.zeros((table.rows, 2)),
        "ranks": rank_features(table.scores, table.ranks),
        "content": table.content,
        "memory": table.passage,
        "latent": np.eye(table.conditions)[condition],
    }
    return encode(config.layout(table), parts)
