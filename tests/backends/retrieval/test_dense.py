"""Dense retrieval, on real embeddings."""

import faiss
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recallgym.backends.readers.embedder import Embedder
from recallgym.backends.retrieval import DenseIndex
from recallgym.backends.retrieval.dense import _FILE, _FORMAT
from recallgym.backends.storage import MANIFEST, StorageError, sealed

GPU = hasattr(faiss, "StandardGpuResources") and faiss.get_num_gpus() > 0
SUBJECTS = ["The river", "A loaf of bread", "My bicycle", "The court", "An old violin", "The vaccine", "Our index"]
VERBS = ["froze over", "was sold", "fell apart", "was praised", "needs repair", "surprised everyone", "costs too much"]
TIMES = ["last winter", "before noon", "in the capital", "after the vote"]
SENTENCES = [f"{s} {v} {t}." for s in SUBJECTS for v in VERBS for t in TIMES]  # 196
QUESTIONS = ["Which instrument has to be mended?", "When did the water turn to ice?", "Who praised the judges?"]
NAMES = {"corpus_fingerprint": "corpus-1", "embedder_fingerprint": "embedder-1"}


@pytest.fixture(scope="module")
def vectors():
    return Embedder().embed(SENTENCES)


@pytest.fixture(scope="module")
def queries():
    return Embedder().embed(QUESTIONS)


@pytest.fixture(scope="module")
def index(vectors):
    return DenseIndex.build(vectors, **NAMES)


def cosines(queries, vectors):
    q, v = queries.astype(np.float64), vectors.astype(np.float64)
    return (q / np.linalg.norm(q, axis=1, keepdims=True)) @ (v / np.linalg.norm(v, axis=1, keepdims=True)).T


def test_search_equals_brute_force(index, vectors, queries):
    truth = cosines(np.vstack([queries, vectors]), vectors)
    hits = index.search(np.vstack([queries, vectors]), 10)
    for q, row in enumerate(truth):
        # As sets: two sentences may be closer than float32 can tell.
        assert np.allclose(row[hits.ids[q]], np.sort(row)[::-1][:10], atol=1e-6)
    assert np.allclose(hits.scores, np.take_along_axis(truth, hits.ids, 1), atol=1e-6)
    assert hits.ids.dtype == np.int64
    assert hits.scores.dtype == np.float32


def test_it_finds_what_a_question_is_about(index, queries):
    best = [SENTENCES[i] for i in index.search(queries, 1).ids[:, 0]]
    assert best[0].startswith("An old violin")
    assert best[1].startswith("The river froze over")


def test_each_document_finds_itself_first(index, vectors):
    hits = index.search(vectors, 1)
    assert np.array_equal(hits.ids[:, 0], np.arange(len(vectors)))
    assert np.allclose(hits.scores, 1, atol=1e-6)


def test_a_result_does_not_depend_on_the_batch_or_on_the_norm(index, queries, vectors):
    together = index.search(np.vstack([queries, vectors[:40]]), 20)
    alone = index.search(queries[:1], 20)
    assert np.array_equal(together.ids[:1], alone.ids)
    assert np.array_equal(together.scores[:1], alone.scores)
    assert np.array_equal(index.search(queries * 128, 20).ids, index.search(queries, 20).ids)


def test_scores_of_given_documents_are_those_of_the_search(index, queries):
    hits = index.search(queries, 25)
    assert np.array_equal(index.scores(queries, hits.ids), hits.scores)
    assert index.scores(queries, np.empty((3, 0), int)).shape == (3, 0)


def test_no_queries_give_no_rows(index):
    assert index.search(np.empty((0, index.dimension)), 5).ids.shape == (0, 5)


