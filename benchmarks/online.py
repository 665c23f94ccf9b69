"""Time of one online update of a causal gate: acting, level 1, an expert's label, and the drift monitor.

    python benchmarks/online.py [--steps 2000] [--out FILE.json]

The gate is the published size (512 hidden units, 384-dimensional queries) and untrained; one thread. The update is that
of every step: REINFORCE with Adam on all parameters, and the monitor's sample. ``eager`` is a forward pass of the same
gate, for scale.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from recallgym.agents.online import Online, OnlineGate
from recallgym.backends.estimation.drift import DriftRule
from recallgym.policies import CausalGate

QUERY, POOL, BUDGET = 384, 6, 3
TARGET_MS = 2.0


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=2000, help="steps that are counted, after a tenth as many")
    parser.add_argument("--out", type=Path, help="file for the result as JSON, which is printed too")
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    gate = CausalGate(blocks=(("query", QUERY), ("feedback", 2), ("budget", 2)), pool=POOL, budget=BUDGET)
    sample = torch.from_numpy(rng.normal(size=(256, QUERY + 4)).astype(np.float32))
    bound = torch.full((QUERY + 4,), 10.0)
    gate.fit_normaliser(sample, -bound, bound)
    settings = Online(learning_rate=1e-5, label_rate=1e-5, drift=DriftRule(low=-4, high=0), uniform=0)
    online = OnlineGate(gate, settings, seed=0)
    seconds: dict[str, list[float]] = {"eager": [], "act": [], "learn": [], "teach": []}

    def timed(name: str, call: Any) -> Any:
        start = time.perf_counter()
        result = call()
        seconds[name].append(time.perf_counter() - start)
        return result

    warm = arguments.steps // 10
    for i in range(warm + arguments.steps):
        seen = sample[i % len(sample)].numpy()
        with torch.no_grad():
            timed("eager", lambda row=seen: gate(torch.from_numpy(row)[None]))
        act = timed("act", lambda row=seen: online.act(row))
        utility = float(rng.choice([-0.5, 0.5]))  # beyond the dead zone, so that every step updates
        timed("learn", lambda row=seen, done=act, u=utility, day=i / 200: online.learn(day, row, done, u, -1.0))
        timed("teach", lambda row=seen: online.teach(row, np.ones(POOL, dtype=bool)))
    result: dict[str, Any] = {"benchmark": "online"}
    for name, values in seconds.items():
        p50, p95 = np.percentile(values[warm:], (50, 95)) * 1e3
        result[name] = {"p50_ms": round(float(p50), 3), "p95_ms": round(float(p95), 3)}
        print(f"{name:<6} {p50:7.3f} ms median {p95:7.3f} ms p95")
    result["learn_over_eager"] = round(result["learn"]["p50_ms"] / result["eager"]["p50_ms"], 1)
    print(f"an update takes {result['learn']['p50_ms']:.2f} ms (target {TARGET_MS:g} ms)")
    print(json.dumps(result))
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
