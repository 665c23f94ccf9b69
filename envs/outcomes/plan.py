"""What a decision table asks: which questions, under which retrieval, over which pools. No reader runs here."""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...backends.corpora.apidocs import MAX_CHARS, Corpus
from ...backends.corpora.noise import NOISES
from ...backends.corpora.outdated import former_value, outdate
from ...backends.corpora.records import Document, Question
from ...backends.readers.embedder import Embedder, embed_cached
from ...backends.readers.loading import cache_home
from ...backends.retrieval import DenseIndex, SparseIndex, union_pool
from .features import CONTENT_FEATURES, DOMAIN_FEATURES, content_features, domain_features
from .table import RELATIONS

CONDITIONS = ("healthy", "degraded")
MODES = ("outdated", "noisy")
DEPTH = 50  # places that each retriever returns before the union, so that copies of a text leave room


@dataclass(frozen=True)
class BuildConfig:
    """What a table is built from.

    Attributes:
        name: Name of the table.
        questions: How many questions; they are taken evenly from the package families.
        pool: Candidates N of a pool.
        budget: Most passages k that the reader is shown.
        conditions: Retrieval conditions of each question: ``healthy``, or that and ``degraded``.
        max_chars: Longest passage of the corpus, in characters.
        max_answer_tokens: Questions with longer reference answers are left out.
        max_question_tokens: Longer questions are left out; a question is read once for every reading set.
        max_same_answer: Largest share of the questions that may have the same answer.
        seed: Seed of the choice of questions, the split and the noise.
        reader: ``smollm2``, a local path or a Hugging Face id.
        dtype: Type that the reader runs in.
        device: Torch device of the reader.
        packages: Packages to read; all known ones by default.
    """

    name: str = "apidocs"
    questions: int = 400
    pool: int = 6
    budget: int = 3
    conditions: tuple[str, ...] = CONDITIONS
    max_chars: int = MAX_CHARS
    max_answer_tokens: int = 5
    max_question_tokens: int = 26
    max_same_answer: float = 0.06
    seed: int = 20261130
    reader: str = "smollm2"
    dtype: str = "float32"
    device: str = "cpu"
    packages: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "conditions", tuple(self.conditions))  # YAML has lists; equal plans, equal digests
        if self.conditions not in (CONDITIONS[:1], CONDITIONS):
            raise ValueError(f"conditions must be {[CONDITIONS[0]]} or {list(CONDITIONS)}, got {list(self.conditions)}")


@dataclass(frozen=True, eq=False)
class Plan:
    """Questions, pools and features of a table, in row order (row = question * conditions + condition).

    Attributes:
        config: What it was planned from.
        corpus: The documents.
        questions: The Q chosen questions.
        passages: The corpus's documents, then those of its former snapshot that differ.
        documents: (R, N) int: pools, as indices into ``passages``, in canonical order.
        modes: How each question's degraded retrieval fails: ``outdated`` or ``noisy``.
        edits: Passage id to the edits that made it, in order, each a question id and a former value.
        arrays: Every array of the table that needs no reader.
        fingerprints: Digests of corpus, embedder and index.
    """

    config: BuildConfig
    corpus: Corpus
    questions: tuple[Question, ...]
    passages: tuple[Document, ...]
    documents: NDArray[np.int64]
    modes: tuple[str, ...]
    edits: dict[str, list[dict[str, str]]]
    arrays: dict[str, NDArray[Any]]
    fingerprints: dict[str, str]

    @property
    def fingerprint(self) -> str:
        """Digest of the plan: a build is resumed only under the same one."""
        digest = hashlib.sha256(repr((asdict(self.config), sorted(self.fingerprints.items()))).encode())
        digest.update("".join(q.id for q in self.questions).encode())
        digest.update(self.documents.tobytes())
        return digest.hexdigest()

    def texts(self, row: int) -> list[str]:
        """Returns the passages of a row's pool in canonical order."""
        return [self.passages[i].text for i in self.documents[row]]


def degraded_query(question: Question) -> str:
    """What reaches the index when retrieval is noisy: the object's name is lost on the way.

    The neighbours are then passages about the same parameter elsewhere: plausible, and often contradicting.
    """
    subject = f" of `{question.parameter}`" if question.parameter else ""
    return {"default": "default value", "type": "type", "version": "version added"}[question.kind] + subject


