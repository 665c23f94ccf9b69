"""``recallgym export``: the policy of a trial as a bundle."""

import argparse
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..agents.rollout import acting, roll
from ..envs.outcomes.table import OutcomeTable
from ..experiments.store import Finished, Store
from ..experiments.trial import load_env, load_fit, load_table
from ..policies.base import Policy
from ..serving.bundle import IDENTITY
from ..serving.export import export_bundle
from .common import UNITS, measured
from .errors import UsageError

RECORDED_SESSIONS = 64  # more observations than the parity vectors of a bundle can take
RECORDED_SEED = 1000


def export(parser: argparse.ArgumentParser, arguments: list[str]) -> int:
    """Exports the policy of a trial, with what the trial measured as its metric card."""
    parser.add_argument("trial", type=Path, metavar="TRIAL", help="a trial's folder, as `recallgym train` printed it")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the bundle")
    parser.add_argument("--replace", action="store_true", help="replace a bundle that is there already")
    args = parser.parse_args(arguments)
    if args.out.exists() and not args.replace:
        raise UsageError(f"{args.out} exists; give another --out, or --replace where it is a bundle")
    digest = export_trial(args.trial, args.out, replace_bundle=args.replace)
    print(f"exported: {args.out} (digest {digest})\nnext: recallgym verify {args.out}")
    return 0


def export_trial(folder: Path, out: Path, *, replace_bundle: bool = False) -> str:
    """Exports the policy of a stored trial.

    Args:
        folder: The trial's folder in its store.
        out: Folder of the bundle.
        replace_bundle: Whether to replace a bundle that is there already.

    Returns:
        The digest of the bundle.

    Raises:
        UsageError: The folder is no trial.
        ExportError: The policy must not be exported as it is.
    """
    if folder.parent.name != "trials" or not (folder / "result.json").is_file():
        raise UsageError(f"{folder}: not a trial's folder; `recallgym train` makes one and prints it")
    store = Store(folder.parent.parent)
    trial = store.read_trial(folder.name)
    config = trial.result["config"]
    policy, _ = load_fit(store, trial.result["fit"])
    env, table = load_env(config["env"]), load_table(config["env"])
    bundle = export_bundle(
        policy,
        out,
        layout=env.layout(),
        intervention={
            "mode": env.mode,
            "k": table.budget,
            "alpha": env.alpha,
            "threshold": asdict(env.threshold),
            "fallback": env.fallback,
            "backfill": env.backfill,
            "early_exit": env.early_exit,
        },
        identity=_identity(table),
        configuration=config,
        metrics=_metric_card(trial, table),
        recorded=_recorded(policy, env),
        action=env.action,
        replace=replace_bundle,
    )
    return bundle.digest


def _identity(table: OutcomeTable) -> dict[str, str | None]:
    """What the policy was trained beside; a computed table (the toy) had no reader and names only itself."""
    stated = table.meta.get("fingerprints", {})
    indexes = [f"{kind} {stated[f'healthy_{kind}']}" for kind in ("dense", "sparse") if f"healthy_{kind}" in stated]
    found = {name: stated.get(name) for name in IDENTITY}
    return {**found, "index": ", ".join(indexes) or None, "table": table.fingerprint}


def _metric_card(trial: Finished, table: OutcomeTable) -> list[dict[str, Any]]:
    """The trial's figures, with intervals over package families."""
    seed = trial.result["config"]["seed"]
    found = measured([trial.records], [seed], table.meta["families"])
    return [
        {
            "name": name,
            "value": found[name].estimate,
            "ci_low": found[name].low,
            "ci_high": found[name].high,
            "unit": unit,
            "seeds": [seed],
        }
        for name, unit in UNITS.items()
        if name in found
    ]


def _recorded(policy: Policy, env: Any) -> NDArray[np.float32]:
    """Observations that the policy meets in held-out sessions, (M, D)."""
    held_out = replace(env, split="test").make_vector(RECORDED_SESSIONS)
    played = roll(held_out, acting(policy, env.action), seed=RECORDED_SEED)
    observations: NDArray[np.float32] = played.observations.flatten(0, 1).numpy()
    return observations
