"""Builds the package ``recallgym`` from the repository root: ``envs/`` on disk is ``recallgym.envs``."""

import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
FOLDERS = ["backends", "policies", "envs", "agents", "experiments", "serving", "conf", "scripts"]


def package_names() -> list[str]:
    """Lists ``recallgym`` and every package below the folders that hold its code."""
    names = ["recallgym"]
    for folder in FOLDERS:
        names.append(f"recallgym.{folder}")
        names += [f"recallgym.{folder}.{name}" for name in find_packages(str(ROOT / folder))]
    return names


class RootOnlyInit(build_py):
    """Keeps ``setup.py`` and other loose files of the root out of the wheel."""

    def find_package_modules(self, package, package_dir):
        modules = super().find_package_modules(package, package_dir)
        return [m for m in modules if package != "recallgym" or m[1] == "__init__"]


class CleanWheel(bdist_wheel):
    """Removes a stale ``build/`` first, so that deleted modules never reach a wheel."""

    def run(self):
        shutil.rmtree(ROOT / "build", ignore_errors=True)
        super().run()


setup(
    package_dir={"recallgym": "."},
    packages=package_names(),
    include_package_data=False,
    package_data={
        "recallgym": ["py.typed"],
        "recallgym.conf": ["**/*.yaml"],
        "recallgym.envs.outcomes": ["tables/**/*.npy", "tables/**/*.json", "tables/**/*.md"],
    },
    cmdclass={"build_py": RootOnlyInit, "bdist_wheel": CleanWheel},
)
