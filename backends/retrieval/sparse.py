"""Sparse retrieval: BM25 over words, parts of identifiers and Chinese character pairs, with bm25s."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..storage import StorageError, digest, sealed, unseal
from ..text import search_tokens
from .hits import Hits, check_ids, check_k, top_ids

if TYPE_CHECKING:
    from bm25s import BM25

_FORMAT = "recallgym-sparse-index/1"
# Text that every rule of search_tokens acts on: an index is only as good as the tokeniser it was built with.
_PROBE = "KMeans.n_init=-1e-3 fitTransform HTTPServer2 don't 0.25 ＡＢ 聚类算法，类 caf\u00e9"


class SparseIndex:
    """A BM25 index bound to its corpus by fingerprint. Made by :meth:`build` or :meth:`load`.

    A document that shares no term with the query scores exactly 0. Where fewer than k share one, the places left are
    filled by documents of score 0 in ascending id, so that results stay rectangular and no id is ever invented.

    Attributes:
        corpus_fingerprint: What was indexed.
        fingerprint: Digest of it, the tokeniser's behaviour, the parameters and the term weights.
    """

    def __init__(self, bm25: "BM25", corpus_fingerprint: str) -> None:
        self._bm25 = bm25
        self.corpus_fingerprint = corpus_fingerprint
        weights = [np.ascontiguousarray(bm25.scores[name]).tobytes() for name in ("data", "indices", "indptr")]
        terms = json.dumps(sorted(bm25.vocab_dict, key=bm25.vocab_dict.get))
        self.fingerprint = digest(_FORMAT, corpus_fingerprint, _tokeniser(), f"{bm25.k1} {bm25.b}", terms, *weights)

    @classmethod
    def build(cls, texts: Sequence[str], *, corpus_fingerprint: str, k1: float = 1.5, b: float = 0.75) -> "SparseIndex":
        """Indexes documents.

        Args:
            texts: D documents, in corpus order.
            corpus_fingerprint: Digest of them.
            k1: Saturation of term frequency; default of bm25s.
            b: Strength of length normalisation in [0, 1]; default of bm25s and of Lucene.

        Raises:
            ValueError: No document has a single term.
        """
        import bm25s

        documents = [search_tokens(text) for text in texts]
        terms = {term: i for i, term in enumerate(sorted({term for document in documents for term in document}))}
        if not terms:
            raise ValueError(f"expected at least one document with a word in it, got {len(texts)} documents with none")
        bm25 = bm25s.BM25(k1=k1, b=b, method="lucene", backend="numpy")
        ids = [[terms[term] for term in document] for document in documents]
        bm25.index((ids, terms), create_empty_token=False, show_progress=False)
        return cls(bm25, corpus_fingerprint)

    def __len__(self) -> int:
        """Number of documents D."""
        return int(self._bm25.scores["num_docs"])

    def search(self, texts: Sequence[str], k: int) -> Hits:
        """Finds the documents of highest BM25 score.

        Args:
            texts: Q queries.
            k: Results a query; at most D of them are returned.
        """
        k = check_k(k, len(self))
        ids = np.empty((len(texts), k), dtype=np.int64)  # (Q, k)
        scores = np.empty((len(texts), k), dtype=np.float32)  # (Q, k)
        for q, text in enumerate(texts):
            all_scores = self._score(text)
            ids[q] = top_ids(all_scores, k)
            scores[q] = all_scores[ids[q]]
        return Hits(ids, scores)

    def scores(self, texts: Sequence[str], ids: NDArray) -> NDArray[np.float32]:
        """Returns the BM25 score (Q, N) of the given documents (Q, N) for each of Q queries."""
        ids = check_ids(ids, len(texts), len(self))
        scores = np.empty(ids.shape, dtype=np.float32)  # (Q, N)
        for q, text in enumerate(texts):
            scores[q] = self._score(text)[ids[q]]
        return scores

    def save(self, path: str | Path) -> None:
        """Writes the index as a directory, in one step."""
        fields = {
            "format": _FORMAT,
            "corpus": self.corpus_fingerprint,
            "tokeniser": _tokeniser(),
            "documents": len(self),
            "fingerprint": self.fingerprint,
        }
        with sealed(path, fields) as staging:
            self._bm25.save(str(staging), show_progress=False)

    @classmethod
    def load(cls, path: str | Path, *, corpus_fingerprint: str) -> "SparseIndex":
        """Reads an index that was built from exactly this corpus, with the tokeniser of this version.

        Raises:
            StorageError: It was built from another corpus or by another tokeniser, its files are damaged, or its size
                is not the one recorded.
        """
        import bm25s

        expected = {"format": _FORMAT, "corpus": corpus_fingerprint, "tokeniser": _tokeniser()}
        manifest = unseal(path, expected)
        index = cls(bm25s.BM25.load(str(path), load_corpus=False), corpus_fingerprint)
        if len(index) != manifest["documents"]:
            raise StorageError(f"{path}: the index has {len(index)} documents, expected {manifest['documents']}")
        if index.fingerprint != manifest["fingerprint"]:
            raise StorageError(f"{path}: fingerprint is {index.fingerprint}, expected {manifest['fingerprint']}")
        return index

    def _score(self, text: str) -> NDArray[np.float32]:
        return self._bm25.get_scores_from_ids(self._bm25.get_tokens_ids(search_tokens(text)))  # (D,)


def _tokeniser() -> str:
    return digest(*search_tokens(_PROBE))
