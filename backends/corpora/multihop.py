"""Questions of one and of many hops: MuSiQue, HotpotQA, 2WikiMultihopQA, NQ with TriviaQA, StrategyQA, Bamboogle.

Each is read in its own published fields, NQ and TriviaQA in those of the MIGRES repository, and all of them also in
those of samples that bring their paragraphs to one schema (``paragraphs`` of title, text and is_supporting).
"""

import ast
import csv
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from .datasets import DatasetError
from .reading import find, read_rows, read_text, strings, take
from .records import Passage, PooledQuestion, Step, distinct

SETS: Mapping[str, str] = {
    "musique": "musique*.json*",
    "hotpotqa": "hotpot*.json*",
    "2wikimultihopqa": "*wiki*.json*",
    "single_hop": "*odqa*.json*",
    "strategyqa": "strategy*.json*",
    "bamboogle": "[Bb]amboogle*.*",
}
"""Sets by name, and the files that hold them."""

_ORIGIN = {"trivia": "triviaqa"}


def load_multihop(directory: str | Path, name: str) -> tuple[PooledQuestion, ...]:
    """Loads one of the sets.

    A supporting paragraph is ``gold`` whether it states the answer or a step towards it. Questions that share a
    supporting paragraph are one group: splits that divided them would let a paragraph's utility be learned by heart.
    Yes and no are the answers of StrategyQA. A question that MuSiQue marks as not answerable has no answers.

    Args:
        directory: Folder of the data sets, the one that holds it, or the file itself.
        name: One of :data:`SETS`.

    Returns:
        The questions in their published order; pools are empty where the set has no paragraphs.

    Raises:
        DatasetError: There is no such set, its file is missing or a row is not as published.
    """
    if name not in SETS:
        raise DatasetError(f"multihop has the sets {', '.join(SETS)}, got {name!r}")
    rows = _rows(find(directory, "multihop", SETS[name]))
    found = [_question(row, where, name, number) for number, (where, row) in enumerate(rows)]
    groups = _groups([[p.text for p in question.pool if p.relation == "gold"] for question in found])
    return tuple(replace(question, group=f"{name}/{group}") for question, group in zip(found, groups, strict=True))


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    if path.suffix != ".tsv":
        yield from read_rows(path)
        return
    table = csv.DictReader(read_text(path).split("\n"), delimiter="\t", quoting=csv.QUOTE_NONE)
    for cells in table:
        where = f"{path}:{table.line_num}"
        answers = [take(cells, "Answer", str, where), take(cells, "Answer 2", (str, type(None)), where, None) or ""]
        yield where, {"question": take(cells, "Question", str, where), "answers": answers}


def _question(row: Mapping[str, Any], where: str, name: str, number: int) -> PooledQuestion:
    origin = str(_first(row, "type", "dataset", default=name))
    return PooledQuestion(
        id=str(_first(row, "id", "_id", "qid", "example_id", default=number)),
        text=take(row, "question", str, where),
        answers=_answers(row, where),
        pool=distinct(_paragraphs(row, where)),
        group="",  # known once all rows are
        kind=_ORIGIN.get(origin, origin),
        steps=_steps(row, where),
    )


def _answers(row: Mapping[str, Any], where: str) -> tuple[str, ...]:
    if not take(row, "answerable", bool, where, True):
        return ()
    published = _first(row, "answers", "answer", "short_answers", default=[])
    if isinstance(published, bool):
        published = "yes" if published else "no"
    if row.get("dataset") == "trivia":  # MIGRES writes the list as Python would print it
        try:
            published = ast.literal_eval(published)
        except (ValueError, SyntaxError):
            raise DatasetError(f"{where}: expected a printed list of answers, got {str(published)[:40]!r}") from None
    answers = strings([published, take(row, "answer_aliases", list, where, [])], where)
    if not answers:
        raise DatasetError(f"{where}: expected an answer, got none in the fields {', '.join(row)}")
    return answers


def _paragraphs(row: Mapping[str, Any], where: str) -> list[Passage]:
    # HotpotQA and 2Wiki: [title, sentences], and supporting facts by title. NQ's context is a text without a label.
    if isinstance(row.get("context"), list):
        supporting = {title for title, _ in _pairs(row, "supporting_facts", int, where)}
        return [
            Passage(_joined(sentences), "gold" if title in supporting else "silent", title)
            for title, sentences in _pairs(row, "context", list, where)
        ]
    passages = []
    for paragraph in take(row, "paragraphs", list, where, []):
        relation = "gold" if take(paragraph, "is_supporting", bool, where) else "silent"
        key = "text" if "text" in paragraph else "paragraph_text"  # MuSiQue's own name
        passages.append(Passage(take(paragraph, key, str, where), relation, take(paragraph, "title", str, where)))
    return passages


def _joined(sentences: list[str]) -> str:
    # HotpotQA's sentences bring the spaces between them, 2Wiki's do not.
    spaced = any(sentence.startswith(" ") for sentence in sentences[1:])
    return ("" if spaced else " ").join(sentences).strip()


def _pairs(row: Mapping[str, Any], key: str, second: type, where: str) -> Iterator[tuple[str, Any]]:
    for entry in take(row, key, list, where):
        whole = isinstance(entry, list) and [type(value) for value in entry] == [str, second]
        if not whole or (second is list and not all(isinstance(sentence, str) for sentence in entry[1])):
            raise DatasetError(f"{where}: expected {key!r} of [title, {second.__name__}], got {str(entry)[:40]!r}")
        yield entry[0], entry[1]


def _steps(row: Mapping[str, Any], where: str) -> tuple[Step, ...]:
    steps = take(row, "question_decomposition", list, where, row.get("decomposition", []))
    return tuple(
        Step(step, "")
        if isinstance(step, str)
        else Step(take(step, "question", str, where), str(take(step, "answer", (str, int), where)))
        for step in steps
    )


def _first(row: Mapping[str, Any], *keys: str, default: Any) -> Any:
    """Returns the value of the first of the keys that the row has."""
    return next((row[key] for key in keys if key in row), default)


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
