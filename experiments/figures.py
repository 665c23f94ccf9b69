"""The figure of a table: a dot and an interval for each arm, one panel a metric; published figures are hollow."""

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
    """Draws a table's primary metric and the first of its secondary ones."""
    from matplotlib.figure import Figure

    panels: Sequence[Mapping[str, Any]] = [table, *table["secondary"]][:MOST_PANELS]
    arms = table["arms"]
    size = (2.2 + 2.6 * len(panels), 1.3 + 0.27 * len(arms))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axis, panel in zip(axes, panels, strict=True):
        _panel(axis, panel, {table["primary"]["a"], table["primary"]["b"]})
    axes[0].set_yticks(range(len(arms)), [arm["label"] for arm in arms])
    axes[0].invert_yaxis()
    figure.suptitle(f"{heading(table)} — {table['verdict']}", fontsize=10, x=0.01, ha="left")
    return figure


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
    arrow = "→" if panel["direction"] == "higher" else "←"
    axis.set_xlabel(f"{panel['unit']}   (better {arrow})")
    hollow = "\n(hollow: published)" if published else ""
    axis.set_title(f"{panel['metric'].replace('_', ' ')}{hollow}", loc="left")
