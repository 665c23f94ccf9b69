import sys
from pathlib import Path

import pytest

from recallgym.experiments import sources


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package whose modules a test writes; the caches forget it between the writes."""
    root = tmp_path / "thirdparty"
    root.mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(**modules: str) -> None:
        for name, text in {"__init__": "", **modules}.items():
            (root / f"{name}.py").write_text(text)
        for cached in (sources.source_digest, sources._code, sources._path):
            cached.cache_clear()
        for name in [name for name in sys.modules if name.startswith("thirdparty")]:
            del sys.modules[name]

    return write


def test_imports_are_followed_through_functions_and_relative_names(package):
    package(a="def f():\n    from . import b\n", b="from .c import thing\n", c="thing = 1\n", d="x = 1\n")
    assert sources.imported(["thirdparty.a"]) == {"thirdparty", "thirdparty.a", "thirdparty.b", "thirdparty.c"}


def test_imports_for_type_checkers_do_not_count(package):
    package(a="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .b import x\n", b="x = 1\n")
    assert "thirdparty.b" not in sources.imported(["thirdparty.a"])


def test_an_edit_of_an_imported_module_changes_the_digest_and_one_elsewhere_does_not(package):
    package(a="from .b import x\n", b="x = 1\n", c="x = 1\n")
    before = sources.source_digest("thirdparty.a")
    package(a="from .b import x\n", b="x = 1\n", c="x = 2\n")
    assert sources.source_digest("thirdparty.a") == before
    package(a="from .b import x\n", b="x = 2\n", c="x = 2\n")
    assert sources.source_digest("thirdparty.a") != before


def test_comments_docstrings_and_formatting_do_not_count(package):
    package(a='"""One."""\ndef f(x):\n    """Two."""\n    return x+1  # three\n')
    before = sources.source_digest("thirdparty.a")
    package(a="def f(x):\n\n    return (x + 1)\n")
    assert sources.source_digest("thirdparty.a") == before


def test_this_package_is_followed_beside_a_third_partys(package):
    package(a="import numpy\nfrom recallgym.backends.interventions.sets import reading_sets\n")
    names = sources.imported(["thirdparty.a"])
    assert "recallgym.backends.interventions.sets" in names
    assert not {"numpy", "recallgym"} & names


def test_nothing_that_only_reports_is_part_of_a_trial():
    names = sources.imported(["recallgym.experiments.trial"])
    assert "recallgym.experiments.trial" in names
    assert not {f"recallgym.experiments.{name}" for name in ("tables", "figures", "verdicts", "runner")} & names


def test_a_missing_module_is_an_error():
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        sources.source_digest("nowhere.to.be.found")


def test_every_module_named_lies_in_the_package_root():
    root = Path(sources.__file__).resolve().parents[1]
    path = sources._path("recallgym.experiments.sources")
    assert path is not None
    assert path.resolve().is_relative_to(root)
