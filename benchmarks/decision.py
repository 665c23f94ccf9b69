"""Time of one decision of a causal gate: a bundle's runtime, eager torch, and Stable-Baselines3's ``predict``.

    python benchmarks/decision.py [--rounds 20] [--out FILE.json]

The gate is the published size (512 hidden units, 384-dimensional queries) and untrained: what it decides does not
change how long it takes. All contenders decide on the same observations, one thread, interleaved in one process, so
that the ratios hold on a busy machine. ``sb3_gate`` is PPO's policy as this package trains it (the same gate);
``sb3_mlp`` is ``MlpPolicy`` with the same widths, which neither normalises nor checks its input nor returns
propensities.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import stable_baselines3
import torch
from numpy.typing import NDArray

from recallgym.agents.ppo import GateActorCritic
from recallgym.envs.causal_memory import CausalMemoryConfig
from recallgym.envs.causal_memory.sb3 import BatchedVecEnv
from recallgym.envs.outcomes.toy import toy_table
from recallgym.policies import CausalGate
from recallgym.serving.export import export_bundle
from recallgym.serving.runtime import load

DIMENSION = 384
BATCHES = (1, 64)
CALLS = 100  # of each contender in each round, after as many that are not counted


def contenders(folder: Path) -> tuple[dict[str, Callable[[NDArray], Any]], NDArray[np.float32]]:
    """Returns what takes a decision, by name, and observations (64, D) to decide on."""
    table = toy_table()
    table = replace(table, query=np.pad(table.query, ((0, 0), (0, DIMENSION - table.query.shape[1]))))
    config = CausalMemoryConfig(table=table)
    layout = config.layout(table)
    vector = config.make_vector(max(BATCHES))
    observations, _ = vector.reset(seed=0)

    gate = CausalGate(blocks=layout.blocks, pool=table.pool, budget=table.budget)
    gate.fit_normaliser(torch.from_numpy(observations), torch.tensor(layout.low), torch.tensor(layout.high))
    export_bundle(
        gate,
        folder / "bundle",
        layout=layout,
        intervention={
            "mode": config.mode,
            "k": table.budget,
            "alpha": config.alpha,
            "threshold": config.threshold.base,
            "fallback": config.fallback,
            "backfill": config.backfill,
            "early_exit": config.early_exit,
        },
        identity=dict.fromkeys(("embedder", "tokenizer", "reader", "index", "corpus")) | {"table": table.fingerprint},
        configuration={},
        recorded=observations,
    )
    onnx, exported = load(folder / "bundle"), load(folder / "bundle", backend="torch")
    env = BatchedVecEnv(vector)
    actor = {"gate": gate, "critic": (256, 256), "log_std": -1.0, "generator": torch.Generator()}
    sb3_gate = stable_baselines3.PPO(GateActorCritic, env, policy_kwargs=actor, device="cpu")
    sb3_mlp = stable_baselines3.PPO("MlpPolicy", env, policy_kwargs={"net_arch": [512]}, device="cpu")

    def eager(rows: NDArray) -> Any:
        with torch.inference_mode():
            return gate.decide(torch.from_numpy(rows)).numpy()

    decide = {
        "runtime_onnx": onnx.decide,
        "runtime_torch": exported.decide,
        "eager_torch": eager,
        "sb3_gate": lambda rows: sb3_gate.predict(rows, deterministic=True),
        "sb3_mlp": lambda rows: sb3_mlp.predict(rows, deterministic=True),
    }
    return decide, observations


def measure(decide: dict[str, Callable[[NDArray], Any]], rows: NDArray, rounds: int) -> dict[str, dict[str, float]]:
    """Returns the median and 95th percentile in microseconds of each contender."""
    seconds: dict[str, list[float]] = {name: [] for name in decide}
    for _ in range(rounds):
        for name, call in decide.items():
            for _ in range(CALLS):
                call(rows)
            for _ in range(CALLS):
                start = time.perf_counter()
                call(rows)
                seconds[name].append(time.perf_counter() - start)
    quantiles = {name: np.percentile(times, (50, 95)) * 1e6 for name, times in seconds.items()}
    return {name: {"p50_us": round(p50, 1), "p95_us": round(p95, 1)} for name, (p50, p95) in quantiles.items()}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20, help=f"rounds of {CALLS} calls of each contender")
    parser.add_argument("--out", type=Path, help="file for the result as JSON, which is printed too")
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    result: dict[str, Any] = {"benchmark": "decision"}
    with tempfile.TemporaryDirectory() as folder:
        decide, observations = contenders(Path(folder))
        for batch in BATCHES:
            times = measure(decide, observations[:batch], arguments.rounds)
            result[f"batch_{batch}"] = times
            for name, found in times.items():
                slower = found["p50_us"] / times["runtime_onnx"]["p50_us"]
                line = f"{found['p50_us']:8.1f} us median {found['p95_us']:8.1f} us p95   {slower:5.1f}x"
                print(f"batch {batch:<3} {name:<14} {line}")
    base = result["batch_1"]["runtime_onnx"]["p50_us"]
    for name in ("sb3_gate", "sb3_mlp"):
        result[f"{name}_over_runtime"] = round(result["batch_1"][name]["p50_us"] / base, 2)
    print(json.dumps(result))
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
