"""The outcome table: what a frozen reader did under every reading set of every question, enumerated once.

A table is a directory: ``table.json`` names everything and holds a checksum of each array beside it.
Row r = question * conditions + condition, so a row needs no lookup. No third-party text is in it.
"""

import hashlib
import json
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...backends.interventions.sets import reading_sets, set_lookup
from ...backends.storage import file_digest

FORMAT = "recallgym-outcome-table"
FORMAT_VERSION = 1
RELATIONS = ("gold", "equivalent", "contradicting", "stale", "silent")
SPLITS = ("train", "validation", "test")


class TableError(ValueError):
    """An outcome table that cannot be trusted: missing, truncated, edited or of another format."""


@dataclass(frozen=True, eq=False)
class OutcomeTable:
    """Outcomes of R = Q x C rows under S reading sets over pools of N candidates, at most k shown.

    Attributes:
        u_ref: (R, S) float32, nats a token: mean log-probability of the reference answer. Never observed.
        u_self: (R, S) float32, nats a token: the same for the answer that the reader generated.
        entropy: (R, S) float32, nats: mean entropy over the generated tokens.
        exact_match: (R, S) uint8; f1: (R, S) float32 in [0, 1]: the generated answer against the reference.
        answer: (R, S) int32: index of the generated answer in ``meta["answers"]``.
        tokens: (R, S) uint16: prompt tokens; seconds: (R,) float32: time that the row's enumeration took.
        query: (Q, d) float32: embedding of the question, not normalised.
        noised: (V, Q, d) float16: embeddings of its noised variants, named in ``meta["noises"]``.
        domain: (Q, m) float32: intent and keyword features of the question's words.
        passage: (R, N) int32: index in ``meta["passages"]``, in pool order (the canonical order).
        ranks: (R, N, 2) int16 and scores: (R, N, 2) float32: by the retrievers in ``meta["retrievers"]``;
            ranks start at 0; scores are those of the (possibly degraded) query that retrieved.
        content: (R, N, F) float32: query-passage features of each candidate, named in ``meta``; no label.
        relation: (R, N) uint8: index into ``RELATIONS``; for strata and reports, never observed.
        strata: (R, T) bool, named in ``meta["strata"]``.
        split: (Q,) uint8 index into ``SPLITS``; family: (Q,) uint8 index into ``meta["families"]``.
        meta: everything else, as stored in ``table.json``.
        attention: (R, N) float32 in [0, 1], of attribution tables: the share of the reader's attention that each
            candidate gets while it answers with all of them in sight.
    """

    u_ref: NDArray[np.float32]
    u_self: NDArray[np.float32]
    entropy: NDArray[np.float32]
    exact_match: NDArray[np.uint8]
    f1: NDArray[np.float32]
    answer: NDArray[np.int32]
    tokens: NDArray[np.uint16]
    seconds: NDArray[np.float32]
    query: NDArray[np.float32]
    noised: NDArray[np.float16]
    domain: NDArray[np.float32]
    passage: NDArray[np.int32]
    ranks: NDArray[np.int16]
    scores: NDArray[np.float32]
    content: NDArray[np.float32]
    relation: NDArray[np.uint8]
    strata: NDArray[np.bool_]
    split: NDArray[np.uint8]
    family: NDArray[np.uint8]
    meta: dict[str, Any] = field(repr=False)
    attention: NDArray[np.float32] | None = None

    @property
    def rows(self) -> int:
        """Number of rows R."""
        return self.u_ref.shape[0]

    @property
    def questions(self) -> int:
        """Number of questions Q."""
        return self.query.shape[0]

    @property
    def conditions(self) -> int:
        """Number of retrieval conditions C that each question is stored under."""
        return len(self.meta["conditions"])

    @property
    def pool(self) -> int:
        """Number of candidates N."""
        return self.passage.shape[1]

    @property
    def budget(self) -> int:
        """Most candidates k that the reader is shown."""
        return int(self.meta["budget"])

    @cached_property
    def sets(self) -> NDArray[np.bool_]:
        """Bits of the reading sets, (S, N), in the order of the outcome columns."""
        return reading_sets(self.pool, self.budget)

    @cached_property
    def lookup(self) -> NDArray[np.int16]:
        """Bit code to outcome column, (2**N,); -1 where more than k bits are set."""
        return set_lookup(self.pool, self.budget)

    @property
    def fingerprint(self) -> str:
        """Digest of everything stored: arrays, questions, passages, prompt and versions."""
        return str(self.meta["fingerprint"])

    def question_ids(self, split: str | None = None) -> NDArray[np.int64]:
        """Returns the indices of the questions of one split (train, validation, test), or of all."""
        if split in (None, "all"):
            return np.arange(self.questions)
        if split not in SPLITS:
            raise ValueError(f"split must be one of {', '.join(SPLITS)} or all, got {split!r}")
        return np.flatnonzero(self.split == SPLITS.index(split))

    def save(self, path: str | Path) -> Path:
        """Writes the table as a directory and returns it. The fingerprint is computed here."""
        path = Path(path)
        path.mkdir(parents=True, exist_ok=True)
        meta = {k: v for k, v in self.meta.items() if k not in ("arrays", "fingerprint")}
        meta |= {"format": FORMAT, "format_version": FORMAT_VERSION, "arrays": {}}
        for name in array_names():
            if getattr(self, name) is None:
                continue
            array = np.ascontiguousarray(getattr(self, name))
            np.save(path / f"{name}.npy", array)
            digest = file_digest(path / f"{name}.npy")
            meta["arrays"][name] = {"sha256": digest, "shape": list(array.shape), "dtype": str(array.dtype)}
        meta["fingerprint"] = _fingerprint(meta)
        (path / "table.json").write_text(_canonical(meta), encoding="utf-8")
        return path


