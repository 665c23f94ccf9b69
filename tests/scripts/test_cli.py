"""The command line: every command has help with an example, and bad input is one line and exit code 2."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import recallgym
from recallgym.scripts.cli import BAD_INPUT, COMMANDS, main

ROOT = Path(recallgym.__file__).parent


def run(capsys, *arguments):
    code = main(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def refused(capsys, *arguments):
    """The one line that bad input leaves on stderr, after checking that it is one."""
    code, _, error = run(capsys, *arguments)
    assert code == BAD_INPUT
    assert error.startswith("recallgym: ")
    assert error.count("\n") == 1, error
    return error


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_of_itself(name, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([*name.split(), "--help"])
    assert stopped.value.code == 0
    text = capsys.readouterr().out
    assert f"example:\n  recallgym {name}" in text


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_refuses_an_unknown_option_on_one_line(name, capsys):
    assert f"`recallgym {name} --help`" in refused(capsys, *name.split(), "--nonsense")


def test_the_overview_lists_every_command(capsys):
    for arguments in ([], ["--help"], ["-h"]):
        code, out, _ = run(capsys, *arguments)
        assert code == 0
        assert all(f"  {name} " in out for name in COMMANDS)


def test_a_group_lists_its_commands(capsys):
    code, out, _ = run(capsys, "outcomes")
    assert code == 0
    assert [line.split()[1] for line in out.splitlines() if line.startswith("  outcomes ")] == [
        "build",
        "info",
        "orders",
        "check",
    ]


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (["trian"], "train"),
        (["outcomes", "biuld"], "outcomes build"),
        (["envs", "show", "CausalMemroy-v0"], "CausalMemory-v0"),
        (["data", "fetch", "locom"], "locomo"),
        (["data", "check", "nowhere", "ramdoc"], "ramdocs"),
        (["reproduce", "C44"], "C4"),
        (["train", "env=causal_memori"], "causal_memory"),
        (["train", "policy=gait"], "gate"),
        (["train", "agent=pppo"], "ppo"),
        (["train", "env.stepz=3"], "env.steps"),
        (["train", "sead=3"], "seed"),
        (["train", "+env.stepz=3"], "steps"),
    ],
)
def test_an_unknown_name_gets_the_nearest_valid_ones(arguments, near, capsys):
    error = refused(capsys, *arguments)
    assert near in error.partition(";")[2] or near in error.partition("did you mean")[2]


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "env.mode=harsh"],
        ["train", "env.table=nowhere/at/all"],
        ["train", "--config-dir", "nowhere"],
        ["train", "env._target_=nowhere.Config"],
        ["verify", "nowhere"],
        ["export", "nowhere", "--out", "bundle"],
        ["report", "nowhere.json"],
        ["outcomes", "info", "nowhere"],
        ["outcomes", "check", "nowhere"],
    ],
)
def test_bad_input_names_what_was_given(arguments, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert re.search("nowhere|harsh", refused(capsys, *arguments))
    assert not list(tmp_path.rglob("*.json"))


def test_debug_shows_the_traceback():
    with pytest.raises(ValueError, match="unknown command"):
        main(["--debug", "trian"])


def test_the_installed_command_answers():
    command = Path(sys.executable).with_name("recallgym")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == recallgym.__version__


def test_a_reader_that_leaves_early_is_no_error():
    command = Path(sys.executable).with_name("recallgym")
    program = f"{command} data list | head -1"
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""


DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "conf").rglob("*.yaml"),
]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_name_commands_that_exist(path):
    text = path.read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for words in re.findall(r"(?:`|^|# +)recallgym ([a-z]+(?: [a-z]+)?)\b", text, re.MULTILINE):
        assert words in COMMANDS or words.split()[0] in COMMANDS, words
    for target in re.findall(r"(?:`|^)make ([a-z-]+)", text, re.MULTILINE):
        assert target in targets, target
