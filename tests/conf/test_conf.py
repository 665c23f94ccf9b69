"""Every configuration composes, builds what it names, and repeats the defaults of the code that it configures."""

import inspect
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path

import pytest
from hydra.utils import get_object

import recallgym
from recallgym.envs.causal_memory.config import CausalMemoryConfig
from recallgym.experiments.compose import build, compose_config, option_files, resolved

CONF = Path(recallgym.__file__).parent / "conf"
FILES = sorted(CONF.rglob("*.yaml"))


def names(group):
    return [file.stem for file in option_files(group)]


def composed(group, name):
    return resolved(compose_config([f"{group}={name}"]))[group]


VARIANTS = {"apidocs_attribution"}  # options that are there to say something else than the defaults


def defaults(target):
    """Default of every option of a class, from its dataclass fields or its constructor."""
    if is_dataclass(target):
        made = {f.name: f.default_factory() for f in fields(target) if f.default_factory is not MISSING}
        return made | {f.name: f.default for f in fields(target) if f.default is not MISSING}
    parameters = [p for cls in target.__mro__ for p in inspect.signature(cls.__init__).parameters.values()]
    return {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}


def plain(value):
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return list(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(CONF)))
def test_every_file_opens_with_the_command_that_uses_it(file):
    first = file.read_text(encoding="utf-8").splitlines()
    assert first[0].startswith("# ")
    assert any(line.startswith("#") and "recallgym " in line for line in first[:3])


@pytest.mark.parametrize(
    ("group", "name"), [(group, name) for group in ("env", "policy", "agent", "outcomes") for name in names(group)]
)
def test_options_are_those_of_the_code_with_its_defaults(group, name):
    config = composed(group, name)
    target = get_object(config.pop("_target_"))
    expected = {key: plain(value) for key, value in defaults(target).items()}
    given = {"blocks", "pool", "budget", "bank_size"} if group == "policy" else set()  # by the environment
    expected = {key: value for key, value in expected.items() if key not in given}
    if name in VARIANTS:
        assert config.keys() == expected.keys()
        assert config != expected
    else:
        assert config == expected


@pytest.mark.parametrize("name", names("env"))
def test_every_environment_builds(name):
    config = build({**composed("env", name), "table": "toy"})
    assert isinstance(config, CausalMemoryConfig)
    assert config.make_vector(2).num_envs == 2


@pytest.mark.parametrize("name", names("policy"))
def test_every_policy_builds(name):
    policy = build(composed("policy", name), blocks=(("query", 8), ("budget", 2)), pool=6, budget=3, bank_size=10)
    assert policy.pool == 6


@pytest.mark.parametrize("name", names("agent"))
def test_every_agent_builds(name):
    assert callable(build(composed("agent", name)).fit)


def test_the_defaults_compose_and_resolve():
    config = resolved(compose_config())
    assert {"env", "policy", "agent", "run", "tracker", "seed", "evaluation"} <= set(config)
    assert config["policy"]["seed"] == config["seed"]


def test_trackers_build_and_show_what_is_trained(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "disabled")
    for name in names("tracker"):
        config = resolved(compose_config([f"tracker={name}", f"run.dir={tmp_path}"]))["tracker"]
        if config["_target_"]:
            tracker = build(config)
            tracker.log({"reward": 0.5}, 1)
            tracker.close()
    assert list((tmp_path / "tensorboard").glob("events.*"))


@pytest.mark.parametrize("name", names("run"))
def test_every_way_to_run_says_where_and_how(name):
    assert set(composed("run", name)) == {"dir", "backend", "workers", "address"}
