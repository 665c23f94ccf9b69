"""Retrieval: dense and sparse indexes, and the pool of candidates that they propose together.

Every index is bound to its corpus by fingerprint, searches in batches, and returns :class:`Hits`. FAISS and bm25s are
imported when an index is made, not here.
"""

from .dense import DenseIndex
from .hits import Hits
from .pool import union_pool
from .sparse import SparseIndex

__all__ = ["DenseIndex", "Hits", "SparseIndex", "union_pool"]
