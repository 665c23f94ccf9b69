"""Configurations: composed with Hydra from ``recallgym.conf`` and, where given, a directory of the user's own.

Whatever is wrong with a configuration is raised as one :class:`ConfigError` of one line, which names what was given and
the nearest valid names, so that the command line can print it and exit.
"""

import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_module
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import ConfigCompositionException, HydraException, InstantiationException, MissingConfigException
from hydra.utils import get_object, instantiate
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from .. import conf
from .names import nearest

CONFIG_MODULE = conf.__name__
VERSION_BASE = "1.3"


class ConfigError(ValueError):
    """A configuration that cannot be composed or built. The message is one line."""


def compose_config(overrides: Sequence[str] = (), config_dir: str | Path | None = None) -> DictConfig:
    """Composes a configuration.

    Args:
        overrides: Hydra overrides, such as ``env=causal_memory`` or ``agent.gamma=0``.
        config_dir: A directory with further groups and options; it is searched after the package's own.

    Returns:
        The configuration, with interpolations not yet resolved.

    Raises:
        ConfigError: An override is malformed, or names an unknown group, option or key.
    """
    try:
        return _compose(overrides, config_dir)
    except MissingConfigException as error:
        raise ConfigError(_missing_option(error)) from None
    except ConfigCompositionException as error:
        raise ConfigError(_unknown_key(str(error), overrides, config_dir)) from None
    except HydraException as error:
        raise ConfigError(_first_line(error)) from None
    except OmegaConfBaseException as error:
        raise ConfigError(located(error)) from None
    except yaml.YAMLError as error:
        raise ConfigError(malformed(error)) from None


def options(group: str, config_dir: str | Path | None = None) -> list[str]:
    """Returns the names of a group's options, such as those of ``ablation``, in the package and ``config_dir``."""
    return sorted({file.stem for file in option_files(group, config_dir)})


def option_files(group: str, config_dir: str | Path | None = None) -> Iterator[Path]:
    """Yields the files of a group's options; a user's file comes before the package's of the same name."""
    roots = [*([Path(config_dir)] if config_dir is not None else []), Path(conf.__path__[0])]
    for root in roots:
        yield from sorted((root / group).glob("*.yaml"))


def resolved(config: DictConfig) -> dict[str, Any]:
    """Returns a configuration as plain data, with its interpolations resolved.

    Raises:
        ConfigError: A value is missing or an interpolation leads nowhere.
    """
    try:
        data = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise ConfigError(located(error)) from None
    if not isinstance(data, dict):
        raise ConfigError(f"expected a mapping, got {type(data).__name__}")
    return {str(key): value for key, value in data.items()}


def keys_of(config: DictConfig) -> set[str]:
    """Returns the dotted name of everything in a configuration: what an override may name."""
    return set(_keys(OmegaConf.to_container(config)))


def build(config: dict[str, Any], **arguments: Any) -> Any:
    """Calls the ``_target_`` of a configuration with the rest of it, and with ``arguments``.

    Raises:
        ConfigError: There is no such target, or it refuses its arguments.
    """
    if "_target_" not in config:
        raise ConfigError(f"expected a `_target_` naming a class, got only {', '.join(config) or 'nothing'}")
    try:
        return instantiate(config, _convert_="all", **arguments)
    except InstantiationException as error:
        raise ConfigError(_refused(config, error)) from None


def _compose(overrides: Sequence[str], config_dir: str | Path | None) -> DictConfig:
    extra = []
    if config_dir is not None:
        if not Path(config_dir).is_dir():
            raise ConfigError(f"--config-dir {config_dir}: no such directory")
        extra = [f"hydra.searchpath=['file://{Path(config_dir).resolve()}']"]
    GlobalHydra.instance().clear()
    with initialize_config_module(CONFIG_MODULE, version_base=VERSION_BASE):
        return compose("config", overrides=[*extra, *overrides])


def _missing_option(error: MissingConfigException) -> str:
    group, _, option = str(error.missing_cfg_file or "").rpartition("/")
    return f"unknown {group or 'config'} {option!r}; {nearest(option, error.options or [])}"


def _unknown_key(message: str, overrides: Sequence[str], config_dir: str | Path | None) -> str:
    found = re.search(r"override '([^']+)'|'([^']+)' does not exist", message)
    if not found:
        return message.splitlines()[0]
    key = found.group(1) or found.group(2)
    others = [o for o in overrides if o.lstrip("+~").partition("=")[0] != key]
    return f"unknown override {key!r}; {nearest(key, keys_of(_compose(others, config_dir)))}"


def _keys(config: Any, prefix: str = "") -> Iterator[str]:
    """Yields the dotted name of everything in plain data."""
    if isinstance(config, dict):
        for key, value in config.items():
            yield f"{prefix}{key}"
            yield from _keys(value, f"{prefix}{key}.")


def _refused(config: dict[str, Any], error: InstantiationException) -> str:
    target = config["_target_"]
    cause = error.__cause__ or error
    if isinstance(cause, ImportError | AttributeError):
        return f"no such target {target!r}: {_first_line(cause)}"
    unexpected = re.search(r"unexpected keyword argument '(\w+)'", str(cause))
    if unexpected:
        takes = [name for name in inspect.signature(get_object(target)).parameters if name != "self"]
        return f"{target} has no option {unexpected.group(1)!r}; {nearest(unexpected.group(1), takes)}"
    return f"{target}: {_first_line(cause)}"


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


def located(error: OmegaConfBaseException) -> str:
    """Returns the first line of an error in a configuration, with the key that it is about."""
    where = f"{error.full_key}: " if error.full_key else ""
    return f"{where}{_first_line(error)}"


def malformed(error: yaml.YAMLError) -> str:
    """Returns what is wrong with a YAML file, and where, in one line."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"{mark.name}, line {mark.line + 1}: not valid YAML: {error.problem}"
    return f"not valid YAML: {_first_line(error)}"
