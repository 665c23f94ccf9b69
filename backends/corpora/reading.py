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
        directory: The data set's folder, or the folder that holds the folders of several.
        dataset: Name of the data set in the catalogue, also that of its folder.
        name: Name of the file, or a pattern of it, wherever it lies in the folder.

    Raises:
        DatasetError: It is not there.
    """
    root = Path(directory)
    found = sorted((root / dataset if (root / dataset).is_dir() else root).rglob(name))
    if found:
        return found[0]
    raise DatasetError(f"{root}: holds no {name}; get it by `recallgym data fetch {dataset} --to {root}`")


def read_json(path: Path) -> Any:
    """Returns the content of a JSON file.

    Raises:
        DatasetError: It is no JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DatasetError(f"{path}: is no JSON ({error}); fetch it again") from None


def read_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the rows of a JSON-lines file, each with where it stands, for errors.

    Raises:
        DatasetError: A line is no JSON object.
    """
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            where = f"{path}:{number}"
            try:
                row = json.loads(line)
            except ValueError as error:
                raise DatasetError(f"{where}: is no JSON ({error}); fetch the file again") from None
            if not isinstance(row, dict):
                raise DatasetError(f"{where}: expected a JSON object, got {type(row).__name__}")
            yield where, row


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
