"""Curves reach their files, and runs in one process stay apart."""

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from recallgym.agents.exact_gradient import ExactGradient
from recallgym.agents.trackers import TensorBoardTracker, WandbTracker


def test_a_learners_curve_reaches_tensorboard(hidden_env, make_gate, tmp_path):
    tracker = TensorBoardTracker(tmp_path)
    learner = ExactGradient(steps=2 * 128, envs=16, batch=64, validate_every=2, validation_sessions=8)
    result = learner.fit(hidden_env, make_gate(hidden_env), seed=0, tracker=tracker)
    tracker.close()
    events = EventAccumulator(str(tmp_path)).Reload()
    assert [event.step for event in events.Scalars("objective")] == [128, 256]
    (point,) = events.Scalars("validation")
    assert point.value == pytest.approx(result.curve[0]["validation"])


def test_wandb_is_offline_without_a_key_and_finishes_each_run(monkeypatch, tmp_path):
    for name in ("WANDB_API_KEY", "WANDB_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for run in range(2):
        tracker = WandbTracker(tmp_path / f"run{run}", name=f"run{run}", config={"seed": run})
        tracker.log({"reward": 0.5}, step=1)
        tracker.close()
        assert len(list((tmp_path / f"run{run}").glob("wandb/offline-run-*/*.wandb"))) == 1
