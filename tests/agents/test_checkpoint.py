"""A run that was killed ends as it would have ended, bit for bit."""

import signal
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from recallgym.agents.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from recallgym.agents.exact_gradient import ExactGradient
from recallgym.agents.ppo import PPO
from recallgym.agents.reinforce import Reinforce
from recallgym.envs.causal_memory import CausalMemoryConfig

COMMON = {"steps": 6 * 320, "envs": 64, "validate_every": 2, "validation_sessions": 16, "checkpoint_every": 3}
LEARNERS = {
    # 5 steps a rollout and 8 a session: boundaries fall inside sessions
    "ppo": PPO(**COMMON, rollout=5, batch=64),
    "reinforce": Reinforce(**COMMON | {"steps": 6 * 512}),
    "exact": ExactGradient(**COMMON | {"steps": 6 * 512}, batch=128),
}


class KilledError(Exception):
    """Stands for a kill."""


def kill_after(updates: int):
    """A progress callable that ends the run in its nth update, after the checkpoint."""
    calls = []

    def progress(share: float, text: str) -> None:
        calls.append(share)
        if len(calls) == updates:
            raise KilledError

    return progress


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("updates", [3, 4])
def test_three_rollouts_a_kill_and_the_rest_equal_six_straight(name, updates, hidden_env, make_gate, tmp_path):
    straight, resumed = tmp_path / "straight", tmp_path / "resumed"
    whole = LEARNERS[name].fit(hidden_env, make_gate(hidden_env), seed=1, checkpoint_dir=straight)
    with pytest.raises(KilledError):
        LEARNERS[name].fit(
            hidden_env, make_gate(hidden_env), seed=1, checkpoint_dir=resumed, progress=kill_after(updates)
        )
    rest = LEARNERS[name].fit(hidden_env, make_gate(hidden_env), seed=1, checkpoint_dir=resumed)
    assert rest.steps == whole.steps
    assert [point["validation"] for point in rest.curve] == [point["validation"] for point in whole.curve]
    _assert_equal(whole.policy.state_dict(), rest.policy.state_dict())
    ends = [torch.load(folder / "checkpoint.pt", weights_only=False)["parts"] for folder in (straight, resumed)]
    _assert_equal(*ends)  # the last parameters, not only the best; optimizer, generators and environment too


def _assert_equal(a, b) -> None:
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            _assert_equal(a[key], b[key])
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            _assert_equal(x, y)
    else:
        assert torch.equal(torch.as_tensor(a), torch.as_tensor(b)) if not isinstance(a, str | type(None)) else a == b


SCRIPT = """
import os, signal, sys, torch
from recallgym.agents.reinforce import Reinforce
from recallgym.envs.causal_memory import CausalMemoryConfig
from recallgym.policies import CausalGate

torch.set_num_threads(1)
env = CausalMemoryConfig(table="toy")
gate = CausalGate(blocks=env.layout().blocks, pool=6, budget=3, hidden=16)
learner = Reinforce(steps=6 * 128, envs=16, checkpoint_every=1, validate_every=0)

def progress(share, text):
    if share > 0.4:
        os.kill(os.getpid(), signal.SIGKILL)

learner.fit(env, gate, seed=0, checkpoint_dir=sys.argv[1], progress=progress)
"""


def test_what_a_killed_process_left_is_continued_by_another_process(make_gate, tmp_path):
    killed = subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    env_config = CausalMemoryConfig(table="toy")
    learner = Reinforce(steps=6 * 128, envs=16, checkpoint_every=1, validate_every=0)
    shares = []
    resumed = learner.fit(
        env_config,
        make_gate(env_config, hidden=16),
        seed=0,
        checkpoint_dir=tmp_path,
        progress=lambda share, _: shares.append(share),
    )
    assert shares == pytest.approx([4 / 6, 5 / 6, 1])
    straight = learner.fit(env_config, make_gate(env_config, hidden=16), seed=0)
    _assert_equal(straight.policy.state_dict(), resumed.policy.state_dict())


def test_a_finished_run_is_returned_without_another_step(hidden_env, make_gate, tmp_path):
    first = LEARNERS["ppo"].fit(hidden_env, make_gate(hidden_env), seed=1, checkpoint_dir=tmp_path)
    again = LEARNERS["ppo"].fit(
        hidden_env, make_gate(hidden_env), seed=1, checkpoint_dir=tmp_path, progress=kill_after(1)
    )
    _assert_equal(first.policy.state_dict(), again.policy.state_dict())


def test_a_checkpoint_of_another_run_or_a_damaged_one_is_refused(hidden_env, make_gate, tmp_path):
    learner = replace(LEARNERS["exact"], steps=512)
    learner.fit(hidden_env, make_gate(hidden_env), seed=1, checkpoint_dir=tmp_path)
    with pytest.raises(CheckpointError, match="of another run"):
        learner.fit(hidden_env, make_gate(hidden_env), seed=2, checkpoint_dir=tmp_path)
    with pytest.raises(CheckpointError, match="of another run"):
        replace(learner, gamma=0.9).fit(hidden_env, make_gate(hidden_env), seed=1, checkpoint_dir=tmp_path)
    file = tmp_path / "checkpoint.pt"
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(CheckpointError, match="not a readable checkpoint"):
        learner.fit(hidden_env, make_gate(hidden_env), seed=1, checkpoint_dir=tmp_path)


def test_a_kill_while_writing_leaves_the_old_checkpoint(tmp_path):
    file = tmp_path / "checkpoint.pt"
    save_checkpoint(file, {"identity": "a", "value": 1})

    class Unpicklable:
        def __reduce__(self):
            raise KilledError

    with pytest.raises(KilledError):
        save_checkpoint(file, {"identity": "a", "value": Unpicklable()})
    assert load_checkpoint(file, "a")["value"] == 1
    assert load_checkpoint(tmp_path / "none.pt", "a") is None
