"""BM25 over English, identifiers and Chinese."""

import json
import math
import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recallgym.backends.retrieval import SparseIndex, sparse as module
from recallgym.backends.storage import MANIFEST, StorageError
from recallgym.backends.text import search_tokens

DOCUMENTS = [
    "KMeans.n_init is the number of times the algorithm runs with different centroid seeds.",
    "The parameter n_jobs is the number of jobs to run in parallel.",
    "北京是中国的首都，人口超过两千万。",
    "聚类算法把相似的样本分到同一组。",
    "保险合同自生效之日起三十天内为等待期。",
    "Mean shift clustering needs no number of clusters.",
    "",
    "max_iter: int, default=300. Most iterations of KMeans for a single run.",
]
words = st.text(st.sampled_from("ab 聚类,"), max_size=12)


@pytest.fixture(scope="module")
def index():
    return SparseIndex.build(DOCUMENTS, corpus_fingerprint="corpus-1")


def bm25(query, documents, k1=1.5, b=0.75):
    """Lucene's formula, term by term."""
    counts = [Counter(search_tokens(d)) for d in documents]
    mean = sum(c.total() for c in counts) / len(counts)
    scores = np.zeros(len(documents))
    for term in search_tokens(query):
        df = sum(term in c for c in counts)
        idf = math.log(1 + (len(counts) - df + 0.5) / (df + 0.5))
        for d, c in enumerate(counts):
            scores[d] += idf * c[term] / (c[term] + k1 * (1 - b + b * c.total() / mean))
    return scores


@pytest.mark.parametrize("query", ["number of KMeans runs", "首都在哪里", "n_init", "nothing shared xyzzy", ""])
def test_scores_are_those_of_the_formula(index, query):
    every = np.arange(len(DOCUMENTS))[None]
    assert np.allclose(index.scores([query], every), bm25(query, DOCUMENTS), atol=1e-5)


@pytest.mark.parametrize(
    ("query", "document"),
    [
        ("中国的首都在哪里？", 2),
        ("什么是聚类", 3),
        ("等待期是多少天", 4),
        ("how many times does K-Means init?", 0),
        ("maxIter", 7),
    ],
)
def test_queries_find_their_document_in_either_language(index, query, document):
    hits = index.search([query], 3)
    assert hits.ids[0, 0] == document
    assert hits.scores[0, 0] > hits.scores[0, 1]


def test_places_left_over_are_filled_in_order_of_id_with_score_zero(index):
    hits = index.search(["等待期", "", "xyzzy"], 5)
    assert hits.ids.tolist() == [[4, 0, 1, 2, 3], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]
    assert hits.scores[0, 0] > 0
    assert not hits.scores[0, 1:].any()
    assert not hits.scores[1:].any()


def test_scores_of_given_documents_are_those_of_the_search(index):
    texts = ["number of clusters", "聚类"]
    hits = index.search(texts, 8)
    assert np.array_equal(index.scores(texts, hits.ids), hits.scores)


@settings(deadline=None)
@given(documents=st.lists(words, min_size=1, max_size=8), queries=st.lists(words, max_size=4), k=st.integers(1, 12))
def test_no_padding_no_duplicates_and_the_order_of_brute_force(documents, queries, k):
    documents = [*documents, "a"]  # at least one term
    hits = SparseIndex.build(documents, corpus_fingerprint="c").search(queries, k)
    assert hits.ids.shape == (len(queries), min(k, len(documents)))
    for query, ids, scores in zip(queries, hits.ids.tolist(), hits.scores, strict=True):
        assert len(set(ids)) == len(ids)
        assert set(ids) <= set(range(len(documents)))
        assert np.allclose(scores, np.sort(bm25(query, documents))[::-1][:k], atol=1e-4)
        assert [i for _, i in sorted(zip(-scores, ids, strict=True))] == ids


