"""One copy of every class, light imports, and the layers of the house."""

import subprocess
import sys
from pathlib import Path

import pytest

import recallgym

ROOT = Path(recallgym.__file__).parent
FOLDERS = ("agents", "backends", "conf", "envs", "experiments", "policies", "scripts", "serving")
HEAVY = {"torch", "transformers", "gymnasium", "ray", "hydra", "faiss", "matplotlib", "stable_baselines3", "numpy"}


def run(program, cwd=ROOT):
    return subprocess.run([sys.executable, "-c", program], cwd=cwd, capture_output=True, text=True, check=False)


def loaded_by(module, cwd):
    done = run(f"import sys, {module}; print(*sys.modules)", cwd)
    assert done.returncode == 0, done.stderr
    return HEAVY & set(done.stdout.split())


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_bare_import_from_the_repository_fails(folder):
    done = run(f"import {folder}")
    assert "ImportError: attempted relative import beyond top-level package" in done.stderr


def test_every_folder_with_code_is_listed_here():
    found = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert found == set(FOLDERS)


def test_importing_the_package_brings_nothing_heavy(tmp_path):
    assert loaded_by("recallgym", tmp_path) == set()


def test_importing_the_package_prints_nothing_and_writes_nothing(tmp_path):
    done = run("import recallgym", tmp_path)
    assert (done.stdout, done.stderr, list(tmp_path.iterdir())) == ("", "", [])


@pytest.mark.parametrize(
    ("module", "allowed"),
    [
        ("recallgym.scripts.cli", set()),
        ("recallgym.policies", set()),
        ("recallgym.agents", set()),
        ("recallgym.experiments", set()),
        ("recallgym.serving", {"numpy"}),
        ("recallgym.backends", set()),
        ("recallgym.envs", {"numpy", "gymnasium"}),
    ],
)
def test_packages_import_lightly(module, allowed, tmp_path):
    assert loaded_by(module, tmp_path) <= allowed


@pytest.mark.parametrize("module", ["recallgym.serving.bundle", "recallgym.serving.runtime"])
def test_serving_runs_where_only_numpy_and_onnxruntime_are_installed(module, tmp_path):
    blocked = sorted(HEAVY - {"numpy"})
    done = run(f"import sys; sys.modules.update(dict.fromkeys({blocked})); import {module}", tmp_path)
    assert done.returncode == 0, done.stderr


def test_layers_hold():
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
