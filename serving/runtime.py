"""Loading a bundle and deciding with it. Needs NumPy and ONNX Runtime; with ``backend="torch"``, torch instead.

    runtime = load("outputs/bundle")
    decision = runtime.decide(observation)  # (B, D) float32, from backends.interventions.observation.encode

Axes: B batch, D observation size, N candidates of the pool.
"""

import io
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .bundle import ONNX, TORCH, Bundle, read_bundle

BACKENDS = ("onnx", "torch")
DEVICES = ("cpu", "cuda")
FLOAT32 = np.dtype(np.float32)
Graph = Callable[[NDArray[np.float32]], Sequence[NDArray]]
"""Observations (B, D) to bits (B, N + 1) bool, weights and propensity (B, N + 1) float32, and fell_back (B,) bool."""


class Decision(NamedTuple):
    """What a gate decides; for a single observation (D,) the batch axis is absent.

    Attributes:
        keep: (B, N) bool: which candidates may be read.
        search: (B,) bool: whether to search at all.
        mask: (B, N) float32 in [0, 1]: what the intervention takes; the keep-bit, or the candidate's weight where the
            bundle's action is ``weights``.
        propensity: (B, N + 1) float32: the probability with which the policy's own draw sets each bit, search last.
            Log it with every decision that is drawn; ``keep`` and ``search`` are the deterministic decision.
        fell_back: (B,) bool: the observation was invalid and the bundle's fallback action was taken.
    """

    keep: NDArray[np.bool_]
    search: NDArray[np.bool_]
    mask: NDArray[np.float32]
    propensity: NDArray[np.float32]
    fell_back: NDArray[np.bool_]


class Counters(NamedTuple):
    """Observations since loading: all, those with a NaN or an infinity, and other ones beyond the bounds."""

    decisions: int
    not_finite: int
    out_of_range: int

    @property
    def fallbacks(self) -> int:
        """Observations on which the fallback action was taken."""
        return self.not_finite + self.out_of_range


class Runtime:
    """Decides on batches of observations; safe to call from several threads.

    Args:
        graph: The exported decision.
        blocks: Name and size of each observation block.
        max_batch: Most rows in one call of the graph; larger batches are cut.
    """

    def __init__(self, graph: Graph, *, blocks: Sequence[tuple[str, int]], max_batch: int) -> None:
        self._graph = graph
        self._blocks = tuple(blocks)
        self._size = sum(size for _, size in blocks)
        self._max_batch = max_batch
        self._lock = threading.Lock()
        self._decisions = self._not_finite = self._out_of_range = 0

    @property
    def counters(self) -> Counters:
        """Counts since loading."""
        with self._lock:
            return Counters(self._decisions, self._not_finite, self._out_of_range)

    def decide(self, observation: ArrayLike) -> Decision:
        """Takes the policy's deterministic decision on each observation, and the fallback action on invalid ones.

        Args:
            observation: (B, D), or (D,) for one; cast to float32. A row with a NaN, an infinity or a value outside the
                bundle's bounds is invalid (``encode`` clips to the bounds, so that only a NaN passes it).

        Returns:
            The decisions, with a batch axis where ``observation`` has one.

        Raises:
            ValueError: Another width, no rows, or something that is not numbers.
        """
        rows = np.asarray(observation)
        if rows.dtype != FLOAT32:
            rows = _to_float32(rows)
        single = rows.ndim == 1
        if single:
            rows = rows[None]
        if rows.ndim != 2 or rows.shape[1] != self._size or not rows.shape[0]:
            raise ValueError(self._refusal(np.shape(observation)))
        count = len(rows)
        bits, weights, propensity, fell_back = self._graph(rows) if count <= self._max_batch else self._in_parts(rows)
        invalid = fell_back.tolist().count(True)  # a fifth of the time of ndarray.any() for the few rows of a request
        with self._lock:
            self._decisions += count
            if invalid:
                not_finite = int(np.count_nonzero(~np.isfinite(rows).all(axis=1)))
                self._not_finite += not_finite
                self._out_of_range += invalid - not_finite
        if single:
            return Decision(bits[0, :-1], bits[0, -1], weights[0, :-1], propensity[0], fell_back[0])
        return Decision(bits[:, :-1], bits[:, -1], weights[:, :-1], propensity, fell_back)

    def _in_parts(self, rows: NDArray[np.float32]) -> Sequence[NDArray]:
        starts = range(0, len(rows), self._max_batch)
        parts = [self._graph(rows[start : start + self._max_batch]) for start in starts]
        return [np.concatenate(column) for column in zip(*parts, strict=True)]

    def _refusal(self, shape: tuple[int, ...]) -> str:
        blocks = ", ".join(f"{name} {width}" for name, width in self._blocks)
        return (
            f"expected observations of shape ({self._size},) or (B, {self._size}) with B >= 1, got {shape};"
            f" the bundle's blocks are {blocks}: encode with this layout"
        )


