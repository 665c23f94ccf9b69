"""Late interaction: exact MaxSim over token vectors, scanned in blocks on the CPU."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..storage import StorageError, digest, sealed, unseal
from .hits import Hits, check_ids, check_k

_FORMAT = "recallgym-late-interaction-index/1"
_BLOCK_TOKENS = 1024  # converted to float32 at a time: 1.5 MB at 384 dimensions, which a core's cache holds
_QUERIES = 64  # scanned together: their scores of 17,000 documents take 4 MB
_CHUNK_TOKENS = 1 << 15  # normalised or digested at a time


@dataclass(frozen=True, eq=False)
class TokenVectors:
    """The token vectors of n texts, one text after the other.

    Attributes:
        vectors: (T, d) float16 or float32, all texts' tokens in order.
        offsets: (n + 1,) integers from 0 to T that never fall; text i has the rows ``offsets[i]:offsets[i + 1]``,
            possibly none.
    """

    vectors: NDArray[np.floating]
    offsets: NDArray[np.integer]

    def __post_init__(self) -> None:
        vectors, offsets = self.vectors, self.offsets
        if vectors.ndim != 2 or vectors.dtype.kind != "f":
            raise ValueError(f"vectors must be floats of shape (tokens, d), got {vectors.dtype} of {vectors.shape}")
        if offsets.ndim != 1 or not len(offsets) or offsets.dtype.kind not in "iu":
            raise ValueError(f"offsets must be integers of shape (texts + 1,), got {offsets.dtype} of {offsets.shape}")
        if offsets[0] != 0 or offsets[-1] != len(vectors) or (offsets[1:] < offsets[:-1]).any():
            raise ValueError(
                f"offsets must rise from 0 to the {len(vectors)} tokens; got {offsets[0]} to {offsets[-1]}"
                + (", and they fall in between" if (offsets[1:] < offsets[:-1]).any() else "")
            )

    def __len__(self) -> int:
        """Number of texts n."""
        return len(self.offsets) - 1

    def __getitem__(self, text: int) -> NDArray[np.floating]:
        """Returns the token vectors (t, d) of one text."""
        if not 0 <= text < len(self):
            raise IndexError(f"text must lie in 0..{len(self) - 1}, got {text}")
        return self.vectors[self.offsets[text] : self.offsets[text + 1]]


class LateInteractionIndex:
    """Exact MaxSim, bound to its corpus and embedder by fingerprint. Made by :meth:`build` or :meth:`load`.

    The score of a document is the sum, over the query's tokens, of the largest cosine with any token of the document
    (Khattab and Zaharia 2020, ColBERT, equation 3). It lies in [-t, t] for a query of t tokens, so scores of different
    queries are not on one scale. A document without tokens scores -t, the least there is; for a query without tokens
    every document scores 0.

    Fed by :meth:`Embedder.embed_tokens <recallgym.backends.readers.embedder.Embedder.embed_tokens>` this is an
    **untuned** arm: a sentence encoder's tokens were not trained for late interaction, as ColBERT's are. The default
    encoder is English: it reads Chinese as single characters, and those that it does not know as one unknown token,
    so its scores of Chinese text mean little.

    Token vectors are kept in float16: 17,000 documents of 64 tokens take 0.84 GB at 384 dimensions.

    Attributes:
        corpus_fingerprint, embedder_fingerprint: What the vectors were made from and with.
        fingerprint: Digest of both and of the stored vectors.
    """

    def __init__(self, tokens: TokenVectors, corpus_fingerprint: str, embedder_fingerprint: str) -> None:
        self._tokens = tokens  # (T, d) float16, each of length 1
        self.corpus_fingerprint = corpus_fingerprint
        self.embedder_fingerprint = embedder_fingerprint
        starts = range(0, len(tokens.vectors), _CHUNK_TOKENS)
        chunks = [digest(tokens.vectors[i : i + _CHUNK_TOKENS].tobytes()) for i in starts]  # no second copy of all
        self.fingerprint = digest(_FORMAT, corpus_fingerprint, embedder_fingerprint, tokens.offsets.tobytes(), *chunks)
        # Documents without tokens take no rows: without them the offsets of the others are still those of the rows.
        self._filled = np.flatnonzero(np.diff(tokens.offsets))  # (F,) documents with tokens
        self._starts = np.append(tokens.offsets[self._filled], len(tokens.vectors))  # (F + 1,)
        self._blocks = [0]  # of filled documents: as many as fit into a block, at least one
        while self._blocks[-1] < len(self._filled):
            room = self._starts[self._blocks[-1]] + _BLOCK_TOKENS
            fitting = int(np.searchsorted(self._starts, room, side="right")) - 1
            self._blocks.append(max(fitting, self._blocks[-1] + 1))

    @classmethod
    def build(
        cls, tokens: TokenVectors, *, corpus_fingerprint: str, embedder_fingerprint: str
    ) -> "LateInteractionIndex":
        """Indexes the token vectors of documents.

        Args:
            tokens: Vectors (T, d) of D documents, finite, none zero; normalised here, in a copy. Single documents may
                have none.
            corpus_fingerprint: Digest of the documents, in order.
            embedder_fingerprint: Digest of what embedded them.

        Raises:
            ValueError: No document has a token.
        """
        if 0 in tokens.vectors.shape:
            raise ValueError(
                f"expected at least one document with a token; got {len(tokens)} documents and vectors of shape "
                f"{tokens.vectors.shape}"
            )
        unit = TokenVectors(_unit(tokens.vectors, "document tokens", np.float16), tokens.offsets.astype(np.int64))
        return cls(unit, corpus_fingerprint, embedder_fingerprint)

    def __len__(self) -> int:
        """Number of documents D."""
        return len(self._tokens)

    @property
    def dimension(self) -> int:
        """Size d of a vector."""
        return int(self._tokens.vectors.shape[1])

    def search(self, queries: TokenVectors, k: int) -> Hits:
        """Finds the documents of highest MaxSim.

        Every document is scanned in float32. Those that rounding might place among the k best are scored again in
        float64, each alone, so that a result depends neither on how many queries are searched together nor on where a
        document stands.

        Args:
            queries: Token vectors of Q queries, finite, none zero; any norm.
            k: Results a query; at most D of them are returned.
        """
        k = check_k(k, len(self))
        unit = self._check(queries)
        ids = np.empty((len(unit), k), dtype=np.int64)  # (Q, k)
        scores = np.empty((len(unit), k), dtype=np.float32)  # (Q, k)
        for first in range(0, len(unit), _QUERIES):
            offsets = unit.offsets[first : first + _QUERIES + 1]
            scanned = self._scan(unit.vectors[offsets[0] : offsets[-1]], offsets - offsets[0])
            for q, row in enumerate(scanned, start=first):
                tokens = len(unit[q])
                # Rounding moves a score by at most t (d + t) eps / 2, and the k-th best by as much. Twice that is safe.
                slack = 2 * tokens * (self.dimension + tokens) * np.finfo(np.float32).eps
                within = np.flatnonzero(row >= np.partition(row, len(row) - k)[len(row) - k] - slack)
                exact = self._score(unit[q], within)
                order = np.argsort(-exact, kind="stable")[:k]  # ids ascend, so equal scores stay in order of id
                ids[q], scores[q] = within[order], exact[order]
        return Hits(ids, scores)

    def scores(self, queries: TokenVectors, ids: NDArray) -> NDArray[np.float32]:
        """Returns the MaxSim (Q, N) of the given documents (Q, N) for each of Q queries."""
        unit = self._check(queries)
        ids = check_ids(ids, len(unit), len(self))
        scores = np.empty(ids.shape, dtype=np.float32)  # (Q, N)
        for q, row in enumerate(ids):
            scores[q] = self._score(unit[q], row)
        return scores

    def save(self, path: str | Path) -> None:
        """Writes the index as a directory, in one step."""
        fields = {
            "format": _FORMAT,
            "corpus": self.corpus_fingerprint,
            "embedder": self.embedder_fingerprint,
            "documents": len(self),
            "dimension": self.dimension,
            "fingerprint": self.fingerprint,
        }
        with sealed(path, fields) as staging:
            np.save(staging / "vectors.npy", self._tokens.vectors)
            np.save(staging / "offsets.npy", self._tokens.offsets)

    @classmethod
    def load(cls, path: str | Path, *, corpus_fingerprint: str, embedder_fingerprint: str) -> "LateInteractionIndex":
        """Reads an index that was built from exactly this corpus with exactly this embedder.

        Raises:
            StorageError: It was built from another corpus or embedder, its files are damaged, or its fingerprint is
                not the one recorded.
        """
        manifest = unseal(path, {"format": _FORMAT, "corpus": corpus_fingerprint, "embedder": embedder_fingerprint})
        tokens = TokenVectors(np.load(Path(path) / "vectors.npy"), np.load(Path(path) / "offsets.npy"))
        index = cls(tokens, corpus_fingerprint, embedder_fingerprint)
        if index.fingerprint != manifest["fingerprint"]:
            raise StorageError(f"{path}: fingerprint is {index.fingerprint}, expected {manifest['fingerprint']}")
        return index

    def _check(self, queries: TokenVectors) -> TokenVectors:
        if queries.vectors.shape[1] != self.dimension:
            raise ValueError(
                f"query tokens must have shape (tokens, {self.dimension}), the dimension of this index; got "
                f"{queries.vectors.shape}: was another embedder used?"
            )
        return TokenVectors(_unit(queries.vectors, "query tokens", np.float32), queries.offsets.astype(np.int64))

    def _scan(self, unit: NDArray, offsets: NDArray[np.int64]) -> NDArray[np.float32]:
        """Returns the MaxSim (Q, D) of every document, up to the rounding of float32."""
        import torch  # converts float16 eight times faster than NumPy

        counts = np.diff(offsets)  # (Q,)
        scores = np.repeat(-counts[:, None].astype(np.float32), len(self), axis=1)  # (Q, D), right for no tokens
        asking = np.flatnonzero(counts)
        if not len(asking):
            return scores
        for first, last in pairwise(self._blocks):
            begin, end = self._starts[first], self._starts[last]
            block = torch.from_numpy(self._tokens.vectors[begin:end]).float().numpy()  # (T_B, d)
            best = np.maximum.reduceat(block @ unit.T, self._starts[first:last] - begin, axis=0).clip(-1, 1)  # (B, T_Q)
            scores[np.ix_(asking, self._filled[first:last])] = np.add.reduceat(best, offsets[asking], axis=1).T
        return scores

    def _score(self, unit: NDArray, documents: NDArray[np.int64]) -> NDArray[np.float32]:
        scores = np.full(len(documents), -len(unit), dtype=np.float32)  # (N,)
        query = unit.astype(np.float64)  # (t, d)
        for i, document in enumerate(documents):
            tokens = self._tokens[document].astype(np.float64)  # (t_D, d)
            if len(tokens):
                scores[i] = (query @ tokens.T).max(axis=1).clip(-1, 1).sum()  # stored norms are rounded too
        return scores


def _unit(vectors: NDArray, name: str, dtype: DTypeLike) -> NDArray:
    unit = np.empty(vectors.shape, dtype=dtype)
    for i in range(0, len(vectors), _CHUNK_TOKENS):
        chunk = vectors[i : i + _CHUNK_TOKENS].astype(np.float32)
        norms = np.linalg.norm(chunk, axis=1, keepdims=True)  # NaN or infinite where an entry is
        bad = np.flatnonzero(~(np.isfinite(norms[:, 0]) & (norms[:, 0] > 0)))
        if len(bad):
            raise ValueError(f"{name} must be finite and not zero; row {i + bad[0]} is not")
        unit[i : i + _CHUNK_TOKENS] = chunk / norms
    return unit
