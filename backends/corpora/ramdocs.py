"""RAMDocs: questions whose documents are right, misleading or noise (Wang et al. 2025, arXiv:2504.13079)."""

from pathlib import Path

from ..text import normalize_answer
from .datasets import DatasetError
from .reading import find, read_rows, strings, take
from .records import Passage, PooledQuestion, distinct

FILE = "RAMDocs_test.jsonl"
RELATION = {"correct": "gold", "misinfo": "contradicting", "noise": "silent"}


def load_ramdocs(directory: str | Path) -> tuple[PooledQuestion, ...]:
    """Loads RAMDocs.

    A question may have several right answers, one for each entity that its name may mean. What is published both as
    right and as wrong counts as right. Every question stands alone: it is its own group.

    Args:
        directory: Folder of the data set, or the one that holds it.

    Raises:
        DatasetError: A file is missing or a row is not as published.
    """
    questions = []
    for number, (where, row) in enumerate(read_rows(find(directory, "ramdocs", FILE))):
        answers = strings(take(row, "gold_answers", list, where), where)
        if not answers:
            raise DatasetError(f"{where}: expected at least one of gold_answers, got none")
        pool = []
        for document in take(row, "documents", list, where):
            kind = take(document, "type", str, where)
            if kind not in RELATION:
                raise DatasetError(f"{where}: expected a document of type {', '.join(RELATION)}, got {kind!r}")
            pool.append(Passage(take(document, "text", str, where), RELATION[kind]))
        text = take(row, "question", str, where)
        right = {normalize_answer(answer) for answer in answers}
        published = strings(take(row, "wrong_answers", list, where), where)
        wrong = tuple(answer for answer in published if normalize_answer(answer) not in right)
        questions.append(
            PooledQuestion(f"ramdocs/{number}", text, answers, distinct(pool), group=text, wrong_answers=wrong)
        )
    return tuple(questions)