def load(
    path: str | Path, *, backend: str = "onnx", device: str = "cpu", threads: int = 1, digest: str | None = None
) -> Runtime:
    """Reads a bundle, checks every byte of it and makes it ready to decide.

    Args:
        path: Directory of the bundle.
        backend: ``onnx`` (needs onnxruntime) or ``torch`` (needs torch).
        device: ``cpu`` or ``cuda``; for ``onnx`` the latter needs onnxruntime-gpu.
        threads: Threads that one call of ONNX Runtime uses. One is fastest for a gate of this size, and leaves the
            other cores to other requests; torch uses what ``torch.set_num_threads`` says.
        digest: The digest that the bundle must have, where a deployment pins it.

    Raises:
        BundleError: The bundle is damaged, edited, foreign, or not the pinned one.
        ValueError: An unknown backend, or a device that is not there.
    """
    if backend not in BACKENDS or device not in DEVICES:
        raise ValueError(
            f"expected a backend of {', '.join(BACKENDS)} and a device of {', '.join(DEVICES)},"
            f" got {backend!r} and {device!r}"
        )
    return runtime_of(read_bundle(path, digest=digest), backend=backend, device=device, threads=threads)


def runtime_of(bundle: Bundle, *, backend: str = "onnx", device: str = "cpu", threads: int = 1) -> Runtime:
    """Like :func:`load`, for a bundle that was read already."""
    graph = _onnx_graph(bundle, device, threads) if backend == "onnx" else _torch_graph(bundle, device)
    return Runtime(graph, blocks=bundle.blocks, max_batch=bundle.manifest["max_batch"])


def onnx_session(bundle: Bundle, device: str = "cpu", threads: int = 1) -> Any:
    """Returns an ``onnxruntime.InferenceSession`` over the bytes that were checked."""
    import onnxruntime

    provider = "CPUExecutionProvider" if device == "cpu" else "CUDAExecutionProvider"
    if provider not in onnxruntime.get_available_providers():
        raise ValueError(f"this onnxruntime has no {provider}; install onnxruntime-gpu, or load with device='cpu'")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(bundle.files[ONNX], options, providers=[provider])


def _onnx_graph(bundle: Bundle, device: str, threads: int) -> Graph:
    session = onnx_session(bundle, device, threads)
    names = [port["name"] for port in bundle.manifest["outputs"]]
    source = bundle.manifest["inputs"][0]["name"]
    return lambda rows: session.run(names, {source: rows})


def _torch_graph(bundle: Bundle, device: str) -> Graph:
    import torch
    from torch.export.passes import move_to_device_pass

    program = torch.export.load(io.BytesIO(bundle.files[TORCH]))
    module = (program if device == "cpu" else move_to_device_pass(program, device)).module()

    def graph(rows: NDArray[np.float32]) -> Sequence[NDArray]:
        with torch.inference_mode():
            return [part.cpu().numpy() for part in module(torch.tensor(np.ascontiguousarray(rows), device=device))]

    return graph


def _to_float32(values: NDArray) -> NDArray[np.float32]:
    if values.dtype.kind not in "fiub":
        raise ValueError(f"expected an observation of numbers, got dtype {values.dtype}")
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, hence invalid
        return values.astype(np.float32)
