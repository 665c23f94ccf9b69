"""Training end to end: this package's PPO, Stable-Baselines3 over DummyVecEnv, a loop written for the purpose.

    python benchmarks/training.py [--table apidocs] [--samples 81920] [--rounds 3] [--threads 2] [--out FILE.json]

All three take the same samples (4,096 a rollout, minibatch 512, 4 epochs) with networks of the same widths, in turns
within one process, so that the ratios hold on a busy machine:

- ``ppo``: :class:`recallgym.agents.ppo.PPO` as users call it, over the batched environment;
- ``sb3_dummy``: Stable-Baselines3's PPO and MlpPolicy over 8 DummyVecEnv copies of the single environment;
- ``loop``: :func:`loop` below, PPO in one function over the native vector environment, with nothing around it.

Then the exact gradient is timed until its held-out regret is that of PPO with its default settings, as a share of the
time that ``sb3_dummy`` would take for as many samples. There the gate observes ranks and content: from the query and
feedback alone no learner beats keep-all on held-out families of the shipped table, so there would be nothing to reach.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import stable_baselines3
import torch
from stable_baselines3.common.vec_env import DummyVecEnv
from torch import nn

from recallgym.agents.evaluation import evaluate
from recallgym.agents.exact_gradient import ExactGradient
from recallgym.agents.ppo import PPO
from recallgym.envs.causal_memory import CausalMemoryConfig
from recallgym.envs.outcomes.toy import toy_table
from recallgym.policies import CausalGate
from recallgym.policies.base import Policy, bernoulli_log_prob

DIMENSION = 384  # of the toy table's queries once padded, that of the shipped table's
REGRET_OBSERVES = ("feedback", "budget", "ranks", "content")
TARGETS = {"ppo_over_sb3_dummy": 1.5, "ppo_over_loop": 0.95, "exact_share_of_sb3_dummy": 0.1}


def environment(table: str) -> CausalMemoryConfig:
    """Returns the default environment over a table; ``toy`` is one of the shipped table's size."""
    if table != "toy":
        return CausalMemoryConfig(table=table)
    toy = toy_table(questions=400)
    return CausalMemoryConfig(
        table=replace(toy, query=np.pad(toy.query, ((0, 0), (0, DIMENSION - toy.query.shape[1]))))
    )


def gate(config: CausalMemoryConfig) -> CausalGate:
    """Returns the gate of the published size, untrained."""
    table = config.load_table()
    return CausalGate(blocks=config.layout(table).blocks, pool=table.pool, budget=table.budget)


def ppo(config: CausalMemoryConfig, samples: int) -> None:
    """This package's PPO."""
    PPO(steps=samples, validate_every=0).fit(config, gate(config), seed=0)


def sb3_dummy(config: CausalMemoryConfig, samples: int) -> None:
    """What people would use: the single environment, eight times, in SB3's own vector environment."""
    env = DummyVecEnv([lambda i=i: replace(config, seed=i).make() for i in range(8)])
    model = stable_baselines3.PPO(
        "MlpPolicy",
        env,
        n_steps=512,
        batch_size=512,
        n_epochs=4,
        gamma=0.5,
        learning_rate=1e-3,
        policy_kwargs={"net_arch": {"pi": [512], "vf": [256, 256]}},
        device="cpu",
        seed=0,
    )
    model.learn(samples)


def loop(config: CausalMemoryConfig, samples: int) -> None:
    """PPO in one function: rollouts of 8 steps in 512 sessions, GAE, clipped updates."""
    steps, width, gamma, lam, clip, rate = 8, 512, 0.5, 0.95, 0.2, 1e-3
    generator = torch.Generator().manual_seed(0)
    env, actor = config.make_vector(width), gate(config)
    size, bits = actor.observation_size, actor.pool + 1
    critic = nn.Sequential(nn.Linear(size, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 1))
    parameters = [*actor.parameters(), *critic.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=rate, eps=1e-5, fused=True)
    seen, _ = env.reset(seed=0)
    observation, ended = torch.from_numpy(seen), torch.zeros(width)
    observations, actions = torch.zeros(steps, width, size), torch.zeros(steps, width, bits)
    log_probs, values, rewards, ends = torch.zeros(4, steps, width)
    for done in range(0, samples, steps * width):
        optimizer.param_groups[0]["lr"] = rate * (1 - done / samples)
        with torch.no_grad():
            for t in range(steps):
                action, log_probs[t] = actor.sample(observation, generator)
                values[t] = critic(actor.standardise(observation)).squeeze(-1)
                observations[t], actions[t], ends[t] = observation, action, ended
                seen, reward, terminated, _, _ = env.step(action.numpy())
                observation, ended = torch.from_numpy(seen), torch.from_numpy(terminated).float()
                rewards[t] = torch.from_numpy(reward)
            following, advantage = critic(actor.standardise(observation)).squeeze(-1), torch.zeros(width)
            advantages, continues = torch.zeros(steps, width), 1 - ended
            for t in reversed(range(steps)):
                delta = rewards[t] + gamma * following * continues - values[t]
                advantage = delta + gamma * lam * continues * advantage
                advantages[t], following, continues = advantage, values[t], 1 - ends[t]
        flat = [x.flatten(0, 1) for x in (observations, actions, log_probs, advantages, advantages + values)]
        for _ in range(4):
            for part in torch.randperm(steps * width, generator=generator).split(512):
                x, a, old, advantage, target = (values[part] for values in flat)
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                ratio = (bernoulli_log_prob(actor(x), a) - old).exp()
                gain = torch.min(advantage * ratio, advantage * ratio.clamp(1 - clip, 1 + clip)).mean()
                error = nn.functional.mse_loss(critic(actor.standardise(x)).squeeze(-1), target)
                optimizer.zero_grad()
                (0.5 * error - gain).backward()
                nn.utils.clip_grad_norm_(parameters, 0.5)
                optimizer.step()