def test_saving_and_loading_changes_nothing(index, tmp_path):
    index.save(tmp_path / "index")
    again = SparseIndex.load(tmp_path / "index", corpus_fingerprint="corpus-1")
    assert again.fingerprint == index.fingerprint
    assert len(again) == len(DOCUMENTS)
    texts = ["number of clusters", "聚类算法", "xyzzy"]
    assert np.array_equal(again.search(texts, 8).ids, index.search(texts, 8).ids)
    assert np.array_equal(again.search(texts, 8).scores, index.search(texts, 8).scores)


def test_an_index_of_another_corpus_is_refused_naming_both(index, tmp_path):
    index.save(tmp_path / "index")
    with pytest.raises(StorageError, match="corpus is 'corpus-1', expected 'corpus-2'"):
        SparseIndex.load(tmp_path / "index", corpus_fingerprint="corpus-2")


def test_an_index_of_another_tokeniser_is_refused(index, tmp_path, monkeypatch):
    index.save(tmp_path / "index")
    monkeypatch.setattr(module, "search_tokens", str.split)
    with pytest.raises(StorageError, match="tokeniser is"):
        SparseIndex.load(tmp_path / "index", corpus_fingerprint="corpus-1")


def test_damaged_files_are_refused_by_name(index, tmp_path):
    index.save(tmp_path / "index")
    files = [file for file in (tmp_path / "index").iterdir() if file.name != MANIFEST]
    assert len(files) == 5
    for file in files:
        whole = file.read_bytes()
        file.write_bytes(whole[:-1])
        with pytest.raises(StorageError, match=file.name):
            SparseIndex.load(tmp_path / "index", corpus_fingerprint="corpus-1")
        file.write_bytes(whole)


def test_the_manifest_alone_is_not_trusted(index, tmp_path):
    index.save(tmp_path / "index")
    manifest = tmp_path / "index" / MANIFEST
    whole = manifest.read_text()
    manifest.write_text(whole.replace("corpus-1", "corpus-2"))
    with pytest.raises(StorageError, match="fingerprint"):
        SparseIndex.load(tmp_path / "index", corpus_fingerprint="corpus-2")
    manifest.write_text(whole.replace('"documents": 8', '"documents": 9'))
    with pytest.raises(StorageError, match="has 8 documents, expected 9"):
        SparseIndex.load(tmp_path / "index", corpus_fingerprint="corpus-1")


def test_fingerprints_follow_texts_corpus_and_parameters(index):
    prints = {
        index.fingerprint,
        SparseIndex.build(DOCUMENTS, corpus_fingerprint="corpus-2").fingerprint,
        SparseIndex.build(DOCUMENTS[::-1], corpus_fingerprint="corpus-1").fingerprint,
        SparseIndex.build(DOCUMENTS, corpus_fingerprint="corpus-1", k1=1.2).fingerprint,
    }
    assert len(prints) == 4
    assert SparseIndex.build(DOCUMENTS, corpus_fingerprint="corpus-1").fingerprint in prints


def test_the_fingerprint_is_the_same_under_every_hash_seed(index):
    code = (
        "from recallgym.backends.retrieval import SparseIndex; import json, sys;"
        "print(SparseIndex.build(json.loads(sys.stdin.read()), corpus_fingerprint='corpus-1').fingerprint)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(DOCUMENTS),
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONHASHSEED": "7"},
    )
    assert run.stdout.strip() == index.fingerprint


def test_lone_surrogates_are_indexed_saved_and_searched(tmp_path):
    index = SparseIndex.build(["broken \ud800 text", "中\udfff国"], corpus_fingerprint="c")
    index.save(tmp_path / "index")
    again = SparseIndex.load(tmp_path / "index", corpus_fingerprint="c")
    assert again.search(["text \udc00", "国"], 1).ids.tolist() == [[0], [1]]


@pytest.mark.parametrize("texts", [[], ["", "。。。"]])
def test_a_corpus_without_a_single_term_is_refused(texts):
    with pytest.raises(ValueError, match="at least one document with a word"):
        SparseIndex.build(texts, corpus_fingerprint="c")


def test_ids_outside_the_corpus_are_refused(index):
    with pytest.raises(ValueError, match=r"0\.\.7, got -1"):
        index.scores(["a"], np.array([[-1]]))