def array_names() -> list[str]:
    """Names of the arrays that a table stores, each in a file of its own; only attribution tables have attention."""
    return [f.name for f in fields(OutcomeTable) if f.name != "meta"]


def load_table(path: str | Path) -> OutcomeTable:
    """Loads a table with its arrays memory-mapped, after checking every checksum.

    Args:
        path: Directory of the table.

    Raises:
        TableError: A file is missing, truncated, edited or of another format; the message names it.
    """
    path = Path(path)
    index = path / "table.json"
    if not index.is_file():
        raise TableError(
            f"{index}: missing, so no outcome table here; build one with `recallgym outcomes build --out {path}`"
        )
    try:
        text = index.read_text(encoding="utf-8")
        meta = json.loads(text)
    except ValueError as error:
        raise TableError(f"{index}: not valid JSON ({error}); the file is truncated or edited") from None
    if not isinstance(meta, dict) or meta.get("format") != FORMAT or meta.get("format_version") != FORMAT_VERSION:
        raise TableError(f"{index}: not a {FORMAT} of version {FORMAT_VERSION}")
    if _fingerprint(meta) != meta.get("fingerprint") or text != _canonical(meta):
        raise TableError(f"{index}: its content does not match its fingerprint; the file was edited")
    if {*meta["arrays"], "attention"} != set(array_names()):
        raise TableError(f"{index}: expected the arrays {', '.join(array_names())}; found {', '.join(meta['arrays'])}")
    arrays = {}
    for name, entry in meta["arrays"].items():
        file = path / f"{name}.npy"
        if not file.is_file():
            raise TableError(f"{file}: missing")
        if file_digest(file) != entry["sha256"]:
            raise TableError(f"{file}: checksum differs from table.json; the file is truncated or edited")
        arrays[name] = np.load(file, mmap_mode="r")
    return OutcomeTable(**arrays, meta=meta)


def _canonical(meta: dict[str, Any]) -> str:
    return json.dumps(meta, ensure_ascii=False, indent=1) + "\n"


def _fingerprint(meta: dict[str, Any]) -> str:
    content = {k: v for k, v in meta.items() if k != "fingerprint"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
