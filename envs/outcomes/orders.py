"""How much the order of the shown passages alone moves the outcome, which a table leaves out: it knows one order a set.

Axes: Q questions, S reading sets of at least two candidates, O orders of a set.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from ...backends.readers.reader import Reader
from ...backends.text import exact_match
from .check import keep_all_columns, passage_texts, recorded_reader
from .table import OutcomeTable, TableError

MOST_SHOWN = 4
"""Passages whose orders are audited: six candidates have 360 orders of four, eight have 40,320 of eight."""
Progress = Callable[[int, int], None]
"""Called with (questions done, questions in all)."""


@dataclass(frozen=True, eq=False)
class Orders:
    """Outcomes of one row under every order of every reading set.

    Attributes:
        u_ref: For each column of the table, (O,) nats a token, the table's order first.
        exact_match: The same for the greedy answer: 1 where it is right.
    """

    u_ref: dict[int, NDArray[np.float64]]
    exact_match: dict[int, NDArray[np.uint8]]


@dataclass(frozen=True)
class OrderAudit:
    """What order alone does. Means over questions; utilities in nats a token.

    Attributes:
        questions: Number of questions.
        order_sd: Standard deviation of U_ref over the orders of a set, root mean square over sets of two or more.
        set_sd: Standard deviation over those sets of U_ref averaged over a set's orders.
        keep_all_range: Best minus worst order of the unmasked reading.
        same_best: Share of questions whose best set is the same under the table's order and averaged over orders.
        lost: What choosing by the table's order loses, in U_ref averaged over orders.
        flipped: Share of sets of two or more whose answer is right under one order and wrong under another.
    """

    questions: int
    order_sd: float
    set_sd: float
    keep_all_range: float
    same_best: float
    lost: float
    flipped: float

    def lines(self) -> list[str]:
        """Returns the audit, a line each."""
        return [
            f"{self.questions} questions, every order of every reading set, healthy retrieval; nats a token",
            f"order alone moves U_ref by {self.order_sd:.3f} (standard deviation over the orders of a set); "
            f"which set is read moves it by {self.set_sd:.3f}",
            f"the unmasked reading: best order minus worst {self.keep_all_range:.3f}",
            f"the best set is the same by the table's order and over all orders for {self.same_best:.0%} of questions; "
            f"choosing by the table's order loses {self.lost:.3f}",
            f"{self.flipped:.1%} of sets are answered rightly in one order and wrongly in another",
        ]


def audit_orders(
    table: OutcomeTable,
    *,
    questions: int = 50,
    seed: int = 0,
    device: str = "cpu",
    progress: Progress | None = None,
) -> OrderAudit:
    """Scores every order of every reading set of some questions with the table's own reader.

    Args:
        table: The table; its passages are extracted from the installed packages.
        questions: How many questions, drawn among those whose passages could be extracted.
        seed: Seed of that draw.
        device: Torch device of the reader.
        progress: Called after every question.

    Raises:
        TableError: No pool could be extracted, or the installed reader is another one.
        FileNotFoundError: The reader is not installed.
    """
    if table.budget > MOST_SHOWN:
        raise TableError(
            f"{table.meta['name']} shows up to {table.budget} passages at once, whose orders are too many to score; "
            f"expected a table with a budget of at most {MOST_SHOWN}, such as apidocs"
        )
    texts = passage_texts(table)
    rows = np.arange(0, table.rows, table.conditions)
    whole = rows[np.isin(table.passage[rows], list(texts)).all(1)]
    if not len(whole):
        raise TableError("no pool could be extracted: the installed packages have other versions than the table's")
    reader = recorded_reader(table, device)
    chosen = np.random.default_rng(seed).choice(whole, size=min(questions, len(whole)), replace=False)
    found = []
    for done, row in enumerate(chosen, start=1):
        question = table.meta["questions"][row // table.conditions]
        pool = [texts[i] for i in table.passage[row]]
        found.append(score_orders(reader, question["text"], question["answer"], pool, table))
        if progress:
            progress(done, len(chosen))
    return summarise(found, keep_all_columns(table)[chosen])


def score_orders(reader: Reader, question: str, answer: str, pool: list[str], table: OutcomeTable) -> Orders:
    """Scores every order of every reading set of one pool; prompts that share a beginning share its cost."""
    places = list(permutations(range(table.pool), table.budget))  # each also holds the shorter orders it begins with
    beginnings = np.tri(table.budget + 1, table.budget, -1, dtype=bool)  # (k + 1, k): the first 0, 1, ... k places
    scored = reader.score_pools(question, answer, [[pool[i] for i in order] for order in places], beginnings)
    u_ref: dict[int, dict[tuple[int, ...], float]] = {}
    right: dict[int, dict[tuple[int, ...], bool]] = {}
    for order, outcomes in zip(places, scored, strict=True):
        for size in range(table.budget + 1):
            shown = order[:size]
            column = int(table.lookup[sum(1 << i for i in shown)])
            u_ref.setdefault(column, {})[shown] = float(outcomes.u_ref[size])
            right.setdefault(column, {})[shown] = exact_match(outcomes.answers[size], answer)
    return Orders(
        {column: np.array([of[shown] for shown in sorted(of)]) for column, of in u_ref.items()},
        {column: np.array([of[shown] for shown in sorted(of)], dtype=np.uint8) for column, of in right.items()},
    )


def summarise(orders: list[Orders], keep_all: NDArray[np.integer]) -> OrderAudit:
    """Returns what order alone does.

    Args:
        orders: Outcomes of each of Q rows.
        keep_all: (Q,) the column of the unmasked reading.
    """
    within, between, ranges, same, lost, flipped = [], [], [], [], [], []
    for row, unmasked in zip(orders, keep_all.tolist(), strict=True):
        several = [column for column, values in row.u_ref.items() if len(values) > 1]
        mean = {column: values.mean() for column, values in row.u_ref.items()}
        within += [row.u_ref[column].var() for column in several]
        between.append(np.var([mean[column] for column in several]))
        ranges.append(np.ptp(row.u_ref[unmasked]))
        first = {column: values[0] for column, values in row.u_ref.items()}
        by_table = max(first, key=first.__getitem__)
        best = max(mean, key=mean.__getitem__)
        same.append(by_table == best)
        lost.append(mean[best] - mean[by_table])
        flipped += [np.ptp(row.exact_match[column]) > 0 for column in several]
    return OrderAudit(
        questions=len(orders),
        order_sd=float(np.sqrt(np.mean(within))),
        set_sd=float(np.sqrt(np.mean(between))),
        keep_all_range=float(np.mean(ranges)),
        same_best=float(np.mean(same)),
        lost=float(np.mean(lost)),
        flipped=float(np.mean(flipped)),
    )