@settings(deadline=None)
@given(documents=st.integers(1, 12), k=st.integers(1, 30), queries=st.integers(1, 25), seed=st.integers(0, 2**31))
def test_no_padding_and_no_duplicates_whatever_k_asks_for(documents, k, queries, seed):
    generator = np.random.default_rng(seed)
    vectors = generator.normal(size=(documents, 3))
    vectors[generator.integers(documents)] = vectors[0]  # often a duplicate
    small = DenseIndex.build(vectors, **NAMES)
    hits = small.search(generator.normal(size=(queries, 3)), k)
    assert hits.ids.shape == hits.scores.shape == hits.ranks.shape == (queries, min(k, documents))
    assert hits.ids.min() >= 0
    assert hits.ids.max() < documents
    assert all(len(set(row)) == len(row) for row in hits.ids.tolist())
    assert (np.diff(hits.scores, axis=1) <= 0).all()


def test_equal_vectors_come_in_order_of_id():
    small = DenseIndex.build(np.array([[0, 1], [1, 0], [1, 0], [0, 1], [1, 0]]), **NAMES)
    assert small.search(np.array([[1.0, 0.1]]), 5).ids.tolist() == [[1, 2, 4, 0, 3]]


def test_saving_and_loading_changes_nothing(index, queries, tmp_path):
    index.save(tmp_path / "index")
    again = DenseIndex.load(tmp_path / "index", **NAMES)
    assert again.fingerprint == index.fingerprint
    assert len(again) == len(SENTENCES)
    assert np.array_equal(again.search(queries, 30).ids, index.search(queries, 30).ids)
    assert np.array_equal(again.search(queries, 30).scores, index.search(queries, 30).scores)


def test_what_is_saved_is_a_cpu_index(index, tmp_path):
    index.save(tmp_path / "index")
    assert isinstance(faiss.read_index(str(tmp_path / "index" / _FILE)), faiss.IndexFlatIP)


def test_the_callers_vectors_are_left_alone(vectors):
    mine = vectors.copy()
    built = DenseIndex.build(mine, **NAMES)
    assert np.array_equal(mine, vectors)
    before = built.scores(mine[:1], np.array([[0]]))
    mine[:] = 0
    assert np.array_equal(built.scores(vectors[:1], np.array([[0]])), before)


def test_fingerprints_follow_corpus_embedder_and_vectors(vectors):
    prints = {
        DenseIndex.build(v, corpus_fingerprint=c, embedder_fingerprint=e).fingerprint
        for v, c, e in [(vectors, "c", "e"), (vectors, "c2", "e"), (vectors, "c", "e2"), (vectors[::-1], "c", "e")]
    }
    assert len(prints) == 4
    assert DenseIndex.build(vectors, corpus_fingerprint="c", embedder_fingerprint="e").fingerprint in prints


@pytest.mark.parametrize(("field", "word"), [("corpus_fingerprint", "corpus"), ("embedder_fingerprint", "embedder")])
def test_an_index_of_another_corpus_or_embedder_is_refused(index, tmp_path, field, word):
    index.save(tmp_path / "index")
    with pytest.raises(StorageError, match=f"{word} is '{word}-1', expected 'other'"):
        DenseIndex.load(tmp_path / "index", **(NAMES | {field: "other"}))


def test_a_damaged_index_is_refused_by_name(index, tmp_path):
    index.save(tmp_path / "index")
    file = tmp_path / "index" / _FILE
    whole = file.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    for damage in (bytes(flipped), whole[:-100]):
        file.write_bytes(damage)
        with pytest.raises(StorageError, match=_FILE):
            DenseIndex.load(tmp_path / "index", **NAMES)
    file.unlink()
    with pytest.raises(StorageError, match="missing"):
        DenseIndex.load(tmp_path / "index", **NAMES)
    with pytest.raises(StorageError, match="nothing stored here"):
        DenseIndex.load(tmp_path / "elsewhere", **NAMES)