def make_plan(config: BuildConfig, corpus: Corpus, embedder: Embedder, count_tokens: Callable[[str], int]) -> Plan:
    """Chooses the questions and retrieves their pools.

    Args:
        config: What to build.
        corpus: Its documents and questions.
        embedder: Embeds documents and questions.
        count_tokens: Length of a text in the reader's tokens.
    """
    rng = np.random.default_rng(config.seed)
    questions = choose_questions(config, corpus, count_tokens, rng)
    texts = [d.text for d in corpus.documents]
    vectors = embed_cached(embedder, texts, cache_home() / "embeddings")
    modes = tuple(MODES[i % 2] for i in rng.permutation(len(questions)))
    former, edits = former_snapshot(corpus, questions, modes, rng)
    passages = (*corpus.documents, *former.values())
    place = {i: len(texts) + j for j, i in enumerate(former)}  # document -> its former version
    old_texts = [former[i].text if i in former else t for i, t in enumerate(texts)]
    old_vectors = vectors.copy()
    old_vectors[list(former)] = embedder.embed([d.text for d in former.values()])
    asked = embedder.embed([q.text for q in questions])  # (Q, d): what the gate sees is the question itself
    sent = [degraded_query(q) if mode == "noisy" else q.text for q, mode in zip(questions, modes, strict=True)]

    healthy = _retrieve([q.text for q in questions], asked, texts, vectors, embedder, config.pool)
    found, found_pools = [healthy], [healthy.pools]
    if "degraded" in config.conditions:
        degraded = _retrieve(sent, embedder.embed(sent), old_texts, old_vectors, embedder, config.pool)
        found.append(degraded)
        found_pools.append(np.vectorize(lambda i: place.get(i, i))(degraded.pools))
    pools = _by_row(found_pools)  # (R, N)
    by_row = [q for q in questions for _ in config.conditions]
    originals = np.array([*range(len(texts)), *former])[pools]  # (R, N): a former passage matches as its original does
    names = sorted({q.family for q in questions})
    arrays: dict[str, NDArray[Any]] = {
        "query": asked,
        "noised": _noised(questions, embedder, rng),
        "domain": domain_features(questions),
        "ranks": _by_row([one.ranks for one in found]),
        "scores": _by_row([one.scores for one in found]),
        "content": content_features(
            by_row,
            [[passages[i] for i in pool] for pool in pools],
            cosine=healthy.dense.scores(np.repeat(asked, len(config.conditions), axis=0), originals),
            lexical=healthy.sparse.scores([q.text for q in by_row], originals),
            count_tokens=count_tokens,
        ),
        "relation": np.array(
            [
                [RELATIONS.index(relation(corpus, q, passages[i], edits)) for i in pool]
                for q, pool in zip(by_row, pools, strict=True)
            ],
            dtype=np.uint8,
        ),
        "split": split_families(questions, rng),
        "family": np.array([names.index(q.family) for q in questions], dtype=np.uint8),
    }
    fingerprints = {
        "corpus": corpus.fingerprint,
        "embedder": embedder.fingerprint,
    }
    for condition, one in zip(config.conditions, found, strict=True):
        fingerprints |= {f"{condition}_dense": one.dense.fingerprint, f"{condition}_sparse": one.sparse.fingerprint}
    return Plan(config, corpus, tuple(questions), passages, pools, modes, edits, arrays, fingerprints)


class _Retrieved(NamedTuple):
    dense: DenseIndex
    sparse: SparseIndex
    pools: NDArray[np.int64]  # (Q, N)
    ranks: NDArray[np.int16]  # (Q, N, 2), -1 where a retriever did not return the candidate
    scores: NDArray[np.float32]  # (Q, N, 2)


def _retrieve(
    queries: Sequence[str],
    query_vectors: NDArray[np.float32],
    texts: Sequence[str],
    vectors: NDArray[np.float32],
    embedder: Embedder,
    pool: int,
) -> _Retrieved:
    snapshot = hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()
    dense = DenseIndex.build(vectors, corpus_fingerprint=snapshot, embedder_fingerprint=embedder.fingerprint)
    sparse = SparseIndex.build(texts, corpus_fingerprint=snapshot)
    hits = [dense.search(query_vectors, DEPTH), sparse.search(queries, DEPTH)]
    labels = {text: i for i, text in reversed(list(enumerate(texts)))}
    pools = union_pool(hits, pool, groups=np.array([labels[text] for text in texts]))
    ranks = np.stack([h.rank_of(pools) for h in hits], axis=-1)
    scores = np.stack([dense.scores(query_vectors, pools), sparse.scores(queries, pools)], axis=-1)
    return _Retrieved(dense, sparse, pools, np.where(ranks < DEPTH, ranks, -1).astype(np.int16), scores)


