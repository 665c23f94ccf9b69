"""``recallgym envs``."""

import subprocess
import sys
from pathlib import Path

from recallgym.scripts.cli import main


def test_list_names_every_environment_with_its_first_line():
    command = Path(sys.executable).with_name("recallgym")  # in a process where nothing is registered yet
    done = subprocess.run([command, "envs", "list"], capture_output=True, text=True, check=True)
    name, summary, make = done.stdout.splitlines()[:3]
    assert name == "CausalMemory-v0"
    assert summary.strip().endswith(".")
    assert make.strip() == 'gymnasium.make("recallgym.envs:recallgym/CausalMemory-v0")'


def test_show_prints_documentation_spaces_and_layout(capsys):
    for name in ("CausalMemory-v0", "recallgym/CausalMemory-v0"):
        assert main(["envs", "show", name]) == 0
        out = capsys.readouterr().out
        assert out.startswith("recallgym/CausalMemory-v0\n\n")
        assert "action space       MultiBinary(7)" in out
        assert "observation space  Box(388,) float32" in out
        for line in ("query          384  0..383 ", "feedback         2  384..385 ", "budget           2  386..387 "):
            assert line in out
