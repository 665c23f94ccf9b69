"""``recallgym envs``: the registered environments, as Gymnasium knows them."""

import argparse
import inspect
from importlib import import_module
from typing import TYPE_CHECKING

from .errors import unknown

if TYPE_CHECKING:
    from gymnasium.envs.registration import EnvSpec

NAMESPACE = "recallgym"


def list_(parser: argparse.ArgumentParser, arguments: list[str]) -> int:
    """Prints the name and the first line of the documentation of every environment of ours."""
    parser.parse_args(arguments)
    for name, spec in _registered().items():
        print(f"{name}\n  {_documentation(spec).splitlines()[0]}")
        print(f'  gymnasium.make("recallgym.envs:{spec.id}")')
    return 0


def show(parser: argparse.ArgumentParser, arguments: list[str]) -> int:
    """Prints an environment's documentation, its spaces and what each part of an observation is."""
    parser.add_argument("name", metavar="NAME", help="as `recallgym envs list` prints it")
    name = parser.parse_args(arguments).name
    environments = _registered()
    short = name.removeprefix(f"{NAMESPACE}/")
    if short not in environments:
        raise unknown("environment", name, environments)
    spec = environments[short]
    print(f"{spec.id}\n\n{_documentation(spec)}")
    env = spec.make(disable_env_checker=True)
    print(f"\naction space       {env.action_space}")
    space = env.observation_space
    print(f"observation space  {type(space).__name__}{space.shape} {space.dtype}, bounded as follows\n")
    layout = env.get_wrapper_attr("config").layout()
    print(f"{'block':<10} {'entries':>7}  {'indices':<11} bounds")
    for block, size in layout.blocks:
        part = layout.slice(block)
        low, high = layout.low[part].min(), layout.high[part].max()
        print(f"{block:<10} {size:>7}  {f'{part.start}..{part.stop - 1}':<11} [{low:g}, {high:g}]")
    return 0


def _registered() -> "dict[str, EnvSpec]":
    import gymnasium

    import_module("..envs", __package__)  # registers them
    ours = [spec for spec in gymnasium.registry.values() if spec.namespace == NAMESPACE]
    return {f"{spec.name}-v{spec.version}": spec for spec in ours}


def _documentation(spec: "EnvSpec") -> str:
    from gymnasium.envs.registration import load_env_creator

    return inspect.getdoc(load_env_creator(str(spec.entry_point))) or "(undocumented)"
