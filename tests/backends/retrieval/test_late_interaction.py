"""Late interaction, on drawn vectors and on real token embeddings."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recallgym.backends.interventions.scores import MODES, adjust
from recallgym.backends.readers.embedder import Embedder
from recallgym.backends.retrieval import DenseIndex, SparseIndex, union_pool
from recallgym.backends.retrieval.late_interaction import _BLOCK_TOKENS, LateInteractionIndex, TokenVectors
from recallgym.backends.storage import StorageError

NAMES = {"corpus_fingerprint": "corpus-1", "embedder_fingerprint": "embedder-1"}
DIMENSION = 4
TEXTS = [
    "The river froze over last winter.",
    "An old violin needs repair before noon.",
    "保险合同自生效之日起三十天内为等待期。",
    "",
    "The number of jobs to run in parallel. The default of n_jobs is None, which means one.",
    "The court was praised in the capital.",
    "The river froze over last winter.",
    "聚类算法把相似的样本分到同一组。",
    "A loaf of bread was sold after the vote. " * 60,
]
QUESTIONS = ["When did the river freeze over?", "default of n_jobs", "等待期是多少天", "", "Who sold bread?"]


def ragged(texts):
    """Token vectors of texts given as arrays (t, d)."""
    return TokenVectors(
        np.concatenate([np.empty((0, DIMENSION)), *texts]).astype(np.float32), np.cumsum([0, *map(len, texts)])
    )


def draw_texts(generator, count, longest):
    """Texts of 0 to ``longest`` tokens of any norm; the first has one, and often some are equal."""
    sizes = np.append(1, generator.integers(0, longest + 1, max(count - 1, 0)))[:count]
    texts = [generator.normal(size=(size, DIMENSION)) * generator.uniform(0.1, 10) for size in sizes]
    for copy, source in generator.integers(count, size=(count // 3, 2)) if count else ():
        if copy:
            texts[copy] = texts[source]
    return texts


def naive(query, document):
    """MaxSim by definition, one token pair after the other."""
    total = 0.0
    for q in query:
        best = -1.0
        for d in document:
            best = max(best, float(q @ d / np.linalg.norm(q) / np.linalg.norm(d)))
        total += best
    return total


cases = st.tuples(st.integers(1, 20), st.integers(0, 5), st.integers(0, 2**32 - 1))


@pytest.fixture(scope="module")
def embedder():
    return Embedder()


@pytest.fixture(scope="module")
def index(embedder):
    return LateInteractionIndex.build(embedder.embed_tokens(TEXTS), **NAMES)


@pytest.fixture(scope="module")
def queries(embedder):
    return embedder.embed_tokens(QUESTIONS)


@settings(deadline=None)
@given(cases, st.integers(1, 30))
def test_search_equals_the_definition(case, k):
    count, asked, seed = case
    generator = np.random.default_rng(seed)
    documents, questions = draw_texts(generator, count, 6), draw_texts(generator, asked, 4)[::-1]
    hits = LateInteractionIndex.build(ragged(documents), **NAMES).search(ragged(questions), k)
    assert hits.ids.shape == hits.scores.shape == hits.ranks.shape == (asked, min(k, count))
    assert hits.ids.dtype == np.int64
    assert hits.scores.dtype == np.float32
    for question, ids, scores in zip(questions, hits.ids, hits.scores, strict=True):
        truth = np.array([naive(question, document) for document in documents])
        # float16 keeps a cosine to about 1e-3
        assert np.allclose(scores, truth[ids], atol=2e-3 * max(len(question), 1))
        assert np.allclose(scores, np.sort(truth)[::-1][:k], atol=2e-3 * max(len(question), 1))
        assert len(set(ids.tolist())) == len(ids)
        # best first, and of equal score the lower id first
        assert ids.tolist() == [i for _, i in sorted(zip(-scores, ids.tolist(), strict=True))]
        assert (np.abs(scores) <= len(question)).all()


@settings(deadline=None)
@given(cases, st.randoms(use_true_random=False))
def test_the_order_of_the_documents_does_not_matter(case, random):
    count, asked, seed = case
    generator = np.random.default_rng(seed)
    documents, questions = draw_texts(generator, count, 6), ragged(draw_texts(generator, asked, 4))
    order = random.sample(range(count), count)
    k = max(1, count // 2)
    hits = LateInteractionIndex.build(ragged(documents), **NAMES).search(questions, k)
    moved = LateInteractionIndex.build(ragged([documents[i] for i in order]), **NAMES)
    assert np.array_equal(moved.search(questions, k).scores, hits.scores)
    places = np.argsort(order)[hits.ids]  # where the documents found went
    assert np.array_equal(moved.scores(questions, places), hits.scores)


@settings(deadline=None)
@given(cases)
def test_searching_together_equals_searching_alone(case):
    count, asked, seed = case
    generator = np.random.default_rng(seed)
    index = LateInteractionIndex.build(ragged(draw_texts(generator, count, 6)), **NAMES)
    questions = draw_texts(generator, asked, 4)
    together = index.search(ragged(questions), 5)
    for q, question in enumerate(questions):
        alone = index.search(ragged([question]), 5)
        assert np.array_equal(alone.ids[0], together.ids[q])
        assert np.array_equal(alone.scores[0], together.scores[q])


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 2**32 - 1))
def test_blocks_of_documents_and_groups_of_queries_change_nothing(seed):
    generator = np.random.default_rng(seed)
    sizes = [3, _BLOCK_TOKENS, 0, _BLOCK_TOKENS - 3, 3, 1, 2 * _BLOCK_TOKENS + 5, 0, 0, 40]
    documents = [generator.normal(size=(size, DIMENSION)) for size in sizes]
    index = LateInteractionIndex.build(ragged(documents), **NAMES)
    questions = [generator.normal(size=(generator.integers(0, 3), DIMENSION)) for _ in range(70)]
    hits = index.search(ragged(questions), len(sizes))
    # Every document comes back, with a score that no block was part of.
    single = [LateInteractionIndex.build(ragged([d]), **NAMES) for d in documents if len(d)]
    filled = [i for i, d in enumerate(documents) if len(d)]
    for i, one in zip(filled, single, strict=True):
        expected = one.search(ragged(questions), 1).scores[:, 0]
        assert np.array_equal(hits.scores[hits.ids == i], expected)
    assert (np.sort(hits.ids, axis=1) == np.arange(len(sizes))).all()


def test_the_scan_is_within_the_slack_that_the_search_allows(index, queries):
    scanned = index._scan(index._check(queries).vectors, queries.offsets)
    every = np.tile(np.arange(len(TEXTS)), (len(QUESTIONS), 1))
    slack = np.diff(queries.offsets) * (index.dimension + np.diff(queries.offsets)) * np.finfo(np.float32).eps
    assert (np.abs(scanned - index.scores(queries, every)) <= slack[:, None]).all()


def test_a_document_that_holds_the_querys_tokens_scores_their_number():
    generator = np.random.default_rng(0)
    question = generator.normal(size=(7, DIMENSION))
    document = np.vstack([generator.normal(size=(3, DIMENSION)), question * 4, generator.normal(size=(2, DIMENSION))])
    index = LateInteractionIndex.build(ragged([document[:3], document]), **NAMES)
    hits = index.search(ragged([question]), 2)
    assert hits.ids.tolist() == [[1, 0]]
    assert hits.scores[0, 0] == pytest.approx(7, abs=7e-3)


def test_a_passage_that_holds_the_query_verbatim_comes_first_and_scores_about_its_tokens(embedder, index):
    # The tokens see other neighbours in the passage than in the query: about, not exactly.
    queries = embedder.embed_tokens(["The default of n_jobs is None", "三十天内为等待期", TEXTS[5]])
    hits = index.search(queries, 1)
    assert hits.ids[:, 0].tolist() == [4, 2, 5]
    share = hits.scores[:, 0] / np.diff(queries.offsets)
    assert (share > 0.7).all()
    assert share[2] == pytest.approx(1, abs=1e-3)


def test_it_finds_what_a_question_is_about(index, queries):
    best = index.search(queries, 2).ids.tolist()
    assert best[0] == [0, 6]  # one text twice
    assert best[1][0] == 4
    assert best[2][0] == 2
    assert best[4][0] == 8


def test_the_end_of_a_text_longer_than_a_window_is_found(embedder):
    index = LateInteractionIndex.build(embedder.embed_tokens([TEXTS[8], TEXTS[8] + " It rains in Oslo."]), **NAMES)
    assert index.search(embedder.embed_tokens(["It rains in Oslo."]), 2).ids.tolist() == [[1, 0]]


def test_a_query_without_tokens_scores_every_document_0(index, queries):
    hits = index.search(queries, 4)
    assert hits.ids[3].tolist() == [0, 1, 2, 3]
    assert hits.scores[3].tolist() == [0, 0, 0, 0]


def test_a_document_without_tokens_comes_last_with_the_least_score_there_is(index, queries):
    hits = index.search(queries, 100)
    assert hits.ids.shape == (len(QUESTIONS), len(TEXTS))
    asking = np.flatnonzero(np.diff(queries.offsets))
    assert (hits.ids[asking, -1] == 3).all()
    assert np.array_equal(hits.scores[asking, -1], -np.diff(queries.offsets)[asking])


def test_two_opposite_tokens_score_no_less_than_none():
    index = LateInteractionIndex.build(ragged([np.empty((0, 4)), -np.ones((2, 4))]), **NAMES)
    hits = index.search(ragged([np.ones((3, 4))]), 2)
    assert hits.scores.tolist() == [[-3, -3]]
    assert hits.ids.tolist() == [[0, 1]]


def test_no_queries_give_no_rows(index):
    none = TokenVectors(np.empty((0, index.dimension), np.float16), np.zeros(1, np.int64))
    assert index.search(none, 5).ids.shape == (0, 5)
    assert index.scores(none, np.empty((0, 2), int)).shape == (0, 2)


def test_scores_of_given_documents_are_those_of_the_search(index, queries):
    hits = index.search(queries, 6)
    assert np.array_equal(index.scores(queries, hits.ids), hits.scores)
    assert index.scores(queries, np.empty((len(QUESTIONS), 0), int)).shape == (len(QUESTIONS), 0)
    with pytest.raises(ValueError, match=r"ids must lie in 0\.\.8, got 9"):
        index.scores(queries, np.full((len(QUESTIONS), 1), 9))


def test_the_norm_of_a_token_does_not_matter(index, queries):
    scaled = TokenVectors(queries.vectors.astype(np.float32) * 8, queries.offsets)
    assert np.array_equal(index.search(scaled, 9).ids, index.search(queries, 9).ids)


def test_the_callers_vectors_are_left_alone(embedder, queries):
    mine = embedder.embed_tokens(TEXTS)
    before = mine.vectors.copy()
    index = LateInteractionIndex.build(mine, **NAMES)
    assert np.array_equal(mine.vectors, before)
    hits = index.search(queries, 3)
    mine.vectors[:] = 0
    mine.offsets[1:-1] = 0
    assert np.array_equal(index.search(queries, 3).scores, hits.scores)


def test_vectors_are_stored_in_float16(index):
    assert index._tokens.vectors.dtype == np.float16


def test_saving_and_loading_changes_nothing(index, queries, tmp_path):
    index.save(tmp_path / "index")
    again = LateInteractionIndex.load(tmp_path / "index", **NAMES)
    assert again.fingerprint == index.fingerprint
    assert len(again) == len(TEXTS)
    assert np.array_equal(again.search(queries, 9).ids, index.search(queries, 9).ids)
    assert np.array_equal(again.search(queries, 9).scores, index.search(queries, 9).scores)


@pytest.mark.parametrize(("field", "word"), [("corpus_fingerprint", "corpus"), ("embedder_fingerprint", "embedder")])
def test_an_index_of_another_corpus_or_embedder_is_refused(index, tmp_path, field, word):
    index.save(tmp_path / "index")
    with pytest.raises(StorageError, match=f"{word} is '{word}-1', expected 'other'"):
        LateInteractionIndex.load(tmp_path / "index", **(NAMES | {field: "other"}))


@pytest.mark.parametrize("name", ["vectors.npy", "offsets.npy"])
def test_a_changed_file_is_refused(index, tmp_path, name):
    index.save(tmp_path / "index")
    with (tmp_path / "index" / name).open("r+b") as file:
        file.seek(-1, 2)
        byte = file.read(1)
        file.seek(-1, 2)
        file.write(bytes([byte[0] ^ 1]))
    with pytest.raises(StorageError, match=f"{name}: checksum differs"):
        LateInteractionIndex.load(tmp_path / "index", **NAMES)


def test_a_missing_index_is_refused_with_what_to_do(tmp_path):
    with pytest.raises(StorageError, match="build it and save it first"):
        LateInteractionIndex.load(tmp_path / "nowhere", **NAMES)


def test_the_fingerprint_recorded_is_checked(index, tmp_path):
    index.save(tmp_path / "index")
    manifest = tmp_path / "index" / "manifest.json"
    manifest.write_text(manifest.read_text().replace(index.fingerprint, "0" * 64))
    with pytest.raises(StorageError, match=f"fingerprint is {index.fingerprint}, expected 0000"):
        LateInteractionIndex.load(tmp_path / "index", **NAMES)


def test_fingerprints_follow_corpus_embedder_vectors_and_where_texts_end():
    vectors = np.eye(4, dtype=np.float32)
    prints = {
        LateInteractionIndex.build(
            TokenVectors(v, np.array(offsets)), corpus_fingerprint=c, embedder_fingerprint=e
        ).fingerprint
        for v, offsets, c, e in [
            (vectors, [0, 2, 4], "c", "e"),
            (vectors, [0, 2, 4], "c2", "e"),
            (vectors, [0, 2, 4], "c", "e2"),
            (vectors[::-1], [0, 2, 4], "c", "e"),
            (vectors, [0, 1, 4], "c", "e"),
            (vectors * 2, [0, 2, 4], "c", "e"),  # as the first: norms do not matter
        ]
    }
    assert len(prints) == 5


def test_a_corpus_without_tokens_is_refused():
    for texts in ([], [np.empty((0, DIMENSION))] * 3):
        with pytest.raises(ValueError, match=f"at least one document with a token; got {len(texts)} documents"):
            LateInteractionIndex.build(ragged(texts), **NAMES)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0])
def test_tokens_without_a_direction_are_refused(index, bad):
    vectors = np.ones((3, DIMENSION), np.float32)
    vectors[1] = bad
    with pytest.raises(ValueError, match="document tokens must be finite and not zero; row 1 is not"):
        LateInteractionIndex.build(TokenVectors(vectors, np.array([0, 3])), **NAMES)
    wide = np.full((2, index.dimension), bad, np.float32)
    with pytest.raises(ValueError, match="query tokens must be finite and not zero; row 0 is not"):
        index.search(TokenVectors(wide, np.array([0, 2])), 1)


def test_queries_of_another_dimension_and_k_below_1_are_refused(index, queries):
    with pytest.raises(ValueError, match=r"\(tokens, 384\).*got \(1, 4\): was another embedder used"):
        index.search(ragged([np.ones((1, DIMENSION))]), 1)
    with pytest.raises(ValueError, match="k must be at least 1, got 0"):
        index.search(queries, 0)


@pytest.mark.parametrize(
    ("vectors", "offsets", "message"),
    [
        (np.ones(3), [0, 3], r"floats of shape \(tokens, d\)"),
        (np.ones((3, 2), int), [0, 3], r"floats of shape \(tokens, d\), got int64"),
        (np.ones((3, 2)), [], r"integers of shape \(texts \+ 1,\)"),
        (np.ones((3, 2)), [0.0, 3.0], "integers of shape"),
        (np.ones((3, 2)), [[0, 3]], "integers of shape"),
        (np.ones((3, 2)), [0, 2], "rise from 0 to the 3 tokens; got 0 to 2$"),
        (np.ones((3, 2)), [1, 3], "rise from 0 to the 3 tokens; got 1 to 3$"),
        (np.ones((3, 2)), [0, 2, 1, 3], "got 0 to 3, and they fall in between"),
    ],
)
def test_token_vectors_of_another_form_are_refused(vectors, offsets, message):
    with pytest.raises(ValueError, match=message):
        TokenVectors(vectors, np.array(offsets))


def test_a_texts_tokens_are_found_by_its_place():
    tokens = TokenVectors(np.eye(4), np.array([0, 1, 1, 4]))
    assert [len(tokens[i]) for i in range(len(tokens))] == [1, 0, 3]
    assert np.array_equal(tokens[2], np.eye(4)[1:])
    assert len(list(tokens)) == 3
    with pytest.raises(IndexError, match=r"0\.\.2, got -1"):
        tokens[-1]


def test_three_retrievers_fill_one_pool_that_holds_the_best_of_each(embedder, index, queries):
    dense = DenseIndex.build(embedder.embed(TEXTS), **NAMES)
    sparse = SparseIndex.build(TEXTS, corpus_fingerprint="corpus-1")
    asked = embedder.embed(QUESTIONS)
    hits = [dense.search(asked, 9), sparse.search(QUESTIONS, 9), index.search(queries, 9)]
    groups = np.array([TEXTS.index(text) for text in TEXTS])
    pools = union_pool(hits, 6, groups=groups)
    for q, pool in enumerate(pools):
        assert len(set(groups[pool])) == 6
        for result in hits:
            assert set(list(dict.fromkeys(groups[result.ids[q]].tolist()))[:2]) <= set(groups[pool].tolist())


def test_interventions_never_raise_a_rejected_candidate_whatever_the_querys_length(index, queries):
    every = np.tile(np.arange(len(TEXTS)), (len(QUESTIONS), 1))
    scores = index.scores(queries, every)  # from -t to t, another t in every row
    mask = np.arange(len(TEXTS)) % 2
    for mode in MODES:
        kept, adjusted = adjust(scores, np.ones_like(scores), mode), adjust(scores, np.tile(mask, (5, 1)), mode)
        assert (adjusted[:, mask == 0] <= kept[:, mask == 0]).all()
        assert np.array_equal(adjusted[:, mask == 1], kept[:, mask == 1])
        assert np.array_equal(np.argsort(-kept, kind="stable"), np.argsort(-scores, kind="stable"))
