"""The candidate pool: the deduplicated union of what several retrievers return."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .hits import Hits

RRF_CONSTANT = 60  # Cormack, Clarke and Buettcher (2009), reciprocal rank fusion


def union_pool(hits: Sequence[Hits], size: int, *, groups: NDArray | None = None) -> NDArray[np.int64]:
    """Joins the results of several retrievers into pools that contain every retriever's own best.

    Each retriever's first ``size // len(hits)`` documents are in the pool; the places that overlap leaves are filled
    from the next ranks. Documents are then ordered by reciprocal rank fusion, sum of 1 / (60 + rank from 1) over the
    retrievers that returned them, equal ones by ascending id. A document that no retriever returned never enters.

    Args:
        hits: Results of each retriever for the same Q queries.
        size: Candidates N in a pool, at least one for each retriever.
        groups: (D,) label of each document; documents of one label have the same text. A group counts once, at the
            best rank any of its members has, and is represented by the lowest id among those returned.

    Returns:
        Document ids, (Q, N) int64, no two of a row from one group.

    Raises:
        ValueError: The retrievers returned fewer than ``size`` different documents for some query.
    """
    if not hits or size < len(hits):
        raise ValueError(
            f"expected at least one retriever and a size of at least their number; got {len(hits)} and {size}"
        )
    queries = {len(result.ids) for result in hits}
    if len(queries) > 1:
        raise ValueError(f"every retriever must answer the same queries, got {[len(result.ids) for result in hits]}")
    pools = [_pool([result.ids[q] for result in hits], size, groups, q) for q in range(queries.pop())]
    return np.array(pools, dtype=np.int64).reshape(-1, size)  # (Q, N)


def _pool(rankings: list[NDArray[np.int64]], size: int, groups: NDArray | None, query: int) -> list[int]:
    member: dict[int, int] = {}  # group -> lowest id returned
    best: dict[int, int] = {}  # group -> best rank over the retrievers
    fused: dict[int, float] = {}  # group -> reciprocal rank fusion
    for ranking in rankings:
        labels = ranking if groups is None else groups[ranking]
        # Ranks are counted over groups, so that copies of one text do not push others down.
        order = {label: rank for rank, label in enumerate(dict.fromkeys(labels.tolist()))}
        for document, label in zip(ranking.tolist(), labels.tolist(), strict=True):
            member[label] = min(member.get(label, document), document)
        for label, rank in order.items():
            best[label] = min(best.get(label, rank), rank)
            fused[label] = fused.get(label, 0.0) + 1 / (RRF_CONSTANT + 1 + rank)
    if len(member) < size:
        raise ValueError(
            f"query {query}: the retrievers returned {len(member)} different documents, expected at least {size}; "
            "search with a larger k"
        )
    # At most len(rankings) groups have a given best rank, so the first size // len(rankings) ranks of all fit.
    chosen = sorted(member, key=lambda label: (best[label], -fused[label], member[label]))[:size]
    return [member[label] for label in sorted(chosen, key=lambda label: (-fused[label], member[label]))]
