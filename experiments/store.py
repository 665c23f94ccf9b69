"""The trial store: finished work in directories named by its identity, safe to share and to kill at any moment.

::

    outputs/
      fits/<hash>/     fit.json, policy.pt        a trained policy
      trials/<hash>/   result.json, records.npz   what it did when it was evaluated
      staging/         work in progress; a directory is renamed into place when it is complete

A rename is atomic, so what stands in ``fits`` or ``trials`` is complete. Two sweeps that make the same trial write in
staging directories of their own, and the first to finish wins; the other's copy is the same and is dropped.
"""

import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..backends.storage import file_digest

STALE_SECONDS = 24 * 3600  # a staging directory this old belongs to a process that was killed

Records = dict[str, NDArray[Any]]


class StoreError(ValueError):
    """A stored fit or trial that is damaged; the message names the file and the way out."""


class Finished(NamedTuple):
    """A finished trial."""

    result: dict[str, Any]
    records: Records


class Store:
    """Fits and trials under one directory.

    Args:
        root: The directory; it is made where it does not exist.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        for name in ("fits", "trials", "staging"):
            (self.root / name).mkdir(parents=True, exist_ok=True)

    def fit_dir(self, identity: str) -> Path:
        """Directory of a fit, whether or not it is there."""
        return self.root / "fits" / identity

    def trial_dir(self, identity: str) -> Path:
        """Directory of a trial, whether or not it is there."""
        return self.root / "trials" / identity

    @contextmanager
    def staged(self, final: Path) -> Iterator[Path]:
        """Yields a fresh directory that becomes ``final`` when the block ends, or vanishes when it raises."""
        staging = Path(tempfile.mkdtemp(prefix=f"{final.name}-", dir=self.root / "staging"))
        try:
            yield staging
            staging.chmod(0o755)  # mkdtemp makes directories that nobody else may read
            try:
                staging.rename(final)
            except OSError:
                if not final.is_dir():
                    raise
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def clear_stale(self) -> None:
        """Removes what killed processes left in staging over a day ago."""
        for leftover in (self.root / "staging").iterdir():
            if time.time() - leftover.stat().st_mtime > STALE_SECONDS:
                shutil.rmtree(leftover, ignore_errors=True)

    def write_trial(self, identity: str, result: Mapping[str, Any], records: Records) -> None:
        """Stores a finished trial.

        Args:
            identity: Its identity.
            result: What it recorded besides; it gets the checksum of the records.
            records: Arrays. Integers are stored in the smallest type that holds them, floats as float32.
        """
        with self.staged(self.trial_dir(identity)) as staging:
            # Not compressed: that would take longer than scheduling and storing a trial together.
            compact = {name: _compact(values) for name, values in records.items()}
            np.savez(staging / "records.npz", allow_pickle=False, **compact)
            entry = {**result, "hash": identity, "records_sha256": file_digest(staging / "records.npz")}
            write_json(staging / "result.json", entry)

    def read_trial(self, identity: str) -> Finished:
        """Returns a finished trial.

        Raises:
            StoreError: It is missing or damaged.
        """
        result = self.read_result(identity)
        path = self.trial_dir(identity) / "records.npz"
        if not path.is_file() or file_digest(path) != result["records_sha256"]:
            raise StoreError(f"{path}: missing or damaged; delete {path.parent} and repeat the command")
        with np.load(path, allow_pickle=False) as arrays:
            return Finished(result, dict(arrays))

    def read_result(self, identity: str) -> dict[str, Any]:
        """Returns what a trial recorded besides its records.

        Raises:
            StoreError: It is missing or damaged.
        """
        path = self.trial_dir(identity) / "result.json"
        result = read_json(path)
        if result.get("hash") != identity or "records_sha256" not in result:
            raise StoreError(
                f"{path}: belongs to trial {result.get('hash')!r}; delete {path.parent} and repeat the command"
            )
        return result

    def trials(self) -> list[dict[str, Any]]:
        """Returns the results of all finished trials, oldest first."""
        paths = sorted((self.root / "trials").iterdir(), key=lambda path: (path.stat().st_mtime, path.name))
        return [self.read_result(path.name) for path in paths]

    def problems(self) -> list[str]:
        """Checks every stored trial and fit, and returns one line for each that is damaged."""
        found = []
        for path in sorted((self.root / "trials").iterdir()):
            try:
                self.read_trial(path.name)
            except StoreError as error:
                found.append(str(error))
        for path in sorted((self.root / "fits").iterdir()):
            try:
                self.check_fit(path.name)
            except StoreError as error:
                found.append(str(error))
        return found

    def check_fit(self, identity: str) -> dict[str, Any]:
        """Returns what a fit recorded besides its policy, after checking the policy's file.

        Raises:
            StoreError: It is missing or damaged.
        """
        folder = self.fit_dir(identity)
        entry = read_json(folder / "fit.json")
        policy = folder / "policy.pt"
        if not policy.is_file() or file_digest(policy) != entry.get("policy_sha256"):
            raise StoreError(f"{policy}: missing or damaged; delete {folder} and repeat the command")
        return entry


def new_run_dir(root: str | Path, name: str) -> Path:
    """Makes a directory for the logs of one run: never the one of a run that started in the same second."""
    runs = Path(root) / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f"{time.strftime('%Y%m%d-%H%M%S')}-{name}-", dir=runs))


def write_json(path: Path, data: Any) -> None:
    """Writes data in the one JSON form of this project: keys in the given order, indented, UTF-8, no NaN."""
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """Reads a JSON object.

    Raises:
        StoreError: The file is missing, truncated or no object.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StoreError(f"{path}: missing; repeat the command that makes it") from None
    except ValueError as error:
        raise StoreError(f"{path}: not valid JSON ({error}); delete {path.parent} and repeat the command") from None
    if not isinstance(data, dict):
        raise StoreError(f"{path}: expected a JSON object; delete {path.parent} and repeat the command")
    return data


def _compact(values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind == "f":
        return values.astype(np.float32)
    if values.dtype.kind in "iu" and values.size:
        return values.astype(np.result_type(*map(np.min_scalar_type, (values.min(), values.max()))))
    return values
