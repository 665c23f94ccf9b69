"""The figure of a table: a dot and an interval for each arm, one panel a metric; published figures are hollow.

Metrics that are points of one curve (error at 8, 16, ... reader calls) are drawn as that curve, one line an arm.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .tables import Table, heading

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 4  # side by side on a page; further metrics are in the table
COLOURS = {"arm": "#1f5f99", "floor": "#8a8a8a", "ceiling": "#8a8a8a", "control": "#b07a1e"}
CONTRAST = "#c2410c"  # the two arms that the verdict is about
LINES = ("#1f5f99", "#2a9d8f", "#8a6d3b", "#7b4ea3", "#5b8c2a", "#b8457b", "#4f6d7a", "#c98a1b", "#3c3c3c", "#6aa6d8")
MARKERS = ("o", "s", "^")
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "svg.hashsalt": "recallgym",  # identifiers in an SVG are otherwise random
    "svg.fonttype": "none",
}


def write_figures(table: Table, out: str | Path) -> list[Path]:
    """Writes ``NAME.svg`` and ``NAME.png`` into a directory and returns their paths; equal tables give equal bytes."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with mpl.rc_context(STYLE):
        figure = draw(table)
        FigureCanvasAgg(figure)
        for suffix, metadata in ((".svg", {"Date": None, "Creator": None}), (".png", {"Software": None})):
            path = (folder / table["name"]).with_suffix(suffix)
            figure.savefig(path, dpi=150, metadata=metadata)
            written.append(path)
    return written


def draw(table: Table) -> "Figure":
    """Draws a table's primary metric, its curve where it has one, and the first of its other metrics."""
    from matplotlib.figure import Figure

    curve = [part for part in table["secondary"] if part.get("curve")]
    others = [part for part in table["secondary"] if not part.get("curve")]
    panels: Sequence[Mapping[str, Any]] = [table, *others][: 2 if curve else MOST_PANELS]
    arms = table["arms"]
    widths = [2.6] * len(panels) + ([6.0] if curve else [])
    figure = Figure(figsize=(2.2 + sum(widths), 1.3 + 0.27 * len(arms)), layout="constrained")
    axes = figure.subplots(1, len(widths), squeeze=False, width_ratios=widths)[0]
    for axis, panel in zip(axes, panels, strict=False):
        _panel(axis, panel, {table["primary"]["a"], table["primary"]["b"]})
        axis.set_yticks(range(len(arms)), [arm["label"] for arm in arms] if axis is axes[0] else [])
        axis.invert_yaxis()
    if curve:
        _curve(axes[-1], curve, {table["primary"]["a"], table["primary"]["b"]})
    figure.suptitle(f"{heading(table)} — {table['verdict']}", fontsize=10, x=0.01, ha="left")
    return figure


def _curve(axis: "Axes", points: Sequence[Mapping[str, Any]], contrast: set[str]) -> None:
    """One line an arm over the points; controls and what does not depend on the axis are dashed."""
    at = [part["curve"]["at"] for part in points]
    values = {arm["name"]: [part["arms"][i]["iqm"] for part in points] for i, arm in enumerate(points[0]["arms"])}
    for place, arm in enumerate(points[0]["arms"]):
        line = values[arm["name"]]
        if None in line or max(line) <= 0:  # an exact value has no error, and no place on a logarithmic axis
            continue
        flat = max(line) - min(line) < 1e-12
        colour = CONTRAST if arm["name"] in contrast else LINES[place % len(LINES)]
        (drawn,) = axis.plot(at, line, color=colour, lw=1.4, ms=4, label=arm["label"])
        drawn.set_linestyle((0, (4, 2)) if flat else "-")
        drawn.set_marker("" if flat else MARKERS[place // len(LINES)])
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_xticks(at, [f"{x:g}" for x in at])
    axis.grid(color="#e5e5e5", lw=0.6)
    axis.set_axisbelow(True)
    axis.set_xlabel("reader calls a question")
    axis.set_ylabel(points[0]["unit"])
    axis.set_title(points[0]["curve"]["measure"].replace("_", " "), loc="left")
    axis.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False, fontsize=8)


def _panel(axis: "Axes", panel: Mapping[str, Any], contrast: set[str]) -> None:
    published = False
    for place, arm in enumerate(panel["arms"]):
        colour = CONTRAST if arm["name"] in contrast else COLOURS[arm["role"]]
        if arm["iqm"] is not None:
            axis.plot([arm["ci_low"], arm["ci_high"]], [place, place], color=colour, lw=1.6, solid_capstyle="butt")
            axis.plot(arm["iqm"], place, "o", color=colour, ms=5, clip_on=False)
        if arm["reported"] is not None:
            axis.plot(arm["reported"], place, "o", mfc="white", mec=colour, ms=6, mew=1.2, clip_on=False)
            published = True
    axis.set_ylim(-0.6, len(panel["arms"]) - 0.4)
    axis.grid(axis="x", color="#e5e5e5", lw=0.6)
    axis.set_axisbelow(True)
    axis.tick_params(axis="y", length=0)
    axis.locator_params(axis="x", nbins=5)  # more would run into one another
    arrow = "→" if panel["direction"] == "higher" else "←"
    axis.set_xlabel(f"{panel['unit']}   (better {arrow})")
    hollow = "\n(hollow: published)" if published else ""
    axis.set_title(f"{panel['metric'].replace('_', ' ')}{hollow}", loc="left")
