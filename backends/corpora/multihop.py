"""Questions of one and of many hops: MuSiQue, HotpotQA, 2WikiMultihopQA, NQ with TriviaQA, StrategyQA, Bamboogle.

Each is read in its own published fields, and in those of samples that bring their paragraphs to one schema
(``paragraphs`` of title, text and is_supporting).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .datasets import DatasetError
from .reading import find, read_json, read_rows, strings, take
from .records import Passage, PooledQuestion, Step, distinct

SETS: Mapping[str, str] = {
    "musique": "musique*.json*",
    "hotpotqa": "hotpot*.json*",
    "2wikimultihopqa": "*wiki*.json*",
    "single_hop": "*odqa*.json*",
    "strategyqa": "strategy*.json*",
    "bamboogle": "bamboogle*.json*",
}
"""Sets by name, and the files that hold them."""


def load_multihop(directory: str | Path, name: str) -> tuple[PooledQuestion, ...]:
    """Loads one of the sets.

    A supporting paragraph is ``gold`` whether it states the answer or a step towards it. Questions that share a
    supporting paragraph are one group: splits that divided them would let a paragraph's utility be learned by heart.

    Args:
        directory: Folder of the data sets, or the one that holds it.
        name: One of :data:`SETS`.

    Raises:
        DatasetError: There is no such set, its file is missing or a row is not as published.
    """
    if name not in SETS:
        raise DatasetError(f"multihop has the sets {', '.join(SETS)}, got {name!r}")
    path = find(directory, "multihop", SETS[name])
    rows = (
        read_rows(path)
        if path.suffix == ".jsonl"
        else ((f"{path}: row {i}", row) for i, row in enumerate(read_json(path)))
    )
    found = [_question(row, where, name, number) for number, (where, row) in enumerate(rows)]
    groups = _groups([[p.text for p in question.pool if p.relation == "gold"] for question, _ in found])
    return tuple(
        PooledQuestion(group=f"{name}/{group}", **fields) for (_, fields), group in zip(found, groups, strict=True)
    )


def _question(row: Mapping[str, Any], where: str, name: str, number: int) -> tuple[PooledQuestion, dict[str, Any]]:
    raw = row.get("answers", row.get("answer"))
    if isinstance(raw, bool):
        raw = "yes" if raw else "no"
    answers = strings([raw if raw is not None else [], row.get("answer_aliases", [])], where)
    if not answers:
        raise DatasetError(f"{where}: expected an answer, got none in the fields {', '.join(row)}")
    id_ = str(row.get("id", row.get("_id", row.get("qid", number))))
    fields: dict[str, Any] = {
        "id": id_,
        "text": take(row, "question", str, where),
        "answers": answers,
        "pool": distinct(_paragraphs(row, where)),
        "kind": str(row.get("type", row.get("dataset", name))),
        "steps": _steps(row, where),
    }
    return PooledQuestion(group="", **fields), fields


def _paragraphs(row: Mapping[str, Any], where: str) -> list[Passage]:
    if "context" in row:  # HotpotQA and 2Wiki: [title, sentences], and supporting facts by title
        supporting = {fact[0] for fact in take(row, "supporting_facts", list, where)}
        return [
            Passage("".join(sentences).strip(), "gold" if title in supporting else "silent", title)
            for title, sentences in take(row, "context", list, where)
        ]
    passages = []
    for paragraph in take(row, "paragraphs", list, where, []):
        key = "text" if "text" in paragraph else "paragraph_text"  # MuSiQue's own name
        relation = "gold" if take(paragraph, "is_supporting", bool, where) else "silent"
        passages.append(Passage(take(paragraph, key, str, where), relation, take(paragraph, "title", str, where)))
    return passages


def _steps(row: Mapping[str, Any], where: str) -> tuple[Step, ...]:
    steps = take(row, "question_decomposition", list, where, row.get("decomposition", []))
    return tuple(
        Step(step, "")
        if isinstance(step, str)
        else Step(take(step, "question", str, where), str(take(step, "answer", (str, int), where)))
        for step in steps
    )


def _groups(keys: list[list[str]]) -> list[int]:
    """Numbers rows so that rows that share a key, directly or over others, have one number: that of the first."""
    parent = list(range(len(keys)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    owner: dict[str, int] = {}
    for i, texts in enumerate(keys):
        for text in texts:
            first, second = sorted((root(owner.setdefault(text, i)), root(i)))
            parent[second] = first
    return [root(i) for i in range(len(keys))]
