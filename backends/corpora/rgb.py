"""RGB: noise, rejection, integration and counterfactuals, English and Chinese (Chen et al. 2024, arXiv:2309.01431)."""

from pathlib import Path
from typing import Any

from .datasets import DatasetError
from .reading import find, read_rows, strings, take
from .records import Passage, PooledQuestion, distinct

LANGUAGES = ("en", "zh")
PARTS = ("", "refine", "int", "fact")
JOINT = {"en": ", ", "zh": "、"}


def load_rgb(directory: str | Path, language: str, part: str) -> tuple[PooledQuestion, ...]:
    """Loads one part of RGB.

    The pool holds the positive documents (``gold``), in ``fact`` their counterfactual copies (``contradicting``, with
    the published wrong answer), and the negative ones (``silent``). Rejection is the same question with the
    silent ones alone, and the noise ratio is the share of them: both are for the caller to choose. As in the published
    scoring, the entries of a list of answers are ``parts`` that must all be given (all of ``int``, some elsewhere), and
    a list among them holds spellings of one.

    Args:
        directory: Folder of the data set, or the one that holds it.
        language: ``en`` or ``zh``.
        part: "" (as first published), ``refine``, ``int`` or ``fact``.

    Raises:
        DatasetError: Language or part is unknown, the file is missing or a row is not as published.
    """
    if language not in LANGUAGES or part not in PARTS:
        raise DatasetError(
            f"rgb has languages {', '.join(LANGUAGES)} and parts {', '.join(map(repr, PARTS))},"
            f" got {language!r} and {part!r}"
        )
    name = "_".join(filter(None, (language, part)))
    path = find(directory, "rgb", f"{name}.json")
    return tuple(_question(row, where, name, language) for where, row in read_rows(path))


def _question(row: dict[str, Any], where: str, name: str, language: str) -> PooledQuestion:
    answers, parts = _answers(take(row, "answer", (str, list, int), where), language, where)
    if not answers:
        raise DatasetError(f"{where}: expected an answer, got none")
    pool = [
        Passage(text, relation)
        for key, relation in (("positive", "gold"), ("positive_wrong", "contradicting"), ("negative", "silent"))
        for text in strings(take(row, key, list, where, []), where)
    ]
    text = take(row, "query", str, where)
    wrong, _ = _answers(take(row, "fakeanswer", (str, list, int), where, []), language, where)
    id_ = f"rgb/{name}/{take(row, 'id', (int, str), where)}"
    return PooledQuestion(
        id_, text, answers, distinct(pool), text, language, kind=name, wrong_answers=wrong, parts=parts
    )


def _answers(value: Any, language: str, where: str) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Returns whole answers and, where there are several, their parts."""
    entries = value if isinstance(value, list) else [value]
    parts = tuple(dict.fromkeys(filter(None, (strings(entry, where) for entry in entries))))
    if len(parts) > 1:
        return (JOINT[language].join(spellings[0] for spellings in parts),), parts
    return (parts[0] if parts else ()), ()
