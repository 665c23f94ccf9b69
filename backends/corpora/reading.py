"""Reading the files of public data sets, with errors that name the file, the row and the way out."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .datasets import DatasetError

MISSING = object()


def find(directory: str | Path, dataset: str, name: str) -> Path:
    """Returns the path of a data set's file.

    Args:
        directory: The data set's folder, the folder that holds the folders of several, or the file itself.
        dataset: Name of the data set in the catalogue, also that of its folder.
        name: Name of the file, or a pattern of it, wherever it lies in the folder.

    Raises:
        DatasetError: It is not there, or several files have such a name.
    """
    root = Path(directory)
    if root.is_file():
        return root
    folder = root / dataset if (root / dataset).is_dir() else root
    # A name that begins with a dot is that of a download which was interrupted.
    found = sorted(path for path in folder.rglob(name) if path.is_file() and not path.name.startswith("."))
    if not found:
        raise DatasetError(f"{root}: holds no {name}; get it by `recallgym data fetch {dataset} --to {root}`")
    if len(found) > 1:
        names = ", ".join(str(path.relative_to(folder)) for path in found)
        raise DatasetError(f"{folder}: expected one {name}, got {names}; name the file to read instead of the folder")
    return found[0]


def read_text(path: Path) -> str:
    """Returns the content of a text file.

    Raises:
        DatasetError: It is no UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path}: is no UTF-8 text ({error}); fetch it again") from None


def read_json(path: Path) -> Any:
    """Returns the content of a JSON file.

    Raises:
        DatasetError: It is no JSON.
    """
    return _parse(read_text(path), str(path))


def read_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the rows of a file of JSON objects, each with where it stands, for errors.

    The objects stand one a line or in one list: published files of both kinds are called ``.json``.

    Raises:
        DatasetError: A row is no JSON object, or there is none.
    """
    text = read_text(path)
    if text.lstrip().startswith("["):
        rows = [(f"{path}: row {number}", row) for number, row in enumerate(_parse(text, str(path)), 1)]
    else:  # not splitlines: U+2028 and its like may stand inside a text
        lines = ((f"{path}:{number}", line) for number, line in enumerate(text.split("\n"), 1) if line.strip())
        rows = [(where, _parse(line, where)) for where, line in lines]
    if not rows:
        raise DatasetError(f"{path}: holds no rows; fetch it again")
    for where, row in rows:
        if not isinstance(row, dict):
            raise DatasetError(f"{where}: expected a JSON object, got {type(row).__name__}")
        yield where, row


def _parse(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise DatasetError(f"{where}: is no JSON ({error}); fetch the file again") from None


def take(row: Any, key: str, kind: type | tuple[type, ...], where: str, default: Any = MISSING) -> Any:
    """Returns a row's value of the expected type.

    Raises:
        DatasetError: It is missing and there is no default, or it is of another type.
    """
    if not isinstance(row, dict):
        raise DatasetError(f"{where}: expected a JSON object with {key!r}, got {type(row).__name__}")
    value = row.get(key, default)
    names = " or ".join(one.__name__ for one in (kind if isinstance(kind, tuple) else (kind,)))
    if value is MISSING:
        raise DatasetError(f"{where}: expected {key!r} ({names}), got only {', '.join(map(repr, row))}")
    if not isinstance(value, kind) and value is not default:
        raise DatasetError(f"{where}: expected {key!r} to be {names}, got {type(value).__name__} {str(value)[:40]!r}")
    return value


def strings(value: Any, where: str) -> tuple[str, ...]:
    """Returns the strings of a string, a number or a list of them, nested or not, without empty ones and copies."""
    if isinstance(value, list):
        return tuple(dict.fromkeys(text for part in value for text in strings(part, where)))
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        text = str(value).strip()
        return (text,) if text else ()
    raise DatasetError(f"{where}: expected text or a list of texts, got {type(value).__name__} {str(value)[:40]!r}")
