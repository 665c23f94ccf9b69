"""SKR: whether retrieval made a large model's answer better, worse or left it (Wang et al. 2023, arXiv:2310.05002)."""

from dataclasses import dataclass
from pathlib import Path

from .datasets import DatasetError
from .reading import find, read_rows, strings, take

FILE = "skr_training.json*"
HELPED = {"ir_better": 1, "same": 0, "ir_worse": -1}


@dataclass(frozen=True)
class RetrievalJudgement:
    """A question and what retrieval did for it.

    Attributes:
        id: Unique within the data set.
        text: The question; also the group that splits never divide.
        answers: Accepted answers; empty where none is published.
        helped: 1 where retrieval made the answer better, 0 where it changed nothing, -1 where it made it worse.
    """

    id: str
    text: str
    answers: tuple[str, ...]
    helped: int


def load_skr(directory: str | Path) -> tuple[RetrievalJudgement, ...]:
    """Loads SKR's training labels.

    Args:
        directory: Folder of the data set, or the one that holds it.

    Raises:
        DatasetError: The file is missing or a row is not as published.
    """
    found = []
    for number, (where, row) in enumerate(read_rows(find(directory, "skr", FILE))):
        judgement = take(row, "judgement", str, where)
        if judgement not in HELPED:
            raise DatasetError(f"{where}: expected a judgement of {', '.join(HELPED)}, got {judgement!r}")
        answers = strings(take(row, "golden_answers", list, where), where)
        text = take(row, "question", str, where)
        found.append(RetrievalJudgement(f"skr/{number}", text, answers, HELPED[judgement]))
    return tuple(found)
