"""The wheel holds the package, all of it, and nothing else; metadata agree with each other."""

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import recallgym

ROOT = Path(recallgym.__file__).parent
FOLDERS = ("agents", "backends", "conf", "envs", "experiments", "policies", "scripts", "serving")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
pytestmark = pytest.mark.xdist_group("wheel")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """The wheel of a copy of the tree that a stale build and stray files lie in."""
    source = tmp_path_factory.mktemp("source")
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("__init__.py", "py.typed", "setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    (source / "build/lib/recallgym").mkdir(parents=True)
    (source / "build/lib/recallgym/deleted.py").write_text("")
    (source / "stray.py").write_text("")
    (source / "conf" / "notes.txt").write_text("")
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet", "-w", str(out)]
    done = subprocess.run([*command, str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return next(out.glob("*.whl"))


@pytest.fixture(scope="session")
def contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def test_wheel_holds_every_module_and_every_data_file_and_nothing_else(contents):
    expected = {"recallgym/__init__.py", "recallgym/py.typed"}
    for folder in FOLDERS:
        expected |= {f"recallgym/{path.relative_to(ROOT)}" for path in (ROOT / folder).rglob("*.py")}
    expected |= {f"recallgym/{path.relative_to(ROOT)}" for path in (ROOT / "conf").rglob("*.yaml")}
    tables = (ROOT / "envs/outcomes/tables").rglob("*")
    expected |= {f"recallgym/{path.relative_to(ROOT)}" for path in tables if path.is_file()}
    assert contents == expected


def test_wheel_is_importable_on_its_own_and_composes_its_configuration(wheel, tmp_path):
    install = [sys.executable, "-m", "pip", "install", "--no-deps", "--quiet", "--target", str(tmp_path), str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    program = """
import recallgym
from hydra import compose, initialize_config_module
with initialize_config_module("recallgym.conf", version_base=None):
    config = compose("config", ["env.steps=3"])
print(recallgym.__file__, config.env.steps)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == [str(tmp_path / "recallgym/__init__.py"), "3"], done.stderr


def test_version_is_one():
    citation = (ROOT / "CITATION.cff").read_text()
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert PROJECT["version"] == recallgym.__version__
    assert f"\nversion: {recallgym.__version__}\n" in citation
    assert f"## {recallgym.__version__}" in changelog


def test_constraints_pin_a_version_within_the_bounds_of_every_requirement():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    pins = {name.lower().replace("_", "-"): Version(version) for name, version in pins.items()}
    extras = PROJECT["optional-dependencies"]
    required = PROJECT["dependencies"] + extras["train"] + extras["cpu"] + extras["dev"]
    for requirement in map(Requirement, required):
        if requirement.name != "setuptools":  # comes with every environment
            assert pins[requirement.name.lower()] in requirement.specifier, requirement


def test_the_bare_package_needs_neither_torch_nor_gymnasium():
    assert {Requirement(line).name for line in PROJECT["dependencies"]} == {"numpy", "onnxruntime"}
