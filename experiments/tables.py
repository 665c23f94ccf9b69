"""A table in four forms: JSON, which is the interface, and Markdown, LaTeX and CSV, rendered from it alone."""

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .store import write_json

Table = Mapping[str, Any]

ROLES = {"floor": "floor", "ceiling": "ceiling", "control": "control"}
CSV_COLUMNS = (
    "metric",
    "unit",
    "kind",
    "name",
    "n",
    "iqm",
    "mean",
    "difference",
    "ci_low",
    "ci_high",
    "p",
    "p_holm",
    "reported",
)


def write_tables(table: Table, out: str | Path) -> list[Path]:
    """Writes ``NAME.json``, ``NAME.md``, ``NAME.tex`` and ``NAME.csv`` into a directory and returns their paths."""
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / table["name"]
    write_json(stem.with_suffix(".json"), table)
    written = [stem.with_suffix(".json")]
    for suffix, render in ((".md", markdown), (".tex", latex), (".csv", comma_separated)):
        written.append(stem.with_suffix(suffix))
        written[-1].write_text(render(table), encoding="utf-8")
    return written


def markdown(table: Table) -> str:
    """Renders a table as a page of its own, with its verdict, command and figure."""
    lines = [
        f"# {heading(table)}",
        "",
        f"> {table['statement']}",
        "",
        f"**Verdict: {table['verdict']}.** {_sentence(table['explanation'])}",
        "",
        "```",
        table["command"],
        "```",
        "",
        f"![{table['name']}]({table['name']}.svg)",
        "",
        *_primary_section(table),
        "",
        f"The verdict is about {_pair(table['primary'], _labels(table))}; the smallest difference of interest is "
        f"{table['delta']:g} {table['unit']}. Intervals: 95 %, crossed bootstrap over seeds and families, paired on "
        "the same questions. Tests: swapped labels, the larger p of both axes, Holm over these comparisons.",
        "",
        "## Instrument checks",
        "",
        *_grid(
            ("check", "passed", "measured", "95 % interval", "required"),
            [_check_row(check) for check in table["instrument"]["checks"]],
        ),
    ]
    if table["secondary"]:
        lines += ["", "## Further metrics", "", *_secondary_section(table)]
    if table["strata"]:
        lines += ["", f"## {_pair(table['primary'], _labels(table))} by stratum", "", *_strata_grid(table)]
    if table["families"]:
        rows = [(f["name"], str(f["questions"]), number(f["difference"])) for f in table["families"]]
        lines += ["", f"## {_pair(table['primary'], _labels(table))} by family", ""]
        lines += _grid(("family", "questions", "difference"), rows)
    if table["notes"]:
        lines += ["", "## Notes", "", *(f"- {note}" for note in table["notes"])]
    seeds = ", ".join(map(str, table["seeds"]))
    lines += [
        "",
        f"Seeds: {seeds}. Outcome table: `{table['fingerprints']['table'][:16]}`.",
        "",
        _cost(table["cost"]),
    ]
    return "\n".join(lines) + "\n"


def _cost(cost: dict[str, Any]) -> str:
    return (
        f"Cost: {cost['policies_trained']} policies trained for {cost['environment_steps']:,} environment steps in "
        f"{cost['training_s']:,.0f} s, evaluations {cost['evaluation_s']:,.0f} s, on one thread each; "
        f"reader calls {cost['reader_calls']:,}, context tokens shown {cost['tokens_shown']:,}. The outcome table that "
        f"was replayed had taken {cost['table_reader_calls']:,} reader calls and {cost['table_s']:,.0f} s."
    )


def latex(table: Table) -> str:
    """Renders the arms of the primary metric as a ``booktabs`` table."""
    rows = [
        " & ".join(map(_escape, (_name(arm), str(arm["n"]), number(arm["iqm"]), _range(arm), number(arm["reported"]))))
        for arm in table["arms"]
    ]
    body = " \\\\\n".join(rows)
    caption = _escape(f"{heading(table)}. {table['metric'].replace('_', ' ')}, {table['unit']}. {table['verdict']}.")
    return (
        f"% {table['command']}\n"
        "\\begin{table}\n\\centering\n"
        f"\\caption{{{caption}}}\n\\label{{tab:{table['name']}}}\n"
        "\\begin{tabular}{lrrcr}\n\\toprule\n"
        "arm & seeds & IQM & 95\\,\\% interval & published \\\\\n\\midrule\n"
        f"{body} \\\\\n"
        "\\bottomrule\n\\end{tabular}\n\\end{table}\n"
    )


