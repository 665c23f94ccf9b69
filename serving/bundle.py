"""The bundle: a directory that holds an exported policy and everything needed to trust it.

| file | holds |
|---|---|
| ``bundle.json`` | what the policy sees, does, was made of and measured at; digests of every file, itself included |
| ``policy.onnx`` | the decision as one ONNX file with a dynamic batch: normaliser, clipping and masking inside |
| ``policy.pt2`` | the same graph for ``torch.export`` |
| ``parity.npz`` | inputs, with the decisions that the policy took on them before it was exported |

A bundle is read whole and checked before any of it is used: the bytes that were hashed are the bytes that are
served. Reading needs NumPy and the standard library only. The digests find accidents and edits; whoever rewrites the
digests too is found by pinning :attr:`Bundle.digest` where the bundle is deployed.
"""

import hashlib
import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FORMAT = "recallgym-bundle"
FORMAT_VERSION = 1
MANIFEST, ONNX, TORCH, PARITY = "bundle.json", "policy.onnx", "policy.pt2", "parity.npz"
PAYLOADS = (PARITY, ONNX, TORCH)  # every file but the manifest, which lists their digests
IDENTITY = ("embedder", "tokenizer", "reader", "index", "corpus", "table")
PARITY_BATCHES = (1, 3, 64)

_NUMBER = (int, float)
_PORT = {"name": str, "shape": list, "dtype": str, "nan": str}
SCHEMA: dict[str, Any] = {
    "policy": {"class": str, "content_free": bool, "swap_test": {"queries": int, "pools": int, "identical": bool}},
    "inputs": [_PORT | {"low": dict, "high": dict}],
    "outputs": [_PORT | {"low": _NUMBER, "high": _NUMBER}],
    "max_batch": int,
    "observation": {"blocks": [list]},
    "action": {"kind": str, "pool": int, "search": bool},
    "intervention": {
        "mode": str,
        "k": int,
        "alpha": _NUMBER,
        "threshold": object,
        "fallback": str,
        "backfill": bool,
        "early_exit": bool,
    },
    "invalid_input": {"rule": str, "action": [int]},
    "identity": {name: (str, type(None)) for name in IDENTITY},
    "configuration": dict,
    "code": {"version": str, "commit": (str, type(None)), "dirty": (bool, type(None)), "torch": str},
    "metrics": [{"name": str, "value": _NUMBER, "ci_low": object, "ci_high": object, "unit": str, "seeds": list}],
    "parity": {"batches": [int], "rows": dict, "ties_left_out": int},
}
"""What a manifest must hold: a type, a mapping of required keys, or a list of one kind of item. More is allowed."""


class BundleError(ValueError):
    """A bundle that cannot be trusted: missing, truncated, edited, foreign. It names the file and the reason."""


@dataclass(frozen=True, eq=False)
class Bundle:
    """A bundle that was read whole and found intact.

    Attributes:
        path: The directory that it was read from.
        manifest: Content of ``bundle.json``.
        files: The bytes of every other file, as they were hashed.
    """

    path: Path
    manifest: dict[str, Any]
    files: Mapping[str, bytes] = field(repr=False)

    @property
    def digest(self) -> str:
        """SHA-256 that stands for the whole bundle; pin it where the bundle is deployed."""
        return str(self.manifest["digest"])

    @property
    def pool(self) -> int:
        """Number of candidates N."""
        return int(self.manifest["action"]["pool"])

    @property
    def blocks(self) -> list[tuple[str, int]]:
        """Blocks of the observation in order: (name, size)."""
        return [(name, size) for name, size in self.manifest["observation"]["blocks"]]

    @cached_property
    def low(self) -> NDArray[np.float32]:
        """Least valid observation, (D,)."""
        return self._bound("low")

    @cached_property
    def high(self) -> NDArray[np.float32]:
        """Greatest valid observation, (D,)."""
        return self._bound("high")

    def parity(self) -> dict[str, dict[str, NDArray]]:
        """Returns the parity vectors: kind (random, edge, recorded) -> array name -> rows."""
        vectors: dict[str, dict[str, NDArray]] = {}
        with np.load(io.BytesIO(self.files[PARITY]), allow_pickle=False) as archive:
            for key in archive.files:
                kind, name = key.split("/")
                vectors.setdefault(kind, {})[name] = archive[key]
        return vectors

    def _bound(self, side: str) -> NDArray[np.float32]:
        patterns = self.manifest["inputs"][0][side]  # block name -> values, repeated over the block
        return np.concatenate([np.resize(np.array(patterns[name], np.float32), size) for name, size in self.blocks])


