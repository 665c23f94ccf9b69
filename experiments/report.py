"""A report over several tables: one line a claim, the tests corrected over all of them, and every figure."""

import html
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .figures import write_figures
from .statistics import benjamini_hochberg
from .tables import Table, heading, number, p_value

REQUIRED = ("name", "claim", "statement", "metric", "unit", "arms", "comparisons", "primary", "verdict", "explanation")


class ReportError(ValueError):
    """A file that is no table of ours."""


def load_tables(paths: Sequence[str | Path]) -> list[dict[str, Any]]:
    """Reads tables from their JSON.

    Raises:
        ReportError: A file is no table; the message says what it lacks.
    """
    tables = []
    for path in paths:
        try:
            table = json.loads(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ReportError(f"{path}: no such file; `recallgym reproduce` makes one") from None
        except ValueError as error:
            raise ReportError(f"{path}: not the JSON of a table ({error})") from None
        lacking = [key for key in REQUIRED if not isinstance(table, dict) or key not in table]
        if lacking:
            raise ReportError(f"{path}: not the JSON of a table; it has no {', '.join(lacking)}")
        tables.append(table)
    return tables


def summary(tables: Sequence[Table]) -> list[dict[str, Any]]:
    """Returns one entry a table: its primary contrast, with p corrected by Benjamini-Hochberg over the report."""
    rows = []
    for table in tables:
        contrast = table["primary"]
        comparison = next(c for c in table["comparisons"] if (c["a"], c["b"]) == (contrast["a"], contrast["b"]))
        rows.append({**comparison, "name": table["name"], "title": heading(table), "verdict": table["verdict"]})
        rows[-1] |= {"unit": table["unit"], "metric": table["metric"], "p_bh": None}
    tested = [row for row in rows if row["p"] is not None]
    for row, p in zip(tested, benjamini_hochberg([row["p"] for row in tested]), strict=True):
        row["p_bh"] = p
    return rows


def write_report(paths: Sequence[str | Path], out: str | Path, *, title: str = "Results") -> list[Path]:
    """Writes ``report.md`` and ``report.html`` over the tables of some JSON files, with their figures beside them.

    Args:
        paths: JSON files of tables.
        out: Directory of the report.
        title: Its title.

    Returns:
        The paths of both pages.

    Raises:
        ReportError: A file is no table.
    """
    tables = load_tables(paths)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    for table, path in zip(tables, map(Path, paths), strict=True):
        write_figures(table, folder)
        page = path.with_suffix(".md")
        if page.is_file() and page.resolve() != (folder / page.name).resolve():
            shutil.copyfile(page, folder / page.name)
    rows = summary(tables)
    written = [folder / "report.md", folder / "report.html"]
    written[0].write_text(_markdown(title, rows, tables), encoding="utf-8")
    written[1].write_text(_html(title, rows, tables), encoding="utf-8")
    return written


HEADER = ("claim", "contrast", "metric", "difference", "95 % interval", "p", "p (BH)", "verdict")
CORRECTION = "p (BH): Benjamini–Hochberg over the primary contrasts of this report."


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    interval = "–" if row["ci_low"] is None else f"[{number(row['ci_low'])}, {number(row['ci_high'])}]"
    contrast = f"{row['a'].replace('_', ' ')} − {row['b'].replace('_', ' ')}"
    metric = f"{row['metric'].replace('_', ' ')}, {row['unit']}"
    p, corrected = p_value(row["p"]), p_value(row["p_bh"])
    return (row["title"], contrast, metric, number(row["difference"]), interval, p, corrected, row["verdict"])


def _markdown(title: str, rows: Sequence[Mapping[str, Any]], tables: Sequence[Table]) -> str:
    lines = [f"# {title}", "", "| " + " | ".join(HEADER) + " |", "|" + "---|" * len(HEADER)]
    for row in rows:
        name, *others = _cells(row)
        lines.append("| " + " | ".join([f"[{name}]({row['name']}.md)", *others]) + " |")
    lines += ["", CORRECTION]
    for table in tables:
        lines += ["", f"## {heading(table)}", "", f"> {table['statement']}", ""]
        lines += [f"**{table['verdict']}**: {table['explanation']}", "", f"![{table['name']}]({table['name']}.svg)"]
        lines += ["", f"`{table['command']}`"]
    return "\n".join(lines) + "\n"


def _html(title: str, rows: Sequence[Mapping[str, Any]], tables: Sequence[Table]) -> str:
    def tag(name: str, text: str) -> str:
        return f"<{name}>{html.escape(text)}</{name}>"

    head = "".join(tag("th", text) for text in HEADER)
    body = "\n".join("<tr>" + "".join(tag("td", cell) for cell in _cells(row)) + "</tr>" for row in rows)
    sections = "\n".join(
        f"{tag('h2', heading(table))}{tag('blockquote', table['statement'])}"
        f"<p>{tag('strong', table['verdict'])}: {html.escape(table['explanation'])}</p>"
        f'<img src="{html.escape(table["name"])}.svg" alt="{html.escape(table["name"])}">{tag("pre", table["command"])}'
        for table in tables
    )
    style = (
        "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}"
        "table{border-collapse:collapse}th,td{padding:.3rem .6rem;border-bottom:1px solid #ddd;text-align:left}"
        "img{max-width:100%}"
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>{style}</style></head><body>\n{tag('h1', title)}\n<table><thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody></table>\n{tag('p', CORRECTION)}\n{sections}\n</body></html>\n"
    )
