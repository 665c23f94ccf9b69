"""``recallgym``: one table of commands, each in a module that is imported only when it is called."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import NoReturn

from .. import __version__
from .errors import UsageError, unknown

BAD_INPUT = 2
INTERRUPTED = 130  # as shells report SIGINT


@dataclass(frozen=True)
class Command:
    """One command: ``handler`` is "module:function" in this folder, called with a parser and the arguments."""

    summary: str
    example: str
    handler: str


COMMANDS = {
    "quickstart": Command(
        "the whole path once: train a gate, reproduce C4, compare, export, verify",
        "recallgym quickstart --out outputs/quickstart",
        "quickstart:quickstart",
    ),
    "train": Command(
        "train a policy, evaluate it, keep both in the trial store",
        "recallgym train env=causal_memory policy=gate agent=ppo seed=3",
        "train:train",
    ),
    "evaluate": Command(
        "evaluate a trained policy or a rule on held-out questions",
        "recallgym evaluate policy=keep_all agent=none evaluation.sessions=256",
        "train:evaluate",
    ),
    "sweep": Command(
        "run every combination of some overrides and seeds; run it again to resume",
        "recallgym sweep --seeds 5 env.mode=hard,soft,multiply run=ray",
        "sweep:sweep",
    ),
    "reproduce": Command(
        "reproduce an ablation table, by its name or its claim",
        "recallgym reproduce C4 --out docs/results",
        "reproduce:reproduce",
    ),
    "report": Command(
        "write one page over several tables, with the tests corrected over all of them",
        "recallgym report results/*.json --out results",
        "reproduce:report",
    ),
    "export": Command(
        "export a trained policy as a bundle",
        "recallgym export outputs/trials/0123456789abcdef --out bundle",
        "export:export",
    ),
    "verify": Command(
        "prove that a bundle is whole and decides as it did when it was exported",
        "recallgym verify bundle",
        "verify:verify",
    ),
    "outcomes build": Command(
        "build an outcome table with a reader; run it again to resume",
        "recallgym outcomes build --out tables/small outcomes.questions=20 --workers 2",
        "outcomes:build",
    ),
    "outcomes info": Command(
        "say what is in an outcome table",
        "recallgym outcomes info apidocs",
        "outcomes:info",
    ),
    "outcomes orders": Command(
        "say how much the order of the shown passages alone moves the outcome",
        "recallgym outcomes orders apidocs --questions 50",
        "outcomes:orders",
    ),
    "outcomes check": Command(
        "recompute a sample of an outcome table from the installed packages",
        "recallgym outcomes check apidocs --sample 5",
        "outcomes:check",
    ),
    "data list": Command(
        "list the public data sets that loaders read",
        "recallgym data list",
        "data:list_",
    ),
    "data fetch": Command(
        "download data sets from where they are published",
        "recallgym data fetch locomo ramdocs --to data",
        "data:fetch",
    ),
    "data check": Command(
        "check that a directory holds the published files",
        "recallgym data check data locomo",
        "data:check",
    ),
    "envs list": Command(
        "list the registered environments",
        "recallgym envs list",
        "envs:list_",
    ),
    "envs show": Command(
        "print an environment's documentation, spaces and observation layout",
        "recallgym envs show CausalMemory-v0",
        "envs:show",
    ),
    "doctor": Command(
        "say what is installed, what is missing and how to get it",
        "recallgym doctor",
        "doctor:doctor",
    ),
}


class Parser(argparse.ArgumentParser):
    """Reports bad arguments as every other bad input: on one line."""

    def error(self, message: str) -> NoReturn:
        """Raises instead of printing the usage."""
        raise UsageError(f"{message}; `{self.prog} --help` shows an example")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        argv: Arguments; those of the process by default.

    Returns:
        Exit code: 0, 1 where something was checked and failed, 2 on bad input, 130 when interrupted.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # bars of a second each, beside our own
    debug = "--debug" in arguments
    if debug:
        arguments.remove("--debug")
    try:
        return _dispatch(arguments)
    except BrokenPipeError:  # the reader of our output left, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError) as error:  # every error of ours that names a bad input is a ValueError
        if debug:
            raise
        print(f"recallgym: {_one_line(error)}", file=sys.stderr)
        return BAD_INPUT
    except ModuleNotFoundError as error:
        if debug or error.name is None or error.name.startswith("recallgym"):
            raise
        print(f"recallgym: this needs {error.name}; pip install 'recallgym[train,cpu]'", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("recallgym: interrupted; the same command takes up where it stopped", file=sys.stderr)
        return INTERRUPTED


def _dispatch(arguments: list[str]) -> int:
    if arguments == ["--version"]:
        print(__version__)
        return 0
    for words in (2, 1):
        name = " ".join(arguments[:words])
        if name in COMMANDS:
            return _run(name, COMMANDS[name], arguments[words:])
    head = arguments[0] if arguments else "--help"
    group = {name: command for name, command in COMMANDS.items() if name.startswith(f"{head} ")}
    if head in ("-h", "--help") or (group and arguments[1:] in ([], ["-h"], ["--help"])):
        print(_overview(group or COMMANDS))
        return 0
    if group:
        raise unknown("command", " ".join(arguments[:2]), group)
    raise unknown("command", head, COMMANDS)


def _run(name: str, command: Command, arguments: list[str]) -> int:
    parser = Parser(
        prog=f"recallgym {name}",
        description=f"{command.summary[0].upper()}{command.summary[1:]}.",
        epilog=f"example:\n  {command.example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    module, _, function = command.handler.partition(":")
    handler = getattr(import_module(f".{module}", __package__), function)
    return int(handler(parser, arguments))


def _overview(commands: Mapping[str, Command]) -> str:
    width = max(map(len, commands))
    lines = [f"  {name:<{width}}  {command.summary}" for name, command in commands.items()]
    example = next(iter(commands.values())).example
    return "\n".join(
        [
            "usage: recallgym COMMAND ...",
            "",
            *lines,
            "",
            "example:",
            f"  {example}",
            "",
            "`recallgym COMMAND --help` shows a command's options and an example.",
            "Settings are Hydra overrides (env.steps=4, policy=gate); --config-dir adds your own configuration.",
        ]
    )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
