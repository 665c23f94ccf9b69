"""Order of equal scores, ranks of given documents."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from recallgym.backends.retrieval.hits import Hits, check_ids, check_k, top_ids

# Few distinct values, so that most draws hold ties.
SCORES = hnp.arrays(np.float32, st.integers(1, 30), elements=st.sampled_from([0.0, 0.5, 1.0, -2.0]))


@given(SCORES, st.data())
def test_the_best_come_first_and_equal_ones_by_id(scores, data):
    k = data.draw(st.integers(1, len(scores)))
    expected = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:k]
    assert top_ids(scores, k).tolist() == expected


def test_ranks_count_from_zero_and_k_stands_for_absent():
    hits = Hits(np.array([[7, 2, 5], [1, 0, 9]]), np.zeros((2, 3), np.float32))
    assert hits.ranks.tolist() == [[0, 1, 2], [0, 1, 2]]
    assert hits.rank_of(np.array([[5, 7, 3, 2], [2, 9, 1, 7]])).tolist() == [[2, 0, 3, 1], [3, 2, 0, 3]]


def test_k_is_capped_and_zero_refused():
    assert check_k(10, 4) == 4
    with pytest.raises(ValueError, match="at least 1, got 0"):
        check_k(0, 4)


@pytest.mark.parametrize("ids", [[[0, -1]], [[0, 4]], [0, 1], [[0], [1]], [[0.0, 1.0]]])
def test_ids_outside_the_corpus_or_of_another_shape_are_refused(ids):
    with pytest.raises(ValueError, match="ids must"):
        check_ids(np.array(ids), queries=1, documents=4)


def test_importing_retrieval_imports_no_search_library():
    code = (
        "import sys, recallgym.backends.retrieval;"
        "print([m for m in ('faiss', 'bm25s', 'torch', 'transformers') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
