"""Outcome tables: reading, building and checking what a frozen reader did under every intervention."""

from pathlib import Path

from .table import OutcomeTable, TableError, load_table

__all__ = ["OutcomeTable", "TableError", "load_table", "shipped_table_path"]


def shipped_table_path(name: str = "apidocs") -> Path:
    """Returns the directory of a table that comes with the package.

    Raises:
        TableError: There is none of that name; the message lists those that there are.
    """
    tables = Path(__file__).parent / "tables"
    if not (tables / name / "table.json").is_file():
        names = sorted(p.parent.name for p in tables.glob("*/table.json"))
        raise TableError(f"no shipped table is named {name!r}; there is {', '.join(names) or 'none'}")
    return tables / name
