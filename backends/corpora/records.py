"""The records that every corpus yields."""

import hashlib
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Document:
    """A passage: the smallest thing that retrieval returns and a reader is shown.

    Attributes:
        id: Unique within its corpus, stable across builds of the same source.
        family: Group that splits and bootstraps never divide.
        package: Distribution that the passage comes from, with its version.
        version: Version of ``package``.
        object: Dotted public name of what the passage documents.
        section: What part of its documentation this is: summary, signature, parameter or version.
        parameter: Parameter that it describes, or "".
        text: The passage as a reader sees it.
    """

    id: str
    family: str
    package: str
    version: str
    object: str
    section: str
    parameter: str
    text: str

    @cached_property
    def sha256(self) -> str:
        """Digest of the text: names a passage without carrying it."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class Question:
    """A question with one exact answer that stands literally in each of its gold passages.

    Attributes:
        id: Unique within its corpus.
        kind: Question family: what is asked for (default, type, version).
        text: The question.
        answer: The exact answer.
        gold: Ids of the documents that state the answer.
        family: Group of the split, that of its object's package.
        object: Dotted name of what is asked about.
        parameter: Parameter that is asked about, or "".
    """

    id: str
    kind: str
    text: str
    answer: str
    gold: tuple[str, ...]
    family: str
    object: str
    parameter: str
