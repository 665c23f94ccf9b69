"""Steps a second of CausalMemory-v0: native vector, single, and Gymnasium's SyncVectorEnv over 8 singles.

    python benchmarks/environment.py [--table apidocs] [--width 1024] [--seconds 1]

The three are interleaved and each takes the best of its rounds, so that the ratios hold on a busy machine. Without
--table a computable table with 384-dimensional queries stands in for the shipped one; with it, loading is timed, too.
Ends in one JSON line.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median

import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from recallgym.envs.causal_memory import CausalMemoryConfig
from recallgym.envs.causal_memory.single import CausalMemoryEnv
from recallgym.envs.outcomes.table import OutcomeTable
from recallgym.envs.outcomes.toy import toy_table

ROUNDS = 5
COPIES = 8
DIMENSION = 384


def wide_toy_table() -> OutcomeTable:
    """A toy table of the shipped one's size: 400 questions in 2 conditions, queries padded to 384 dimensions."""
    table = toy_table(questions=400)
    return replace(table, query=np.pad(table.query, ((0, 0), (0, DIMENSION - table.query.shape[1]))))


def batch_player(env: VectorEnv, config: CausalMemoryConfig) -> Callable[[], int]:
    """Returns a function that plays one session in each sub-environment and counts the steps."""
    env.reset(seed=0)
    actions = [env.action_space.sample() for _ in range(config.steps)]

    def play() -> int:
        for action in actions:
            env.step(action)
        return env.num_envs * config.steps

    return play


def single_player(env: CausalMemoryEnv, config: CausalMemoryConfig) -> Callable[[], int]:
    """Returns a function that plays one session, its reset included, and counts the steps."""
    actions = [env.action_space.sample() for _ in range(config.steps)]

    def play() -> int:
        env.reset()
        for action in actions:
            env.step(action)
        return config.steps

    return play


def rate(play: Callable[[], int], seconds: float) -> float:
    """Returns steps a second over at least the given time."""
    steps, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        steps += play()
    return steps / elapsed


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", help="an outcome table's name or path (default: a computable one)")
    parser.add_argument("--width", type=int, default=1024, help="sub-environments of the native vector")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each of the rounds of each candidate")
    arguments = parser.parse_args()

    config = CausalMemoryConfig(table=arguments.table or wide_toy_table())
    sync = SyncVectorEnv([config.make] * COPIES, autoreset_mode=AutoresetMode.SAME_STEP)
    players = {
        "vector": batch_player(config.make_vector(arguments.width), config),
        "single": single_player(config.make(), config),
        "sync_of_singles": batch_player(sync, config),
    }
    loaded = []
    if arguments.table:
        for _ in range(ROUNDS):
            start = time.perf_counter()
            CausalMemoryConfig(table=arguments.table).load_table()
            loaded.append(time.perf_counter() - start)
    best = dict.fromkeys(players, 0.0)
    for _ in range(ROUNDS):
        for name, play in players.items():
            best[name] = max(best[name], rate(play, arguments.seconds))
    ratio = best["vector"] / best["sync_of_singles"]
    print(
        f"native vector, {arguments.width} wide: {best['vector']:,.0f} steps/s; single: {best['single']:,.0f}; "
        f"SyncVectorEnv over {COPIES} singles: {best['sync_of_singles']:,.0f}; native is {ratio:.0f} times that"
    )
    if loaded:
        print(f"loading the table, checksums included: {1e3 * median(loaded):.0f} ms")
    result = {"benchmark": "environment", "table": config.load_table().meta["name"], "width": arguments.width}
    print(json.dumps(result | {k: round(v) for k, v in best.items()} | {"vector_over_sync": round(ratio, 1)}))


if __name__ == "__main__":
    main()
