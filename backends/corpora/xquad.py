"""XQuAD: the same questions about the same paragraphs in English and Chinese.

Source: Artetxe et al. 2020, arXiv:1910.11856.
"""

from pathlib import Path

from .datasets import DatasetError
from .reading import find, read_json, strings, take
from .records import Passage, PooledQuestion

LANGUAGES = ("en", "zh")


def load_xquad(directory: str | Path, language: str) -> tuple[PooledQuestion, ...]:
    """Loads one language of XQuAD; ids and groups are those of the other one too.

    The pool of a question is its own paragraph. That of an article's other questions, or the whole corpus, is for the
    caller to add: all 240 paragraphs are ``{passage for question in questions for passage in question.pool}``.

    Args:
        directory: Folder of the data set, or the one that holds it.
        language: ``en`` or ``zh``.

    Raises:
        DatasetError: The language is unknown, the file is missing or not as published.
    """
    if language not in LANGUAGES:
        raise DatasetError(f"xquad is read in {' and '.join(LANGUAGES)}, got {language!r}")
    path = find(directory, "xquad", f"xquad.{language}.json")
    questions = []
    for number, article in enumerate(take(read_json(path), "data", list, str(path))):
        where = f"{path}: article {number}"
        for paragraph in take(article, "paragraphs", list, where):
            context = take(paragraph, "context", str, where)
            passage = Passage(context, "gold", take(article, "title", str, where, ""))
            for entry in take(paragraph, "qas", list, where):
                id_ = take(entry, "id", str, where)
                answers = strings([take(a, "text", str, where) for a in take(entry, "answers", list, where)], where)
                if not answers or answers[0] not in context:
                    raise DatasetError(f"{where}: expected an answer of {id_} that its paragraph holds, got {answers}")
                text = take(entry, "question", str, where)
                questions.append(
                    PooledQuestion(id_, text, answers, (passage,), group=f"xquad/{number}", language=language)
                )
    return tuple(questions)
