"""Directories that are written whole or not at all, and read only when they are what was expected."""

import errno
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"


class StorageError(ValueError):
    """A stored directory that is missing, truncated, edited, or not the one that was asked for."""


def digest(*parts: bytes | str) -> str:
    """Returns the SHA-256 of the parts, each preceded by its length, so that ("ab", "c") differs from ("a", "bc")."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()


def file_digest(path: Path) -> str:
    """Returns the SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def sealed(path: str | Path, fields: Mapping[str, Any]) -> Iterator[Path]:
    """Yields an empty directory to fill, then checksums it and moves it to ``path`` in one step.

    A killed or failing writer leaves ``path`` as it was. An earlier directory written by this function is replaced.

    Args:
        path: Where the directory is to stand.
        fields: JSON values that the manifest records beside the checksums; :func:`unseal` compares with them.

    Raises:
        FileExistsError: ``path`` holds something that this function did not write.
    """
    path = Path(path).absolute()
    _refuse_foreign(path)
    staging = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    staging.mkdir(parents=True)
    try:
        yield staging
        files = {p.relative_to(staging).as_posix(): file_digest(p) for p in sorted(staging.rglob("*")) if p.is_file()}
        text = json.dumps({**fields, "files": files}, ensure_ascii=False, indent=1)
        (staging / MANIFEST).write_text(text + "\n", encoding="utf-8")
        _move(staging, path)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def _refuse_foreign(path: Path) -> None:
    try:
        names = os.listdir(path)  # one look: another writer may be replacing it
    except FileNotFoundError:
        return
    if names and MANIFEST not in names:
        raise FileExistsError(f"{path} exists and holds no {MANIFEST}, so it is not replaced; choose another path")


def _move(staging: Path, path: Path) -> None:
    while True:
        try:
            staging.rename(path)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        # An earlier directory, perhaps of a writer that finished first, steps aside before it is removed.
        _refuse_foreign(path)
        aside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        try:
            path.rename(aside)
        except FileNotFoundError:
            continue
        _remove(aside)


def _remove(directory: Path) -> None:
    # The manifest goes last: a writer that looks into the directory meanwhile still knows it as ours.
    for entry in directory.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        elif entry.name != MANIFEST:
            entry.unlink()
    shutil.rmtree(directory)


def unseal(path: str | Path, expected: Mapping[str, Any]) -> dict[str, Any]:
    """Checks a directory written by :func:`sealed` and returns its manifest.

    Args:
        path: The directory.
        expected: Manifest fields that must have exactly these values.

    Raises:
        StorageError: It is missing, a file of it is missing or altered, or a field differs; the message says which.
    """
    path = Path(path)
    file = path / MANIFEST
    if not file.is_file():
        raise StorageError(f"{path}: nothing stored here ({MANIFEST} is missing); build it and save it first")
    try:
        manifest: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        found = {name: manifest[name] for name in (*expected, "files")}
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{file}: not a manifest of the expected form ({error!r}); build it again") from None
    for name, value in expected.items():
        if found[name] != value:
            raise StorageError(f"{path}: {name} is {found[name]!r}, expected {value!r}; build it again")
    for name, checksum in found["files"].items():
        if not (path / name).is_file():
            raise StorageError(f"{path / name}: missing; build it again")
        if file_digest(path / name) != checksum:
            raise StorageError(f"{path / name}: checksum differs from {MANIFEST}; truncated or edited, build it again")
    return manifest