def _by_row(conditions: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Interleaves the questions' entries (Q, ...) under each condition into rows (R, ...)."""
    return np.stack(conditions, axis=1).reshape(-1, *conditions[0].shape[1:])


def former_snapshot(
    corpus: Corpus, questions: Sequence[Question], modes: Sequence[str], rng: np.random.Generator
) -> tuple[dict[int, Document], dict[str, list[dict[str, str]]]]:
    """Edits the gold passages of the questions whose degraded retrieval is outdated.

    Returns:
        The former version of each edited document by its index in the corpus, and the edits by the id of its original.
    """
    index = {d.id: i for i, d in enumerate(corpus.documents)}
    edited: dict[int, Document] = {}
    edits: dict[str, list[dict[str, str]]] = {}
    for question, mode in zip(questions, modes, strict=True):
        if mode != "outdated":
            continue
        value = former_value(question, questions, rng)
        for gold in question.gold:
            i = index[gold]
            document = outdate(edited.get(i, corpus.documents[i]), question, value)
            if document is not None:
                edited[i] = document
                edits.setdefault(gold, []).append({"question": question.id, "value": value})
    return dict(sorted(edited.items())), edits


def relation(corpus: Corpus, question: Question, passage: Document, edits: Mapping[str, list[dict[str, str]]]) -> str:
    """Types a passage of either snapshot; what a former one states of another object counts as contradicting."""
    original, _, former = passage.id.partition("@")
    found = corpus.relation(question, original)
    if not former:
        return found
    if found == "gold":
        return "stale" if any(e["question"] == question.id for e in edits[original]) else "gold"
    return "contradicting" if found == "equivalent" else found


def choose_questions(
    config: BuildConfig, corpus: Corpus, count_tokens: Callable[[str], int], rng: np.random.Generator
) -> list[Question]:
    """Takes questions in turn from every family, and within it in turn from every kind; rare answers are favoured.

    At most two questions ask about one object, and no answer fills more than ``max_same_answer`` of the table.
    """
    waiting: dict[str, dict[str, list[Question]]] = {}
    for index in rng.permutation(len(corpus.questions)):
        question = corpus.questions[index]
        waiting.setdefault(question.family, {}).setdefault(question.kind, []).append(question)
    cap = max(1, int(config.max_same_answer * config.questions))
    answers: Counter[str] = Counter()
    objects: Counter[str] = Counter()
    chosen: list[Question] = []
    turn = 0
    while len(chosen) < config.questions and any(any(kinds.values()) for kinds in waiting.values()):
        for family in sorted(waiting):
            kinds = [k for k in ("default", "type", "version") if waiting[family].get(k)]
            while kinds and len(chosen) < config.questions:
                kind = kinds[turn % len(kinds)]
                question = waiting[family][kind].pop()
                if (
                    answers[question.answer] < cap
                    and objects[question.object] < 2
                    and count_tokens(question.answer) <= config.max_answer_tokens
                    and count_tokens(question.text) <= config.max_question_tokens
                    and not any(c in question.answer for c in "`\n")
                ):
                    answers[question.answer] += 1
                    objects[question.object] += 1
                    chosen.append(question)
                    break
                kinds = [k for k in kinds if waiting[family][k]]
        turn += 1
    if len(chosen) < config.questions:
        raise ValueError(
            f"the installed packages yield {len(chosen)} questions, {config.questions} were asked for; "
            "install more documented packages or ask for fewer"
        )
    return chosen


def split_families(questions: Sequence[Question], rng: np.random.Generator) -> NDArray[np.uint8]:
    """Gives half of the families to training, a sixth to validation and a third to testing, never dividing one."""
    names = sorted({q.family for q in questions})
    order = [names[i] for i in rng.permutation(len(names))]
    train = max(1, round(len(order) / 2))
    validation = max(1, round(len(order) / 6))
    place = {name: 0 if i < train else 1 if i < train + validation else 2 for i, name in enumerate(order)}
    return np.array([place[q.family] for q in questions], dtype=np.uint8)


def _noised(questions: Sequence[Question], embedder: Embedder, rng: np.random.Generator) -> NDArray[np.float16]:
    texts = [noise(q.text, rng) for noise in NOISES.values() for q in questions]
    return embedder.embed(texts).reshape(len(NOISES), len(questions), -1).astype(np.float16)  # (V, Q, d)


def plan_meta(plan: Plan) -> dict[str, Any]:
    """Returns what ``table.json`` records about the plan: names, identities and digests, no passage text."""
    used, first = np.unique(plan.documents, return_index=True)
    order = used[np.argsort(first)]
    documents = [plan.passages[i] for i in order]
    return {
        "name": plan.config.name,
        "budget": plan.config.budget,
        "conditions": list(plan.config.conditions),
        "families": sorted({q.family for q in plan.questions}),
        "relations": list(RELATIONS),
        "retrievers": ["dense", "sparse"],
        "noises": list(NOISES),
        "domain_features": list(DOMAIN_FEATURES),
        "content_features": list(CONTENT_FEATURES),
        "questions": [
            {
                "id": q.id,
                "kind": q.kind,
                "text": q.text,
                "answer": q.answer,
                "object": q.object,
                "parameter": q.parameter,
                "degraded": mode,
            }
            for q, mode in zip(plan.questions, plan.modes, strict=True)
        ],
        "passages": [
            {
                "id": d.id,
                "package": d.package,
                "version": d.version,
                "object": d.object,
                "section": d.section,
                "sha256": d.sha256,
            }
            | ({"former": plan.edits[d.id.partition("@")[0]]} if "@" in d.id else {})
            for d in documents
        ],
        "packages": {d.package: d.version for d in sorted(documents, key=lambda d: d.package)},
    }


def passage_indices(plan: Plan) -> NDArray[np.int32]:
    """Maps the pools (R, N) to places in ``table.json``'s list of passages."""
    used, first, inverse = np.unique(plan.documents, return_index=True, return_inverse=True)
    place = np.empty(len(used), dtype=np.int32)
    place[np.argsort(first)] = np.arange(len(used))
    return place[inverse].reshape(plan.documents.shape)