def read_bundle(path: str | Path, *, digest: str | None = None) -> Bundle:
    """Reads a bundle whole and checks every byte of it.

    Args:
        path: Directory of the bundle.
        digest: The digest that the bundle must have, where the caller pinned it.

    Raises:
        BundleError: A file is missing, foreign, truncated or edited, or the manifest is of another format, incomplete
            or not the pinned one; the message names the file and the reason.
    """
    path = Path(path)
    if not (path / MANIFEST).is_file():
        raise BundleError(f"{path}: no bundle here ({MANIFEST} is missing); make one with `recallgym export`")
    present = {entry.name for entry in path.iterdir()}
    for name in sorted(present - {MANIFEST, *PAYLOADS}):
        raise BundleError(f"{path / name}: does not belong to a bundle; move it elsewhere")
    manifest = _parse_manifest(path / MANIFEST)
    files = {}
    for name in PAYLOADS:
        if not (path / name).is_file():
            raise BundleError(f"{path / name}: missing; copy the bundle again")
        files[name] = (path / name).read_bytes()
        listed = manifest["files"][name]
        if len(files[name]) != listed["bytes"]:
            raise BundleError(
                f"{path / name}: holds {len(files[name])} bytes where {MANIFEST} lists {listed['bytes']};"
                " the file is truncated or edited"
            )
        if _sha256(files[name]) != listed["sha256"]:
            raise BundleError(f"{path / name}: its SHA-256 differs from {MANIFEST}; the file is damaged or edited")
    if digest is not None and manifest["digest"] != digest:
        raise BundleError(f"{path / MANIFEST}: its digest is {manifest['digest']}, not the pinned {digest}")
    return Bundle(path, manifest, files)


def write_bundle(path: Path, manifest: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
    """Writes the files of a bundle into an existing directory, adding their digests and the manifest's own.

    Args:
        path: An empty directory.
        manifest: Everything that ``SCHEMA`` asks for.
        files: The bytes of each of ``PAYLOADS``.

    Raises:
        BundleError: The manifest lacks something, or holds what JSON cannot.
    """
    listed = {name: {"bytes": len(files[name]), "sha256": _sha256(files[name])} for name in PAYLOADS}
    content = {**manifest, "format": FORMAT, "format_version": FORMAT_VERSION, "files": listed}
    check_manifest(content)
    content["digest"] = _sha256(canonical(content))
    for name in PAYLOADS:
        (path / name).write_bytes(files[name])
    (path / MANIFEST).write_bytes(canonical(content))


def check_manifest(manifest: Mapping[str, Any]) -> None:
    """Raises BundleError where a manifest lacks something that ``SCHEMA`` asks for, or holds what JSON cannot."""
    if problem := _mismatch(manifest, SCHEMA, ""):
        raise BundleError(f"{MANIFEST}: {problem}")
    try:
        canonical(manifest)
    except (TypeError, ValueError) as error:
        raise BundleError(f"{MANIFEST}: {error}; configuration and metrics must be plain finite JSON") from None


def canonical(content: Mapping[str, Any]) -> bytes:
    """The one spelling that a manifest may have: sorted keys, indent 1, plain lists on one line, UTF-8.

    A manifest must equal its own canonical form byte by byte, so that even white space cannot be edited unseen.
    """
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, indent=1, allow_nan=False)
    # A string holds no raw newline in JSON, so this touches white space only: lists of plain values go on one line.
    flat = re.sub(r"\[\n([^\[\]{}]*)\n *\]", lambda m: "[" + re.sub(r",\n *", ", ", m[1].strip()) + "]", text)
    return (flat + "\n").encode()


def _parse_manifest(file: Path) -> dict[str, Any]:
    raw = file.read_bytes()
    try:
        manifest = json.loads(raw.decode())
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{file}: not valid JSON ({error}); the file is truncated or edited") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise BundleError(f"{file}: not a {FORMAT}; the file is foreign or edited")
    if manifest.get("format_version") != FORMAT_VERSION:
        raise BundleError(
            f"{file}: format version {manifest.get('format_version')}, but this release reads {FORMAT_VERSION};"
            " install the release that wrote it, or export again"
        )
    content = {key: value for key, value in manifest.items() if key != "digest"}
    if raw != canonical(manifest) or _sha256(canonical(content)) != manifest.get("digest"):
        raise BundleError(f"{file}: its content does not match its digest; the file was edited")
    problem = _mismatch(manifest, SCHEMA | {"files": {n: {"bytes": int, "sha256": str} for n in PAYLOADS}}, "")
    if problem:
        raise BundleError(f"{file}: {problem}")
    return manifest


def _mismatch(value: Any, schema: Any, where: str) -> str | None:
    """Says where ``value`` first departs from ``schema``, or None."""
    if isinstance(schema, dict):
        if not isinstance(value, Mapping):
            return f"{where} must be a mapping, got {value!r}"
        for key, part in schema.items():
            name = f"{where}.{key}".lstrip(".")
            if key not in value:
                return f"{name} is missing"
            if problem := _mismatch(value[key], part, name):
                return problem
        return None
    if isinstance(schema, list):
        if not isinstance(value, list):
            return f"{where} must be a list, got {value!r}"
        return next((p for i, item in enumerate(value) if (p := _mismatch(item, schema[0], f"{where}[{i}]"))), None)
    return None if isinstance(value, schema) else f"{where} must be {_names(schema)}, got {value!r}"


def _names(schema: type | tuple[type, ...]) -> str:
    return " or ".join(kind.__name__ for kind in (schema if isinstance(schema, tuple) else (schema,)))


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
