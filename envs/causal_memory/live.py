"""Where outcomes come from: an enumerated table, or a reader that scores what is shown to it."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...backends.interventions.observation import FEEDBACK_LIMIT
from ..outcomes.table import OutcomeTable

FIELDS = ("u_ref", "u_self", "entropy", "context", "exact_match", "f1")
"""What an outcome consists of. ``context`` is the number of prompt tokens above the empty prompt; ``u_self`` and
``entropy`` are clipped to the bounds of the ``feedback`` observation block."""

BOUNDS = {"u_self": (-FEEDBACK_LIMIT, 0.0), "entropy": (0.0, FEEDBACK_LIMIT)}

Index = int | NDArray[np.integer]
"""One row or column, or a batch (B,)."""

Score = Callable[[int, NDArray[np.bool_]], Mapping[str, float]]
"""score(row, bits (N,)) -> u_ref, u_self, entropy, tokens (of the whole prompt), exact_match, f1."""


class Outcomes(Protocol):
    """Answers what the reader does when question-condition row r is read with reading set column s."""

    def outcome(self, name: str, rows: Index, columns: Index) -> Any:
        """Returns one field (of ``FIELDS``) for rows and columns, integers or arrays (B,), in their shape."""


class TabularOutcomes:
    """Outcomes replayed from a table."""

    def __init__(self, table: OutcomeTable) -> None:
        tokens = table.tokens.astype(np.int64)
        self._fields: dict[str, Any] = {
            "u_ref": table.u_ref.astype(np.float64),
            "u_self": np.clip(table.u_self.astype(np.float64), *BOUNDS["u_self"]),
            "entropy": np.clip(table.entropy.astype(np.float64), *BOUNDS["entropy"]),
            "context": np.maximum(tokens - tokens[:, :1], 0),
            "exact_match": table.exact_match.astype(np.int64),
            "f1": table.f1.astype(np.float64),
        }  # each (R, S)

    def outcome(self, name: str, rows: Index, columns: Index) -> Any:
        """Returns one field for rows and columns, integers or arrays (B,), in their shape."""
        return self._fields[name][rows, columns]


class LiveOutcomes:
    """Outcomes computed when they are first asked for, and remembered.

    Values pass through float32, in which tables are stored, so that live and tabular runs agree.

    Args:
        table: Questions and pools; none of its outcomes is read.
        score: Runs the reader on a row with the candidates of ``bits`` shown in pool order.
    """

    def __init__(self, table: OutcomeTable, score: Score) -> None:
        self._sets = table.sets
        self._score = score
        self._seen: dict[tuple[int, int], dict[str, float]] = {}

    @property
    def calls(self) -> int:
        """How many distinct (row, reading set) pairs the reader has scored."""
        return len(self._seen)

    def outcome(self, name: str, rows: Index, columns: Index) -> Any:
        """Returns one field for rows and columns, integers or arrays (B,), in their shape."""
        rows, columns = np.broadcast_arrays(rows, columns)
        values = [self._field(name, r, c) for r, c in zip(rows.ravel().tolist(), columns.ravel().tolist(), strict=True)]
        return np.array(values).reshape(rows.shape)[()]

    def _field(self, name: str, row: int, column: int) -> float:
        if name == "context":  # above the empty prompt, which is reading set 0
            return max(int(self._reading(row, column)["tokens"]) - int(self._reading(row, 0)["tokens"]), 0)
        if name == "exact_match":
            return int(self._reading(row, column)[name])
        low, high = BOUNDS.get(name, (-np.inf, np.inf))
        return min(max(float(np.float32(self._reading(row, column)[name])), low), high)

    def _reading(self, row: int, column: int) -> dict[str, float]:
        if (row, column) not in self._seen:
            self._seen[row, column] = dict(self._score(row, self._sets[column].copy()))
        return self._seen[row, column]
