"""A former snapshot of a corpus: passages that state a value which is no longer true.

Real documentation seldom says what a default used to be, so the former value is drawn from answers of the same sort to
other questions. The edit is recorded, so that anyone can repeat it on the installed packages.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .records import Document, Question

_FLIPS = {"True": "False", "False": "True", "None": "False"}


def former_value(question: Question, others: Sequence[Question], rng: np.random.Generator) -> str:
    """Draws a plausible former answer: a flipped flag, or another question's answer of the same sort."""
    if question.kind == "default" and question.answer in _FLIPS:
        return _FLIPS[question.answer]
    sort = _sort(question)
    values = sorted({q.answer for q in others if _sort(q) == sort} - {question.answer})
    return values[rng.integers(len(values))] if values else f"{question.answer}_v1"


def outdate(document: Document, question: Question, former: str) -> Document | None:
    """Puts the former value where a gold passage states the answer.

    Returns:
        The edited passage, or None where the answer does not stand apart in the text.
    """
    answer = re.escape(question.answer)
    if document.section == "signature":
        pattern = rf"(?<=\b{re.escape(question.parameter)}=)(['\"]?){answer}(?=\1[,)])"
        text = re.sub(pattern, lambda m: m[1] + former, document.text)
    else:
        text = re.sub(rf"(?<![\w.]){answer}(?![\w]|\.\w)", lambda m: former, document.text)
    if text == document.text:
        return None
    base = document.id.split("@", 1)[0]
    return replace(document, id=f"{base}@{question.id}", text=text)


def _sort(question: Question) -> tuple[str, str]:
    number = re.fullmatch(r"-?[\d.]+(e[+-]?\d+)?", question.answer)
    return question.kind, "number" if number else "word"
