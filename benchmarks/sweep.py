"""What a sweep adds to its trials: scheduling, shipping and storing, once workers are up.

    python benchmarks/sweep.py [--workers 2] [--trials 20] [--seconds 0.2]

A trial sleeps, so that its work is known, and stores records of the usual size (512 sessions of 8 steps). The ideal is
the work divided by the workers; what is beyond it, per trial, is the overhead. Beside Ray Core stand the same jobs one
after another and in a process pool, which cannot lose a worker without losing the sweep. Workers are warmed by a round
that is not counted.
"""

import argparse
import json
import math
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np

from recallgym.experiments.runner import run_jobs
from recallgym.experiments.store import Store

ROUNDS = 3


def trial(root: str, seconds: float, name: str) -> None:
    """Works, and stores what a trial stores."""
    time.sleep(seconds)
    rng = np.random.default_rng(0)
    shape = (512, 8)
    records = {f"count_{i}": rng.integers(0, 7, shape) for i in range(12)}
    records |= {f"value_{i}": rng.normal(size=shape).astype(np.float32) for i in range(6)}
    Store(root).write_trial(name, {"config": {"seed": 0}}, records)


def overhead(run: Callable[[str, list[str]], None], trials: int, workers: int, seconds: float) -> float:
    """Returns the least milliseconds a trial beyond the ideal, over a few rounds; the first, not counted, warms up."""
    ideal = math.ceil(trials / workers) * seconds
    best = math.inf
    for i in range(ROUNDS + 1):
        with tempfile.TemporaryDirectory() as root:
            Store(root)
            start = time.perf_counter()
            run(root, [f"trial-{j}" for j in range(trials)])
            if i:
                best = min(best, (time.perf_counter() - start - ideal) / trials * 1e3)
    return best


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=0.2)
    args = parser.parse_args()

    import ray

    start = time.perf_counter()
    ray.init(num_cpus=args.workers, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    started = time.perf_counter() - start
    pool = ProcessPoolExecutor(args.workers, mp_context=get_context("spawn"))

    def on_ray(root: str, names: list[str]) -> None:
        run_jobs(names, partial(trial, root, args.seconds), label=str, backend="ray", workers=args.workers)

    def serially(root: str, names: list[str]) -> None:
        run_jobs(names, partial(trial, root, args.seconds), label=str)

    def in_a_pool(root: str, names: list[str]) -> None:
        list(pool.map(partial(trial, root, args.seconds), names))

    try:
        measured = {
            "ray": overhead(on_ray, args.trials, args.workers, args.seconds),
            "serial": overhead(serially, args.trials, 1, args.seconds),
            "process_pool": overhead(in_a_pool, args.trials, args.workers, args.seconds),
        }
    finally:
        pool.shutdown()
        ray.shutdown()
    print(
        f"{args.trials} trials of {args.seconds} s on {args.workers} workers, ms a trial beyond the ideal: "
        + ", ".join(f"{name} {value:.1f}" for name, value in measured.items())
        + f"; starting Ray took {started:.1f} s"
    )
    result = {"benchmark": "sweep", "workers": args.workers, "trials": args.trials, "trial_s": args.seconds}
    print(
        json.dumps(result | {f"{k}_ms": round(v, 1) for k, v in measured.items()} | {"ray_start_s": round(started, 1)})
    )


if __name__ == "__main__":
    main()
