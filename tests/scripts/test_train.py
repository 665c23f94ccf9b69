"""``train``, ``evaluate``, ``sweep``, ``export`` and ``verify`` on the toy table, through the command line."""

import json
import re
import shutil
from pathlib import Path

import pytest
import torch

from recallgym.experiments.compose import ConfigError
from recallgym.scripts.cli import main
from recallgym.scripts.sweep import expand

SMALL = ["env.table=toy", "agent=exact_gradient", "agent.steps=2048", "agent.envs=64", "evaluation.sessions=32"]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with one trained, evaluated policy."""
    folder = tmp_path_factory.mktemp("trained")
    assert main(["train", *SMALL, f"run.dir={folder}"]) == 0
    return folder


def trials(folder):
    return sorted((folder / "trials").iterdir())


def test_train_stores_one_fit_and_one_trial(trained):
    assert len(list((trained / "fits").iterdir())) == len(trials(trained)) == 1
    assert not list((trained / "checkpoints").iterdir())


def test_training_again_reuses_what_is_stored(trained, capsys):
    before = {path: path.stat().st_mtime_ns for path in trained.rglob("*") if path.is_file()}
    assert main(["train", *SMALL, f"run.dir={trained}"]) == 0
    assert "already trained" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in trained.rglob("*") if path.is_file()} == before


def test_train_says_what_the_gate_knows_of_the_memories(trained, capsys):
    assert main(["train", *SMALL, f"run.dir={trained}"]) == 0
    said = capsys.readouterr().out
    assert re.search(
        r"guard: another pool changes the keep-bits of 0% of queries; they tell 0\.000 nats .* no alarm", said
    )


def test_evaluate_takes_the_trained_policy_to_other_sessions(trained, tmp_path, capsys):
    shutil.copytree(trained, tmp_path / "store")
    arguments = [*SMALL, f"run.dir={tmp_path / 'store'}", "evaluation.seed=7"]
    assert main(["evaluate", *arguments]) == 0
    out = capsys.readouterr().out
    assert re.search(r"regret +-?\d\.\d{3} \[", out)
    assert re.search(r"cost: training 2,048 environment steps in .* reader calls 0\n", out)
    assert len(trials(tmp_path / "store")) == 2
    assert len(list((tmp_path / "store" / "fits").iterdir())) == 1


def test_evaluate_refuses_what_is_not_trained(trained, tmp_path, capsys):
    assert main(["evaluate", *SMALL, "seed=9", f"run.dir={trained}"]) == 2
    assert "recallgym train" in capsys.readouterr().err


def test_evaluate_of_a_rule_needs_no_training(tmp_path, capsys):
    setting = ["env.table=toy", "env.token_budget=null", "evaluation.sessions=32", f"run.dir={tmp_path}"]
    assert main(["evaluate", *setting, "policy=keep_all", "agent=none"]) == 0
    assert re.search(r"^utility +0\.000 \[0\.000, 0\.000\]$", capsys.readouterr().out, re.MULTILINE)


def test_a_third_partys_policy_enters_by_its_target(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.py").write_text(
        "from recallgym.policies.rules import Constant\n\n\n"
        "class FirstTwo(Constant):\n"
        "    def __init__(self, *, pool, **kwargs):\n"
        "        super().__init__([1, 1] + [0] * (pool - 2) + [1], pool=pool, **kwargs)\n"
    )
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "mine.yaml").write_text("_target_: mine.FirstTwo\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    arguments = ["env.table=toy", "policy=mine", "agent=none", "evaluation.sessions=8", f"run.dir={tmp_path / 'out'}"]
    assert main(["evaluate", *arguments, "--config-dir", str(tmp_path)]) == 0
    assert re.search(r"rejection +0\.667", capsys.readouterr().out)


def test_export_makes_a_bundle_that_verify_accepts(trained, tmp_path, capsys):
    (trial,) = trials(trained)
    bundle = tmp_path / "bundle"
    assert main(["export", str(trial), "--out", str(bundle)]) == 0
    manifest = json.loads((bundle / "bundle.json").read_text())
    assert manifest["configuration"]["agent"]["steps"] == 2048
    assert manifest["identity"]["table"]
    assert {"regret", "net_utility"} <= {figure["name"] for figure in manifest["metrics"]}
    assert manifest["parity"]["rows"]["recorded"] == 64
    assert main(["verify", str(bundle)]) == 0
    assert "verified" in capsys.readouterr().out
    assert main(["export", str(trial), "--out", str(bundle)]) == 2
    assert main(["export", str(trial), "--out", str(bundle), "--replace"]) == 0


def test_verify_refuses_an_altered_bundle(trained, tmp_path, capsys):
    (trial,) = trials(trained)
    bundle = tmp_path / "bundle"
    main(["export", str(trial), "--out", str(bundle)])
    weights = bytearray((bundle / "policy.onnx").read_bytes())
    weights[len(weights) // 2] ^= 1
    (bundle / "policy.onnx").write_bytes(weights)
    assert main(["verify", str(bundle)]) == 1
    out = capsys.readouterr().out
    assert "policy.onnx" in out
    assert "REFUSED" in out


def test_sweep_prints_a_line_a_combination_and_resumes(tmp_path, capsys):
    arguments = [*SMALL, "agent.steps=512", "env.mode=hard,soft", "--seeds", "2", f"run.dir={tmp_path}"]
    assert main(["sweep", *arguments]) == 0
    first = capsys.readouterr().out
    assert re.search(r"^env.mode=hard .*\nenv.mode=soft ", first, re.MULTILINE)
    assert len(trials(tmp_path)) == 4
    shutil.rmtree(trials(tmp_path)[0])
    assert main(["sweep", *arguments]) == 0
    assert capsys.readouterr().out == first
    assert len(trials(tmp_path)) == 4


def test_a_sweep_is_the_product_of_what_varies():
    shared, varied = expand(["seed=1", "env.mode=hard,soft", "agent.gamma=choice(0,1)", "env.observe=[query,budget]"])
    assert shared == ["seed=1", "env.observe=[query,budget]"]
    assert varied == [
        ("env.mode=hard", "agent.gamma=0"),
        ("env.mode=hard", "agent.gamma=1"),
        ("env.mode=soft", "agent.gamma=0"),
        ("env.mode=soft", "agent.gamma=1"),
    ]
    assert expand(["seed=1"]) == (["seed=1"], [()])
    with pytest.raises(ConfigError):
        expand(["env.mode=hard,"])


def test_nothing_is_written_beside_the_store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ["env.table=toy", "policy=keep_all", "agent=none", "evaluation.sessions=8", "run.dir=store"]
    assert main(["evaluate", *arguments]) == 0
    assert [path.name for path in Path().iterdir()] == ["store"]