def comma_separated(table: Table) -> str:
    """Renders every arm and comparison of every metric, one a row, as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, CSV_COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for part in (table, *table["secondary"]):
        shared = {"metric": part["metric"], "unit": part["unit"]}
        for arm in part["arms"]:
            writer.writerow({**shared, "kind": arm["role"], **arm})
        for comparison in part["comparisons"]:
            name = f"{comparison['a']} - {comparison['b']}"
            writer.writerow({**shared, "kind": "comparison", "name": name, **comparison})
    return text.getvalue()


def heading(table: Table) -> str:
    """Returns the title of a table: claim and name."""
    name = table["name"].replace("_", " ")
    return name if table["claim"] == "ours" else f"{table['claim']}: {name}"


def number(value: float | None) -> str:
    """Returns a value with the digits that a reader can use; a dash where there is none."""
    if value is None:
        return "–"
    size = abs(value)
    return f"{value:.0f}" if size >= 1000 else f"{value:.1f}" if size >= 10 else f"{value:.3f}"


def _primary_section(table: Table) -> list[str]:
    published = any(arm["reported"] is not None for arm in table["arms"])
    header = ["arm", "seeds", "IQM", "95 % interval", "mean", *(["published"] if published else [])]
    rows = [
        (_name(arm), str(arm["n"]), number(arm["iqm"]), _range(arm), number(arm["mean"]), number(arm["reported"]))
        for arm in table["arms"]
    ]
    labels = _labels(table)
    comparisons = [
        (_pair(c, labels), number(c["difference"]), _range(c), p_value(c["p"]), p_value(c["p_holm"]))
        for c in table["comparisons"]
    ]
    return [
        f"## {_title(table)} ({table['unit']}; {table['direction']} is better)",
        "",
        _defined(table),
        "",
        *_grid(header, [row[: len(header)] for row in rows]),
        "",
        *_grid(("comparison", "difference", "95 % interval", "p", "p (Holm)"), comparisons),
    ]


def _secondary_section(table: Table) -> Iterator[str]:
    """Arms by metric, then the primary contrast in each; all other comparisons are in the CSV and the JSON."""
    parts = table["secondary"]
    for part in parts:
        arrow = "↑" if part["direction"] == "higher" else "↓"
        construction = " **Holds by definition.**" if part["verdict"] else ""
        yield f"- **{_title(part)}** ({part['unit']}, {arrow}): {_defined(part)}{construction}"
    yield ""
    rows = []
    for i, arm in enumerate(table["arms"]):
        cells = []
        for own in (part["arms"][i] for part in parts):
            published = "" if own["reported"] is None else f"; published {number(own['reported'])}"
            interval = "" if own["iqm"] is None else f" {_range(own)}"
            cells.append(f"{number(own['iqm'])}{interval}{published}")
        rows.append((_name(arm), *cells))
    yield from _grid(("arm", *(part["metric"].replace("_", " ") for part in parts)), rows)
    yield ""
    contrast = (table["primary"]["a"], table["primary"]["b"])
    found = [next(c for c in part["comparisons"] if (c["a"], c["b"]) == contrast) for part in parts]
    differences = tuple(f"{number(c['difference'])} {_range(c)}" for c in found)
    header = ("comparison", *(part["metric"].replace("_", " ") for part in parts))
    yield from _grid(header, [(_pair(table["primary"], _labels(table)), *differences)])


def _title(part: Mapping[str, Any]) -> str:
    return str(part["metric"]).replace("_", " ").capitalize()


def _defined(part: Mapping[str, Any]) -> str:
    definition = part["definition"]
    return f"{_sentence(definition['numerator'] + ' / ' + definition['denominator'])} {_sentence(definition['label'])}"


def _strata_grid(table: Table) -> Iterator[str]:
    rows = [(s["name"], f"{100 * s['share']:.0f} %", number(s["difference"]), _range(s)) for s in table["strata"]]
    return _grid(("stratum", "share", "difference", "95 % interval"), rows)


def p_value(p: float | None) -> str:
    """Returns a p-value as text; a dash where nothing was tested."""
    return "–" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def _check_row(check: Mapping[str, Any]) -> tuple[str, ...]:
    required = f"{check['required']}; {check['note']}" if check["note"] else check["required"]
    return (check["name"], "yes" if check["passed"] else "**no**", number(check["value"]), _range(check), required)


def _grid(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    cell: Callable[[str], str] = lambda text: text.replace("|", "\\|")  # noqa: E731
    yield "| " + " | ".join(header) + " |"
    yield "|" + "|".join(":---" if i == 0 else "---:" for i in range(len(header))) + "|"
    for row in rows:
        yield "| " + " | ".join(map(cell, row)) + " |"


def _range(entry: Mapping[str, Any]) -> str:
    if entry["ci_low"] is None or entry["ci_high"] is None:
        return "–"
    return f"[{number(entry['ci_low'])}, {number(entry['ci_high'])}]"


def _name(arm: Mapping[str, Any]) -> str:
    return f"{arm['label']} ({arm['role']})" if arm["role"] != "arm" else arm["label"]


def _labels(part: Mapping[str, Any]) -> dict[str, str]:
    return {arm["name"]: arm["label"] for arm in part["arms"]}


def _pair(contrast: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    return f"{labels[contrast['a']]} − {labels[contrast['b']]}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."


def _escape(text: str) -> str:
    replaced = text.replace("\\", r"\textbackslash ")
    for character in "&%$#_{}":
        replaced = replaced.replace(character, f"\\{character}")
    return replaced.replace("−", "$-$").replace("±", r"$\pm$").replace("α", r"$\alpha$").replace("–", "--")
