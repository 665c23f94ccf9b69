"""``recallgym quickstart``: the whole path once, from an outcome table to a verified bundle."""

import argparse
import os
import sys
import time
from pathlib import Path

from ..experiments.plan import Plan
from ..experiments.reproduce import Reproduction, planned_ablation, reproduce
from ..experiments.runner import clock
from ..experiments.store import Store
from ..experiments.tables import number
from ..experiments.trial import load_table
from ..serving.verify import verify
from .common import ensure_trained, grid
from .export import export_trial

OUT = Path("outputs/quickstart")
SHIPPED = "apidocs"
NEXT = (
    ("reproduce C4 --out results", "the full table, 10 seeds"),
    ("train env.observe=[query,feedback,budget,content]", "a gate that sees the candidates"),
    ("envs show CausalMemory-v0", "what a gate observes, does and is paid for"),
    ("doctor", "what else could run here"),
)
#: Six small families, so that embedding takes half a minute and each split has a family of its own.
LIVE_PACKAGES = ("joblib", "click", "jinja2", "requests", "urllib3", "pyarrow", "gymnasium")
LIVE_QUESTIONS = 24  # a few minutes of two cores, reader included


def quickstart(parser: argparse.ArgumentParser, arguments: list[str]) -> int:
    """Trains, compares, reproduces C4, exports, verifies; 1 where the bundle is refused."""
    parser.add_argument("--out", type=Path, default=OUT, metavar="DIR", help=f"where to write [{OUT}]")
    parser.add_argument("--live", action="store_true", help="first build a small outcome table with the real reader")
    parser.add_argument("--table", default=SHIPPED, metavar="TABLE", help=f"outcome table to use [{SHIPPED}]")
    args = parser.parse_args(arguments)
    begun = time.monotonic()
    out: Path = args.out
    table = str(build_live_table(out / "table")) if args.live else args.table
    overrides = [f"run.dir='{out / 'store'}'", *([] if table == SHIPPED else [f"env.table='{table}'"])]

    plan = planned_ablation("quickstart", overrides=overrides)
    facts = load_table(plan.env)
    size = f"{facts.questions} questions x {facts.conditions} conditions x {len(facts.sets)} reading sets"
    _say("Outcome table", f"{facts.meta['name']}, {size}")
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
    for what, done in (("regret", comparison), ("C4", claim)):
        print(f"  {what:<7} {'  '.join(str(path) for path in done.files if path.suffix in ('.md', '.png'))}")
    print(f"  bundle  {bundle}\n  trials  {out / 'store'}\n\nNext (commands are in {Path(sys.executable).parent}):")
    for command, meaning in NEXT:
        print(f"  recallgym {command:<50} {meaning}")
    return 0 if report.ok else 1


def train(plan: Plan, store: Store) -> Path:
    """Trains the gates of the comparison, with progress, and returns the folder of the first one's trial."""
    trials = {seed: plan.trials["regret", "gate", seed] for seed in plan.seeds}
    for seed, trial in trials.items():
        _say("Training", f"a causal gate with PPO, {trial.agent['steps']:,} steps, seed {seed}")
        ensure_trained(store, trial)
    return store.trial_dir(trials[plan.seeds[0]].hash)


def build_live_table(folder: Path) -> Path:
    """Builds a small outcome table from the documentation of a few installed packages, with the real reader."""
    from ..envs.outcomes.plan import BuildConfig
    from .outcomes import build_with_progress

    workers = os.cpu_count() or 1
    said = f"{LIVE_QUESTIONS} questions about {', '.join(LIVE_PACKAGES)}"
    _say("Live table", f"{said}, scored by the reader in {workers} processes; resumable")
    build_with_progress(BuildConfig(name="live", questions=LIVE_QUESTIONS, packages=LIVE_PACKAGES), folder, workers)
    return folder


def _show(done: Reproduction) -> None:
    table = done.table
    rows = [(a["label"], number(a["iqm"]), f"[{number(a['ci_low'])}, {number(a['ci_high'])}]") for a in table["arms"]]
    print(grid((f"{table['metric']}, {table['unit']}", "IQM", "95% interval"), rows))
    print(f"verdict: {table['verdict']}: {table['explanation']}")


def _say(title: str, text: str) -> None:
    print(f"\n== {title}: {text}", flush=True)
