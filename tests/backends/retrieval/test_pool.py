"""The union pool: every arm's own best inside, no duplicates, nothing that was not returned."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from recallgym.backends.retrieval import Hits, union_pool


def hits(*rankings):
    ids = np.array(rankings, dtype=np.int64)
    return Hits(ids, np.zeros(ids.shape, np.float32))


@st.composite
def cases(draw):
    """Two or three retrievers, each a partial permutation of D documents, for Q queries; groups of equal text."""
    documents = draw(st.integers(8, 16))
    queries = draw(st.integers(1, 3))
    permutation = st.permutations(range(documents)).map(tuple)
    results = []
    for _ in range(draw(st.integers(2, 3))):
        depth = draw(st.integers(6, documents))
        results.append(hits(*[draw(permutation)[:depth] for _ in range(queries)]))
    groups = draw(st.lists(st.integers(0, documents - 1), min_size=documents, max_size=documents))
    return results, np.array(groups)


def distinct(ids, groups):
    """The ranking with each group's later members left out, as groups."""
    return list(dict.fromkeys(groups[ids].tolist()))


@given(cases(), st.integers(3, 6))
def test_every_retrievers_own_best_are_inside(case, size):
    results, _ = case
    pool = union_pool(results, size)
    k = size // len(results)
    for q, row in enumerate(pool.tolist()):
        assert len(row) == len(set(row)) == size
        for result in results:
            assert set(result.ids[q, :k].tolist()) <= set(row)


@given(cases())
def test_nothing_enters_that_was_not_returned(case):
    results, _ = case
    for q, row in enumerate(union_pool(results, 6)):
        assert set(row) <= set(np.concatenate([result.ids[q] for result in results]))


@given(cases(), st.integers(3, 6))
def test_of_documents_with_one_text_only_the_first_is_kept(case, size):
    results, groups = case
    k = size // len(results)
    try:
        pool = union_pool(results, size, groups=groups)
    except ValueError:
        returned = [np.concatenate([result.ids[q] for result in results]) for q in range(len(results[0].ids))]
        assert min(len(set(groups[ids])) for ids in returned) < size
        return
    for q, row in enumerate(pool):
        returned = np.concatenate([result.ids[q] for result in results])
        assert len(set(groups[row])) == size
        for document in row:
            assert document == min(i for i in returned if groups[i] == groups[document])
        for result in results:
            assert set(distinct(result.ids[q], groups)[:k]) <= set(groups[row].tolist())


@given(cases())
def test_groups_of_one_change_nothing(case):
    results, groups = case
    assert np.array_equal(union_pool(results, 6), union_pool(results, 6, groups=np.arange(len(groups)) * 7))


@given(cases())
def test_the_order_of_the_retrievers_does_not_matter(case):
    results, _ = case
    assert np.array_equal(union_pool(results, 6), union_pool(results[::-1], 6))


def test_candidates_are_in_order_of_reciprocal_rank_fusion():
    # 9: 1/61 + 1/63; 4: 1/62 + 1/62 is less by convexity; 7 and 8 have 1/63 and 1/61 alone.
    assert union_pool([hits([9, 4, 7]), hits([8, 4, 9])], 4).tolist() == [[9, 4, 8, 7]]


def test_equal_candidates_are_in_order_of_id():
    assert union_pool([hits([5, 3]), hits([2, 8])], 4).tolist() == [[2, 5, 3, 8]]


def test_places_that_overlap_leaves_are_filled_from_the_next_ranks():
    dense, sparse = hits([0, 1, 2, 3, 4, 5]), hits([0, 1, 2, 3, 9, 8])
    assert sorted(union_pool([dense, sparse], 6)[0].tolist()) == [0, 1, 2, 3, 4, 9]


def test_copies_of_one_text_do_not_push_others_out():
    groups = np.array([0, 0, 0, 0, 1, 2, 3])
    pool = union_pool([hits([3, 1, 0, 4, 5]), hits([2, 3, 6, 5, 4])], 4, groups=groups)
    assert sorted(pool[0].tolist()) == [0, 4, 5, 6]


def test_one_retriever_gives_its_own_ranking():
    assert union_pool([hits([4, 2, 9, 1])], 3).tolist() == [[4, 2, 9]]


def test_too_few_documents_are_refused_with_the_query_and_the_numbers():
    with pytest.raises(ValueError, match=r"query 1: .* 2 different documents, expected at least 3; .*larger k"):
        union_pool([hits([0, 1], [0, 1]), hits([2, 0], [1, 0])], 3)


def test_a_size_too_small_for_the_retrievers_is_refused():
    with pytest.raises(ValueError, match="got 2 and 1"):
        union_pool([hits([0]), hits([1])], 1)
    with pytest.raises(ValueError, match="at least one retriever"):
        union_pool([], 3)


def test_retrievers_that_answered_different_queries_are_refused():
    with pytest.raises(ValueError, match=r"same queries, got \[1, 2\]"):
        union_pool([hits([0, 1]), hits([0, 1], [1, 0])], 2)


def test_no_queries_give_no_pools():
    empty = Hits(np.empty((0, 5), np.int64), np.empty((0, 5), np.float32))
    assert union_pool([empty, empty], 4).shape == (0, 4)