@pytest.mark.parametrize(
    ("shape", "message"),
    [((7, 4), "documents 7, expected 6"), ((6, 5), "dimension 5, expected 4"), ((6, 4), "fingerprint")],
)
def test_an_index_of_another_size_or_dimension_is_refused(tmp_path, shape, message):
    foreign = faiss.IndexFlatIP(shape[1])
    foreign.add(np.ones(shape, np.float32))
    fields = {"format": _FORMAT, "corpus": "corpus-1", "embedder": "embedder-1"}
    with sealed(tmp_path / "index", fields | {"documents": 6, "dimension": 4, "fingerprint": "?"}) as staging:
        faiss.write_index(foreign, str(staging / _FILE))
    with pytest.raises(StorageError, match=message):
        DenseIndex.load(tmp_path / "index", **NAMES)


def test_the_manifest_alone_is_not_trusted(index, tmp_path):
    index.save(tmp_path / "index")
    manifest = tmp_path / "index" / MANIFEST
    manifest.write_text(manifest.read_text().replace("embedder-1", "embedder-2"))
    with pytest.raises(StorageError, match="fingerprint"):
        DenseIndex.load(tmp_path / "index", corpus_fingerprint="corpus-1", embedder_fingerprint="embedder-2")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_queries_that_are_not_finite_are_refused_with_their_row(index, queries, bad):
    broken = queries.copy()
    broken[1, 3] = bad
    with pytest.raises(ValueError, match="1 of 3 are not, the first is row 1"):
        index.search(broken, 5)
    with pytest.raises(ValueError, match="queries must be finite"):
        index.scores(broken, np.zeros((3, 1), int))


def test_zero_vectors_have_no_direction_and_are_refused(index, vectors):
    with pytest.raises(ValueError, match="not zero"):
        index.search(np.zeros((1, index.dimension)), 5)
    with pytest.raises(ValueError, match="vectors must be finite and not zero: 1 of 2"):
        DenseIndex.build(np.stack([vectors[0], 0 * vectors[0]]), **NAMES)


@pytest.mark.parametrize("shape", [(2, 383), (384,), (1, 2, 384)])
def test_queries_of_another_dimension_are_refused_naming_both(index, shape):
    with pytest.raises(ValueError, match=r"\(Q, 384\).*another embedder"):
        index.search(np.ones(shape), 5)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (4,)])
def test_an_index_over_nothing_is_refused(shape):
    with pytest.raises(ValueError, match="vectors must have shape"):
        DenseIndex.build(np.ones(shape), **NAMES)


def test_ids_outside_the_corpus_are_refused(index, queries):
    with pytest.raises(ValueError, match=r"0\.\.195, got -1"):
        index.scores(queries, np.full((3, 2), -1))


def test_an_unknown_device_is_refused(vectors):
    with pytest.raises(ValueError, match="auto, cpu or cuda, got 'tpu'"):
        DenseIndex.build(vectors, **NAMES, device="tpu")


@pytest.mark.skipif(GPU, reason="this FAISS sees a GPU")
def test_without_a_gpu_auto_searches_on_the_cpu_and_cuda_is_refused(vectors, queries):
    assert index_size(DenseIndex.build(vectors, **NAMES)) == len(vectors)
    with pytest.raises(ValueError, match="sees no GPU"):
        DenseIndex.build(vectors, **NAMES, device="cuda")


@pytest.mark.skipif(not GPU, reason="needs faiss-gpu and a GPU")
def test_gpu_and_cpu_agree_and_both_save_the_same_file(vectors, queries, tmp_path):
    on_gpu, on_cpu = (DenseIndex.build(vectors, **NAMES, device=device) for device in ("cuda", "cpu"))
    assert index_size(on_gpu) == len(vectors)
    assert np.array_equal(on_gpu.search(queries, 10).ids, on_cpu.search(queries, 10).ids)
    on_gpu.save(tmp_path / "gpu")
    on_cpu.save(tmp_path / "cpu")
    assert (tmp_path / "gpu" / _FILE).read_bytes() == (tmp_path / "cpu" / _FILE).read_bytes()


def index_size(index):
    """Documents that the index actually searches: the GPU build without a GPU clones into an empty one."""
    return index._searcher.ntotal