def held_out_regret(policy: Policy, config: CausalMemoryConfig) -> float:
    """Returns the mean regret of a step on the test split, nats a token."""
    return float(evaluate(policy, config)["session_regret"].mean())


def time_to_regret(config: CausalMemoryConfig, target: float) -> tuple[float | None, float]:
    """Returns after how many seconds of training the exact gradient is at the target (None: never), and its least."""
    policy, paused, reached, least = gate(config), 0.0, None, float("inf")
    start = time.perf_counter()

    def check(share: float, text: str) -> None:
        nonlocal paused, reached, least
        now = time.perf_counter()
        regret = held_out_regret(policy, config)
        if reached is None and regret <= target:
            reached = now - start - paused
        least = min(least, regret)
        paused += time.perf_counter() - now

    ExactGradient(validate_every=0).fit(config, policy, seed=0, progress=check)
    return reached, least


def main() -> None:
    """Runs the comparison and prints it, as lines and as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--table", default="apidocs", help="a table's name or path, or toy (of the shipped table's size)"
    )
    parser.add_argument("--samples", type=int, default=81_920, help="environment steps of each timed run")
    parser.add_argument("--rounds", type=int, default=3, help="timed runs of each; medians are compared")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="torch threads")
    parser.add_argument("--skip-exact", action="store_true", help="only compare throughputs")
    parser.add_argument("--out", type=Path, help="file for the JSON")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    config = environment(args.table)
    arms: dict[str, Callable[[CausalMemoryConfig, int], None]] = {"ppo": ppo, "sb3_dummy": sb3_dummy, "loop": loop}
    seconds: dict[str, list[float]] = {name: [] for name in arms}
    for run in arms.values():
        run(config, 4096)  # imports and allocations
    for _ in range(args.rounds):
        for name, run in arms.items():
            start = time.perf_counter()
            run(config, args.samples)
            seconds[name].append(time.perf_counter() - start)
    rate = {name: args.samples / float(np.median(times)) for name, times in seconds.items()}
    result: dict[str, float | dict[str, float] | None] = {
        "steps_per_second": rate,
        "ppo_over_sb3_dummy": rate["ppo"] / rate["sb3_dummy"],
        "ppo_over_loop": rate["ppo"] / rate["loop"],
    }
    if not args.skip_exact:
        config = replace(config, observe=REGRET_OBSERVES)
        trained = PPO().fit(config, gate(config), seed=0)
        target = held_out_regret(trained.policy, config)
        reached, least = time_to_regret(config, target)
        start = time.perf_counter()
        sb3_dummy(config, args.samples)
        dummy = (time.perf_counter() - start) * trained.steps / args.samples
        result |= {
            "keep_all_regret": held_out_regret(gate(config), config),  # what an untrained gate decides
            "ppo_regret": target,
            "ppo_seconds": trained.seconds,
            "sb3_dummy_seconds": dummy,
            "exact_seconds_to_ppo_regret": reached,
            "exact_least_regret": least,
            "exact_share_of_sb3_dummy": None if reached is None else reached / dummy,
        }
    for name, value in rate.items():
        print(f"{name:10s} {value:9,.0f} steps/s")
    for name, target in TARGETS.items():
        if name in result:
            bound = "at most" if name.startswith("exact") else "at least"
            print(f"{name}: {result[name] if result[name] is None else round(result[name], 3)} ({bound} {target})")
    text = json.dumps({"table": args.table, "threads": args.threads, "targets": TARGETS, **result}, indent=1)
    print(text)
    if args.out:
        args.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
