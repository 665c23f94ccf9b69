"""``recallgym quickstart``: the whole path once, from an outcome table to a verified bundle."""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from ..experiments.plan import Plan
from ..experiments.reproduce import Reproduction, planned_ablation, reproduce
from ..experiments.runner import clock
from ..experiments.store import Store
from ..experiments.tables import number
from ..experiments.trial import ensure_fit, load_table
from ..serving.verify import verify
from .common import Bar, grid
from .export import export_trial

LIVE_QUESTIONS = 24  # a few minutes of two cores, reader included


def quickstart(parser: argparse.ArgumentParser, arguments: list[str]) -> int:
    """Trains, compares, reproduces C4, exports, verifies; 1 where the bundle is refused."""
    parser.add_argument("--out", type=Path, default=Path("outputs/quickstart"), metavar="DIR", help="[outputs/quickstart]")
    parser.add_argument("--live", action="store_true", help="first build a small outcome table with the real reader")
    parser.add_argument("--table", default="apidocs", metavar="TABLE", help="outcome table to use [apidocs]")
    args = parser.parse_args(arguments)
    begun = time.monotonic()
    out: Path = args.out
    table = build_live_table(out / "table") if args.live else args.table
    overrides = [f"env.table={table}", f"run.dir={out / 'store'}"]

    plan = planned_ablation("quickstart", overrides=overrides)
    facts = load_table(plan.env)
    _say("Outcome table", f"{facts.questions} questions x {facts.conditions} conditions, {len(facts.sets)} reading sets")
    gate = train(plan, Store(out / "store"))

    _say("Comparison", "the same held-out sessions for every policy")
    comparison = reproduce("quickstart", out / "results", overrides=overrides)
    _show(comparison)
    _say("Claim C4", "hard, soft and multiplying intervention under identical masks, on fewer seeds (--quick)")
    claim = reproduce("C4", out / "results", overrides=overrides, quick=True)
    _show(claim)

    bundle = out / "bundle"
    digest = export_trial(gate, bundle, replace_bundle=bundle.is_dir())
    _say("Bundle", f"digest {digest}")
    report = verify(bundle)
    print("\n".join(report.lines()))

    _say("Done", f"in {clock(time.monotonic() - begun)}")
    for what, where in (
        ("regret: page, figure", comparison.files),
        ("C4: page, figure", claim.files),
    ):
        shown = [str(path) for path in where if path.suffix in (".md", ".png")]
        print(f"  {what:<22} {'  '.join(shown)}")
    print(f"  {'bundle':<22} {bundle}")
    print(f"  {'trained policies':<22} {out / 'store'}")
    print(
        "\nNext:\n"
        "  recallgym reproduce C4 --out results          the full table, 10 seeds\n"
        "  recallgym train env.observe=[query,content,budget]   a gate that sees the candidates\n"
        "  recallgym envs show CausalMemory-v0           what it observes and is paid for\n"
        "  recallgym doctor                              what else could run here"
    )
    return 0 if report.ok else 1


def train(plan: Plan, store: Store) -> Path:
    """Trains the gates of the comparison, with progress, and returns the folder of the first one's trial."""
    trials = {seed: plan.trials["regret", "gate", seed] for seed in plan.seeds}
    for seed, trial in trials.items():
        _say("Training", f"a causal gate with PPO, {trial.agent['steps']:,} steps, seed {seed}")
        ensure_fit(store, trial, progress=Bar())
    return store.trial_dir(trials[0].hash)


def build_live_table(folder: Path) -> Path:
    """Builds a small outcome table from the documentation of the installed packages, with the real reader."""
    raise NotImplementedError


def _show(done: Reproduction) -> None:
    table = done.table
    rows: Sequence[Sequence[str]] = [
        (arm["label"], number(arm["iqm"]), f"[{number(arm['ci_low'])}, {number(arm['ci_high'])}]") for arm in table["arms"]
    ]
    print(grid((f"{table['metric']}, {table['unit']}", "IQM", "95% interval"), rows))
    print(f"verdict: {table['verdict']}: {table['explanation']}")


def _say(title: str, text: str) -> None:
    print(f"\n== {title}: {text}", flush=True)
