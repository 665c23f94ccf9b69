"""Exporting a policy as a bundle. Needs torch; what it writes does not.

A bundle appears whole or not at all: it is written beside its destination, verified, and renamed.
"""

import copy
import io
import logging
import secrets
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .. import __version__
from ..backends.interventions.observation import ObservationLayout, encode
from ..backends.provenance import source_revision
from ..policies.base import Policy
from .bundle import MANIFEST, ONNX, PARITY, PARITY_BATCHES, TORCH, Bundle, check_manifest, read_bundle, write_bundle
from .parity import ROWS, cycle, decisions, drop_ties, edge_rows, random_rows
from .runtime import Graph, Runtime
from .swap import Encoder, SwapTest, swap_test
from .verify import verify

MAX_BATCH = 4096
OPSET = 20  # the first with Gelu; onnxruntime reads it since 1.17
OUTPUTS = ("decision", "weights", "propensity", "fell_back")
ACTIONS = ("bits", "weights")
INVALID = "a row with a NaN, an infinity or a value outside the bounds of its port takes this action, and is counted"


class ExportError(ValueError):
    """A policy that must not be exported as it is; the message says why and what to change. Nothing was written."""


class Served(nn.Module):
    """What is exported: decision, weights and propensities in one call, and the fallback action on invalid rows.

    The bounds are checked in the graph, so that whatever runs the graph obeys them; there it also costs a third of
    what it costs in NumPy. The policy sees invalid rows too, and its answer to them is dropped.

    Args:
        policy: The policy, in evaluation mode.
        low: (D,) least valid observation; high: (D,) greatest.
        fallback: (N + 1,) float32 bits to take on an invalid row.
        action: ``bits`` or ``weights``.
    """

    low: Tensor
    high: Tensor
    fallback: Tensor

    def __init__(self, policy: Policy, low: Tensor, high: Tensor, fallback: Tensor, action: str) -> None:
        super().__init__()
        self.policy = policy
        self.action = action
        self.register_buffer("low", low)
        self.register_buffer("high", high)
        self.register_buffer("fallback", fallback)

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Returns ``OUTPUTS`` for observations (B, D): (B, N+1) bool, twice (B, N+1) float32, and (B,) bool."""
        beyond = observation - torch.clamp(observation, self.low, self.high)  # (B, D): 0 where valid, NaN stays NaN
        invalid = torch.linalg.vector_norm(beyond, ord=1, dim=-1) != 0  # (B,)
        row = invalid.unsqueeze(-1)
        bits = torch.where(row, self.fallback, self.policy.decide(observation))
        weights = bits if self.action == "bits" else torch.where(row, self.fallback, self.policy.dose(observation))
        propensity = torch.where(row, self.fallback, self.policy.propensity(observation))  # certain: 0 or 1
        return bits > 0.5, weights, propensity, invalid


def export_bundle(
    policy: Policy,
    path: str | Path,
    *,
    layout: ObservationLayout,
    intervention: Mapping[str, Any],
    identity: Mapping[str, str | None],
    configuration: Mapping[str, Any],
    metrics: Sequence[Mapping[str, Any]] = (),
    recorded: NDArray[np.float32] | None = None,
    action: str = "bits",
    fallback: Sequence[int] | None = None,
    content_free: bool | None = None,
    encode: Encoder = encode,
    replace: bool = False,
    seed: int = 0,
) -> Bundle:
    """Exports a policy's deterministic decision with everything needed to trust it.

    Args:
        policy: The trained policy; it is copied, and its mode and device stay as they are.
        path: The directory to make.
        layout: Layout of the policy's observations; its bounds say which observations are valid.
        intervention: ``mode, k, alpha, threshold, fallback, backfill, early_exit`` that the policy was trained under.
        identity: Fingerprints of ``embedder, tokenizer, reader, index, corpus, table``; None where there is none.
            ``table`` is the calibration set: thresholds hold on its traffic mix only.
        configuration: The resolved configuration, plain JSON.
        metrics: The metric card: for each figure ``name, value, ci_low, ci_high, unit, seeds``.
        recorded: (n, D) observations met in evaluation, of which up to 64 become parity vectors.
        action: ``bits`` or ``weights``: which of the two actions the intervention was trained to take. With bits, a
            candidate's weight in a decision is its keep-bit.
        fallback: (N + 1,) bits to take on an invalid observation. By default all ones: search, and read what the
            retriever ranks first, which is what happens where there is no gate.
        content_free: Whether the policy is declared to ignore what was retrieved; by default what the layout says.
        encode: What builds observations where the bundle will be served; the swap test encodes with it.
        replace: Whether to replace a bundle that is there already.
        seed: Seed of the parity vectors and of the swap test.

    Returns:
        The bundle, read back from ``path``.

    Raises:
        ExportError: The policy observes the latent, is declared content-free and is not, or decides otherwise once
            exported.
        BundleError: Something is missing from the manifest or is not plain JSON.
        FileExistsError: ``path`` exists, and is not a bundle or ``replace`` was not given.
    """
    path = Path(path)
    if path.exists() and not (replace and (path / MANIFEST).is_file()):
        raise FileExistsError(f"{path} exists; give another path, or replace=True where it is a bundle")
    _check_blocks(policy, layout)
    declared = layout.content_free if content_free is None else content_free
    on_invalid = torch.ones(policy.pool + 1) if fallback is None else torch.tensor(fallback, dtype=torch.float32)
    if on_invalid.shape != (policy.pool + 1,) or not ((on_invalid == 0) | (on_invalid == 1)).all():
        raise ExportError(f"fallback must be {policy.pool + 1} bits (the keep-bits, then search), got {fallback}")
    if action not in ACTIONS:
        raise ExportError(f"action must be one of {', '.join(ACTIONS)}, got {action!r}")

    low, high = torch.tensor(layout.low), torch.tensor(layout.high)
    served = Served(copy.deepcopy(policy).cpu(), low, high, on_invalid, action).eval()
    runtime = Runtime(_eager(served), blocks=layout.blocks, max_batch=MAX_BATCH)
    rng = np.random.default_rng(seed)
    inputs, ties = _parity_inputs(runtime, layout, recorded, rng)
    contexts = np.concatenate([rows for kind, rows in inputs.items() if kind != "edge"])
    swap = swap_test(runtime, layout, contexts, pool=policy.pool, encode=encode, rng=rng)
    if declared and not swap.identical:
        raise ExportError(_leak(policy, layout, swap))

    manifest = {
        "policy": {
            "class": f"{type(policy).__module__}.{type(policy).__qualname__}",
            "stochastic": policy.stochastic,
            "content_free": declared,
            "swap_test": {"queries": swap.queries, "pools": swap.pools, "identical": swap.identical},
        },
        "inputs": [_input_port(layout)],
        "outputs": _output_ports(policy.pool),
        "max_batch": MAX_BATCH,
        "observation": layout.to_dict(),
        "action": {"kind": action, "pool": policy.pool, "search": True},
        "intervention": dict(intervention),
        "invalid_input": {"rule": INVALID, "action": [int(bit) for bit in on_invalid]},
        "identity": dict(identity),
        "configuration": dict(configuration),
        "code": {"version": __version__, "torch": torch.__version__, **source_revision()},
        "metrics": [dict(figure) for figure in metrics],
        "parity": {
            "batches": list(PARITY_BATCHES),
            "rows": {kind: len(inputs.get(kind, ())) for kind in ("random", "edge", "recorded")},
            "ties_left_out": ties,
        },
    }
    check_manifest(manifest)  # before the slow part
    vectors = {kind: decisions(runtime, rows) for kind, rows in inputs.items()}
    program = _trace(served, layout.size)
    _publish(path, manifest, {ONNX: _to_onnx(program), TORCH: _to_pt2(program), PARITY: _to_npz(vectors)})
    return read_bundle(path)


def _check_blocks(policy: Policy, layout: ObservationLayout) -> None:
    if tuple(policy.blocks) != tuple(layout.blocks):
        raise ExportError(f"the policy observes the blocks {policy.blocks}, the layout has {layout.blocks}")
    if "latent" in layout.names:
        raise ExportError(
            "the policy observes the latent, which only training knows: a positive control is not for export; train"
            " with an `observe` without it"
        )


def _eager(served: Served) -> Graph:
    def graph(rows: NDArray[np.float32]) -> list[NDArray]:
        with torch.inference_mode():
            return [part.numpy() for part in served(torch.tensor(rows))]

    return graph


def _parity_inputs(
    runtime: Runtime, layout: ObservationLayout, recorded: NDArray[np.float32] | None, rng: np.random.Generator
) -> tuple[dict[str, NDArray[np.float32]], int]:
    """Returns 64 rows of each kind that there is, and how many were left out as ties."""
    low, high = layout.low, layout.high
    candidates = {"random": random_rows(low, high, 2 * ROWS, rng)}  # twice as many as needed, in case of ties
    if recorded is not None and len(recorded):
        rows = np.asarray(recorded, dtype=np.float32)
        candidates["recorded"] = rows[rng.permutation(len(rows))[: 2 * ROWS]]
    inputs, ties = {"edge": cycle(edge_rows(low, high))}, 0
    for kind, rows in candidates.items():
        decided = drop_ties(runtime, rows, low, high, rng)
        ties += len(rows) - len(decided)
        if not len(decided):
            raise ExportError(
                f"every {kind} input is a tie: the policy's bits change under a nudge of rounding size, so no two"
                " runtimes need agree on them; train it further"
            )
        inputs[kind] = cycle(decided)
    return inputs, ties


def _leak(policy: Policy, layout: ObservationLayout, swap: SwapTest) -> str:
    return (
        f"{type(policy).__name__} is declared content-free, but exchanging the pool at fixed query and feedback changed"
        f" its decision in {swap.changed.sum()} of {swap.queries} queries (blocks: {', '.join(layout.names)});"
        " export it with content_free=False, or mend the encoder or the policy that lets the pool through"
    )


def _trace(served: Served, size: int) -> torch.export.ExportedProgram:
    batch = torch.export.Dim("batch", min=1, max=MAX_BATCH)
    example = torch.zeros(2, size)  # a batch of one would be taken for a constant
    with _quiet():
        return torch.export.export(served, (example,), dynamic_shapes={"observation": {0: batch}})


def _to_onnx(program: torch.export.ExportedProgram) -> bytes:
    with _quiet():
        onnx_program = torch.onnx.export(
            program,
            (),
            input_names=["observation"],
            output_names=list(OUTPUTS),
            dynamic_shapes={"observation": {0: "batch"}},  # names the axis that the program left free
            opset_version=OPSET,
            external_data=False,
            dynamo=True,
            verbose=False,
        )
    assert onnx_program is not None
    return onnx_program.model_proto.SerializeToString()


def _to_pt2(program: torch.export.ExportedProgram) -> bytes:
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    return buffer.getvalue()


def _to_npz(vectors: Mapping[str, Mapping[str, NDArray]]) -> bytes:
    buffer = io.BytesIO()
    arrays = {f"{kind}/{name}": array for kind, rows in vectors.items() for name, array in rows.items()}
    np.savez(buffer, **arrays)  # type: ignore[arg-type]  # NumPy's stub takes every keyword for allow_pickle
    return buffer.getvalue()


def _input_port(layout: ObservationLayout) -> dict[str, Any]:
    return {
        "name": "observation",
        "shape": ["batch", layout.size],
        "dtype": "float32",
        "low": {name: _pattern(layout.low[layout.slice(name)]) for name in layout.names},
        "high": {name: _pattern(layout.high[layout.slice(name)]) for name in layout.names},
        "nan": "invalid",
    }


def _output_ports(pool: int) -> list[dict[str, Any]]:
    shared = {"low": 0, "high": 1, "nan": "never"}
    width = ["batch", pool + 1]
    return [
        {"name": "decision", "shape": width, "dtype": "bool", **shared},
        {"name": "weights", "shape": width, "dtype": "float32", **shared},
        {"name": "propensity", "shape": width, "dtype": "float32", **shared},
        {"name": "fell_back", "shape": ["batch"], "dtype": "bool", **shared},
    ]


def _pattern(bound: NDArray[np.float32]) -> list[float]:
    """Returns the shortest run of values that gives a block's bound when it is repeated."""
    period = next(p for p in range(1, len(bound) + 1) if np.array_equal(np.resize(bound[:p], len(bound)), bound))
    return bound[:period].tolist()


def _publish(path: Path, manifest: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
    """Writes and verifies the bundle beside its destination, then renames it there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    staging = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    staging.mkdir()  # not tempfile: that would make a directory which only its owner can read
    try:
        write_bundle(staging, manifest, files)
        report = verify(staging)
        if not report.ok:
            findings = "\n".join(report.lines()[:-1])
            raise ExportError(f"the exported policy does not decide as the policy does:\n{findings}")
        if path.exists():
            retired = staging.with_name(staging.name + ".old")
            path.rename(retired)
            staging.rename(path)
            shutil.rmtree(retired)
        else:
            staging.rename(path)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences the exporters' notes about optional packages and about their own deprecated calls."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
