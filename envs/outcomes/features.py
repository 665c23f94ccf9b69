"""Features of questions and candidates that a table stores for the gates that may see them. None is a label."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ...backends.corpora.records import Document, Question
from ...backends.text import search_tokens

_INTENTS = {"default": ("default",), "type": ("type",), "version": ("version", "added")}
_BUCKETS = 32
DOMAIN_FEATURES = (*(f"intent {k}" for k in _INTENTS), *(f"keyword bucket {i}" for i in range(_BUCKETS)))
CONTENT_FEATURES = (
    "cosine of question and passage",
    "BM25 of question and passage",
    "names the object",
    "names the object's last part",
    "names the parameter",
    "states the parameter",
    "speaks of a default",
    "speaks of a version",
    "length / 64 tokens",
)


def domain_features(questions: Sequence[Question]) -> NDArray[np.float32]:
    """Intent cues and hashed TF-IDF keywords of the questions' own words (source C, section 2.2).

    Returns:
        (Q, 3 + 32) float32: cue counts in [0, 1], then the keyword vector with unit norm.
    """
    words = [Counter(search_tokens(q.text)) for q in questions]
    spread = Counter(word for counts in words for word in counts)
    rows = np.zeros((len(questions), len(DOMAIN_FEATURES)), dtype=np.float32)
    for row, counts in zip(rows, words, strict=True):
        row[: len(_INTENTS)] = [any(cue in counts for cue in cues) for cues in _INTENTS.values()]
        for word, count in counts.items():
            bucket = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big") % _BUCKETS
            row[len(_INTENTS) + bucket] += count * np.log((1 + len(questions)) / (1 + spread[word]))
        row[len(_INTENTS) :] /= max(float(np.linalg.norm(row[len(_INTENTS) :])), 1e-6)
    return rows


def content_features(
    questions: Sequence[Question],
    pools: Sequence[Sequence[Document]],
    *,
    cosine: NDArray[np.float32],
    lexical: NDArray[np.float32],
    count_tokens: Callable[[str], int],
) -> NDArray[np.float32]:
    """Features of each candidate that read its content: how it matches the words of the question.

    Args:
        questions: The question of each of R rows.
        pools: N documents a row.
        cosine: (R, N) similarity of question and passage embeddings.
        lexical: (R, N) BM25 score of the question against the passage.
        count_tokens: Length of a text in the reader's tokens.

    Returns:
        (R, N, F) float32, named by ``CONTENT_FEATURES``.
    """
    rows = [
        [_overlap(question, document, count_tokens) for document in pool]
        for question, pool in zip(questions, pools, strict=True)
    ]
    overlap = np.array(rows, dtype=np.float32)  # (R, N, F - 2)
    return np.concatenate([cosine[..., None], lexical[..., None] / 32, overlap], axis=-1).astype(np.float32)


def _overlap(question: Question, document: Document, count_tokens: Callable[[str], int]) -> list[float]:
    text = document.text
    parameter = re.escape(question.parameter)
    return [
        question.object in text,
        re.search(rf"\b{re.escape(question.object.rsplit('.', 1)[-1])}\b", text) is not None,
        bool(parameter) and re.search(rf"\b{parameter}\b", text) is not None,
        bool(parameter) and re.search(rf"\b{parameter}=|parameter {parameter}\b", text) is not None,
        "default" in text.lower(),
        "version" in text.lower(),
        min(count_tokens(text), 64) / 64,
    ]
