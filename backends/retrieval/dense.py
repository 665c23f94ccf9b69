"""Dense retrieval: exact cosine search over normalised embeddings with FAISS, on the GPU where there is one."""

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..storage import StorageError, digest, sealed, unseal
from .hits import Hits, check_ids, check_k

_FORMAT = "recallgym-dense-index/1"
_FILE = "index.faiss"
_GPU_MOST = 2048  # FAISS selects no more than this many results on a GPU
_CHUNK_FLOATS = 1 << 24  # 64 MB of gathered document vectors at a time


class DenseIndex:
    """A flat inner-product index over L2-normalised vectors, bound to its corpus and embedder by fingerprint.

    Made by :meth:`build` or :meth:`load`.

    Attributes:
        corpus_fingerprint, embedder_fingerprint: What the vectors were made from and with.
        fingerprint: Digest of both and of the vectors.
    """

    def __init__(self, flat: Any, corpus_fingerprint: str, embedder_fingerprint: str, device: str) -> None:
        faiss = _faiss()
        self._flat = flat  # always on the CPU: the vectors' home, and what is serialised
        self._searcher = _to_gpu(faiss, flat) if _use_gpu(faiss, device) else flat
        # A view of FAISS's own storage, not a copy.
        self._vectors = faiss.rev_swig_ptr(flat.get_xb(), flat.ntotal * flat.d).reshape(flat.ntotal, flat.d)  # (D, d)
        self.corpus_fingerprint = corpus_fingerprint
        self.embedder_fingerprint = embedder_fingerprint
        self.fingerprint = digest(_FORMAT, corpus_fingerprint, embedder_fingerprint, self._vectors.tobytes())

    @classmethod
    def build(
        cls, vectors: NDArray, *, corpus_fingerprint: str, embedder_fingerprint: str, device: str = "auto"
    ) -> "DenseIndex":
        """Indexes one vector for each document.

        Args:
            vectors: (D, d), finite, no row zero; normalised here, in a copy.
            corpus_fingerprint: Digest of the documents, in order.
            embedder_fingerprint: Digest of what embedded them.
            device: Where to search: ``cpu``, ``cuda``, or ``auto`` (a GPU where FAISS can use one).
        """
        vectors = np.asarray(vectors)
        if vectors.ndim != 2 or 0 in vectors.shape:
            raise ValueError(f"vectors must have shape (documents, dimension), both at least 1; got {vectors.shape}")
        flat = _faiss().IndexFlatIP(vectors.shape[1])
        flat.add(_unit(vectors, "vectors"))
        return cls(flat, corpus_fingerprint, embedder_fingerprint, device)

    def __len__(self) -> int:
        """Number of documents D."""
        return int(self._flat.ntotal)

    @property
    def dimension(self) -> int:
        """Size d of a vector."""
        return int(self._flat.d)

    def search(self, queries: NDArray, k: int) -> Hits:
        """Finds the documents of highest cosine.

        FAISS chooses the documents; their scores are then those of :meth:`scores`, which do not depend on how many
        queries are searched together.

        Args:
            queries: (Q, d) embeddings, finite, no row zero; any norm.
            k: Results a query; at most D of them are returned.
        """
        k = check_k(k, len(self))
        unit = self._check(queries)
        searcher = self._searcher if k <= _GPU_MOST else self._flat
        found = np.sort(searcher.search(unit, k)[1].astype(np.int64), axis=1)  # (Q, k)
        scores = self._cosines(unit, found)
        order = np.argsort(-scores, axis=1, kind="stable")  # ids ascend, so equal scores stay in order of id
        return Hits(np.take_along_axis(found, order, 1), np.take_along_axis(scores, order, 1))

    def scores(self, queries: NDArray, ids: NDArray) -> NDArray[np.float32]:
        """Returns the cosine (Q, N) of each query (Q, d) with the given documents (Q, N)."""
        unit = self._check(queries)
        return self._cosines(unit, check_ids(ids, len(unit), len(self)))

    def save(self, path: str | Path) -> None:
        """Writes the index as a directory, in one step; always as a CPU index."""
        fields = {
            "format": _FORMAT,
            "corpus": self.corpus_fingerprint,
            "embedder": self.embedder_fingerprint,
            "documents": len(self),
            "dimension": self.dimension,
            "fingerprint": self.fingerprint,
        }
        with sealed(path, fields) as staging:
            _faiss().write_index(self._flat, str(staging / _FILE))

    @classmethod
    def load(
        cls, path: str | Path, *, corpus_fingerprint: str, embedder_fingerprint: str, device: str = "auto"
    ) -> "DenseIndex":
        """Reads an index that was built from exactly this corpus with exactly this embedder.

        Raises:
            StorageError: It was built from another corpus or embedder, its file is damaged, or its size or dimension
                is not the one recorded.
        """
        expected = {"format": _FORMAT, "corpus": corpus_fingerprint, "embedder": embedder_fingerprint}
        manifest = unseal(path, expected)
        flat = _faiss().read_index(str(Path(path) / _FILE))
        for name, found in (("documents", flat.ntotal), ("dimension", flat.d)):
            if found != manifest[name]:
                raise StorageError(f"{path}: the index has {name} {found}, expected {manifest[name]}; build it again")
        index = cls(flat, corpus_fingerprint, embedder_fingerprint, device)
        if index.fingerprint != manifest["fingerprint"]:
            raise StorageError(f"{path}: fingerprint is {index.fingerprint}, expected {manifest['fingerprint']}")
        return index

    def _check(self, queries: NDArray) -> NDArray[np.float32]:
        queries = np.asarray(queries)
        if queries.ndim != 2 or queries.shape[1] != self.dimension:
            raise ValueError(
                f"queries must have shape (Q, {self.dimension}), the dimension of this index; got {queries.shape}: "
                "was another embedder used?"
            )
        return _unit(queries, "queries")

    def _cosines(self, unit: NDArray[np.float32], ids: NDArray[np.int64]) -> NDArray[np.float32]:
        scores = np.empty(ids.shape, dtype=np.float32)  # (Q, N)
        step = max(1, _CHUNK_FLOATS // max(1, ids.shape[1] * self.dimension))
        for i in range(0, len(ids), step):
            # einsum reduces each pair alone; a matrix product's rounding would depend on its neighbours.
            scores[i : i + step] = np.einsum("qd,qnd->qn", unit[i : i + step], self._vectors[ids[i : i + step]])
        return scores


def _unit(vectors: NDArray, name: str) -> NDArray[np.float32]:
    unit = np.array(vectors, dtype=np.float32)  # a copy
    norms = np.linalg.norm(unit, axis=1, keepdims=True)  # NaN or infinite where an entry is
    bad = np.flatnonzero(~(np.isfinite(norms[:, 0]) & (norms[:, 0] > 0)))
    if len(bad):
        raise ValueError(
            f"{name} must be finite and not zero: {len(bad)} of {len(vectors)} are not, the first is row {bad[0]}"
        )
    unit /= norms
    return unit


def _faiss() -> ModuleType:
    try:
        import faiss
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "dense retrieval needs FAISS: run `pip install faiss-cpu`, or `pip install faiss-gpu` beside CUDA 12 "
            "(never both: they are one module)"
        ) from None
    return faiss


def _use_gpu(faiss: ModuleType, device: str) -> bool:
    if device not in ("auto", "cpu", "cuda"):
        raise ValueError(f"device must be auto, cpu or cuda, got {device!r}")
    # The CPU build has the cloning functions too, and the GPU build without a GPU clones into an empty index.
    available = hasattr(faiss, "StandardGpuResources") and faiss.get_num_gpus() > 0
    if device == "cuda" and not available:
        raise ValueError("device is cuda, but FAISS sees no GPU: use device=cpu, or install faiss-gpu beside CUDA 12")
    return device != "cpu" and available


def _to_gpu(faiss: ModuleType, flat: Any) -> Any:
    return faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, flat)
