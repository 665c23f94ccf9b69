"""Public data sets: where each is published and under which licence, how to fetch it, whether a copy is whole.

The entries stand in ``catalogue.py``, each pinned to the commit of the repository that publishes it, so that a copy is
the same everywhere. Nothing is downloaded unless :func:`fetch` is called, and nothing here needs a data set to run.
"""

import csv
import io
import json
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import IO
from urllib.error import URLError
from urllib.request import urlopen

HOST = "https://github.com"
TIMEOUT = 30  # seconds without a byte


class DatasetError(ValueError):
    """A data set that cannot be had or is not what was published."""


@dataclass(frozen=True)
class Source:
    """A public repository at one commit, and which of its files belong to a data set.

    Attributes:
        repository: ``owner/name``.
        commit: The commit's 40 hexadecimal digits.
        files: Glob patterns of paths inside the repository; each must match at least one file.
    """

    repository: str
    commit: str
    files: tuple[str, ...]

    @property
    def page(self) -> str:
        """Address where the files can be read."""
        return f"{HOST}/{self.repository}/tree/{self.commit}"


@dataclass(frozen=True)
class Dataset:
    """One public data set.

    Attributes:
        name: Short name, also that of its folder.
        summary: What it holds and what it serves here.
        licence: Licence as its publisher states it; "none stated" is said, not guessed.
        sources: Where it is published.
        rows: Number of records by file name, for the files in which it is known.
    """

    name: str
    summary: str
    licence: str
    sources: tuple[Source, ...]
    rows: Mapping[str, int] = field(default_factory=dict)

    @property
    def patterns(self) -> tuple[str, ...]:
        """Glob patterns of all its files."""
        return tuple(pattern for source in self.sources for pattern in source.files)


@dataclass(frozen=True)
class FileCheck:
    """What was found for one published pattern: ``problem`` is empty where the file is as published."""

    pattern: str
    path: Path | None
    rows: int | None
    problem: str


def fetch(
    dataset: Dataset, directory: Path, *, host: str = HOST, progress: Callable[[int], None] | None = None
) -> list[Path]:
    """Downloads a data set's published files to ``directory/NAME``, keeping their paths.

    A source is one archive at its commit; only the files that belong to the data set are kept. Files appear when
    they are whole, so an interrupted fetch leaves nothing that looks finished.

    Args:
        dataset: Entry of the catalogue.
        directory: Folder that holds the data sets; made if missing.
        host: Address of the host of the repositories.
        progress: Called with the number of bytes received so far.

    Returns:
        Paths of the files, sorted.

    Raises:
        DatasetError: No network, or a source no longer holds a file.
    """
    target = directory / dataset.name
    written = []
    for source in dataset.sources:
        with tempfile.TemporaryFile() as archive:
            _download(f"{host}/{source.repository}/archive/{source.commit}.zip", archive, progress)
            try:
                written += _extract(archive, source, target)
            except zipfile.BadZipFile:
                raise DatasetError(
                    f"{dataset.name}: {source.page} answered with something that is no archive"
                ) from None
    return sorted(written)


def check(dataset: Dataset, directory: Path) -> list[FileCheck]:
    """Looks for a data set's published files in a directory, at any depth, by their names.

    Args:
        dataset: Entry of the catalogue.
        directory: Where a copy lies: its own folder, or the one that holds it.

    Returns:
        One finding for each pattern of the data set, or for each file that a pattern matches.

    Raises:
        DatasetError: The directory does not exist.
    """
    if not directory.is_dir():
        raise DatasetError(f"{directory}: no such directory; `recallgym data fetch {dataset.name}` makes one")
    own = directory / dataset.name
    files = sorted(path for path in (own if own.is_dir() else directory).rglob("*") if path.is_file())
    findings = []
    for pattern in dataset.patterns:
        name = PurePosixPath(pattern).name
        found = [path for path in files if fnmatch(path.name, name)]
        if not found:
            findings.append(FileCheck(pattern, None, None, "missing"))
        findings += [_check_file(pattern, path, dataset.rows.get(path.name)) for path in found]
    return findings


def count_rows(path: Path) -> int:
    """Counts the records of a file: lines of JSON, entries of a JSON list or object, rows of a CSV below its header.

    Raises:
        DatasetError: The file is of none of these formats, or cut short.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix == ".csv":
            return sum(1 for _ in csv.reader(io.StringIO(text))) - 1
        if path.suffix == ".jsonl":
            return _json_lines(text)
        try:
            return len(json.loads(text))
        except json.JSONDecodeError:
            return _json_lines(text)  # several data sets publish lines of JSON under the name .json
    except (ValueError, TypeError) as error:
        raise DatasetError(f"{path}: unreadable ({error}); the file is cut short or of another format") from None


def _json_lines(text: str) -> int:
    # Not splitlines: U+2028 and its like may stand inside a text.
    return sum(1 for line in text.split("\n") if line.strip() and json.loads(line) is not None)


def _check_file(pattern: str, path: Path, expected: int | None) -> FileCheck:
    if path.stat().st_size == 0:
        return FileCheck(pattern, path, 0, "empty")
    if expected is None:
        return FileCheck(pattern, path, None, "")
    try:
        rows = count_rows(path)
    except DatasetError as error:
        return FileCheck(pattern, path, None, str(error))
    return FileCheck(pattern, path, rows, "" if rows == expected else f"{rows} rows, {expected} published")


def _download(url: str, file: IO[bytes], progress: Callable[[int], None] | None) -> None:
    received = 0
    try:
        with urlopen(url, timeout=TIMEOUT) as answer:
            while block := answer.read(1 << 20):
                file.write(block)
                received += len(block)
                if progress is not None:
                    progress(received)
    except (URLError, OSError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        raise DatasetError(f"{url}: cannot be fetched ({reason}); without a network, copy the files by hand") from None


def _extract(archive: IO[bytes], source: Source, target: Path) -> list[Path]:
    written = []
    missing = set(source.files)
    with zipfile.ZipFile(archive) as content:
        for member in content.infolist():
            path = PurePosixPath(member.filename)
            inner = PurePosixPath(*path.parts[1:])  # the first part names repository and commit
            patterns = {pattern for pattern in source.files if fnmatch(str(inner), pattern)}
            if member.is_dir() or not patterns or ".." in inner.parts:
                continue
            missing -= patterns
            place = target / inner
            place.parent.mkdir(parents=True, exist_ok=True)
            partial = place.with_name(f".{place.name}.partial")
            with content.open(member) as packed, partial.open("wb") as file:
                shutil.copyfileobj(packed, file)
            partial.replace(place)
            written.append(place)
    if missing:
        raise DatasetError(f"{source.page}: holds no {', '.join(sorted(missing))} at this commit")
    return written
