"""The records that every corpus yields."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
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


@dataclass(frozen=True)
class Passage:
    """One of the passages that a public data set gives with a question.

    Attributes:
        text: The passage.
        relation: What it states: ``gold`` the answer (or a step towards it), ``contradicting`` another one, ``silent``
            neither. No policy may see it.
        title: Title, or "".
    """

    text: str
    relation: str
    title: str = ""


@dataclass(frozen=True)
class Step:
    """One step of a question's published decomposition.

    Attributes:
        question: What is asked in it; ``#1`` stands for the answer of the first step.
        answer: Its answer, or "" where it is not published.
    """

    question: str
    answer: str


@dataclass(frozen=True)
class PooledQuestion:
    """A question of a public data set, with the passages that come with it.

    Attributes:
        id: Unique within its set of questions; the same in both languages where the questions are the same.
        text: The question.
        answers: Accepted answers, each of them whole and the first canonical; empty where the right thing is not to
            answer.
        pool: Its passages, in their published order, without copies; empty where the data set has none.
        group: What splits and bootstraps never divide.
        language: ``en`` or ``zh``.
        kind: Kind of the question in its data set's own words, or "".
        wrong_answers: Answers that are published as wrong.
        steps: The published decomposition, where there is one.
        parts: Where a right answer has several parts, the spellings of each: all parts are needed, in one spelling.
            The only one of ``answers`` then joins their first spellings.
    """

    id: str
    text: str
    answers: tuple[str, ...]
    pool: tuple[Passage, ...]
    group: str
    language: str = "en"
    kind: str = ""
    wrong_answers: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    parts: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Turn:
    """One turn of a conversation.

    Attributes:
        id: Unique within its conversation.
        speaker: Who speaks.
        text: What is said; a picture stands as its caption in brackets.
        time: When its session began, ISO 8601 to the minute.
    """

    id: str
    speaker: str
    text: str
    time: str


@dataclass(frozen=True)
class RecallQuestion:
    """A question about a conversation.

    Attributes:
        text: The question.
        answer: The answer, or "" where the conversation does not tell.
        evidence: Ids of the turns that tell, in the order of the data set.
        kind: Kind of the question in its data set's own words.
        trap: For a question that cannot be answered, the answer that a careless reader gives; otherwise "".
    """

    text: str
    answer: str
    evidence: tuple[str, ...]
    kind: str
    trap: str = ""


@dataclass(frozen=True)
class Conversation:
    """A long conversation in dated sessions, with questions about it; also the group that splits never divide.

    Attributes:
        id: Unique within its data set.
        turns: All turns in order.
        questions: The questions.
        unresolved: Published evidence references that lead to no turn.
    """

    id: str
    turns: tuple[Turn, ...]
    questions: tuple[RecallQuestion, ...]
    unresolved: tuple[str, ...]


def distinct(passages: Iterable[Passage]) -> tuple[Passage, ...]:
    """Returns passages without copies of a text; the first stays, with a later one's relation where that says more.

    A text that is listed both as gold and as noise states the answer.
    """
    rank = ("gold", "contradicting", "silent")
    kept: dict[str, Passage] = {}
    for passage in passages:
        if not passage.text.strip():
            continue
        known = kept.get(passage.text)
        if known is None or rank.index(passage.relation) < rank.index(known.relation):
            kept[passage.text] = passage if known is None else replace(known, relation=passage.relation)
    return tuple(kept.values())
