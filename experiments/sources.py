"""Which code a trial's result depends on, as a digest: the modules that it imports, and nothing else.

A digest of the whole package would retrain everything when a table's layout changes. Imports are followed statically
from a few named modules through this package (and through the package of a third party's module), inside functions
too. Comments, docstrings and formatting do not count: a module enters as its syntax tree, unparsed.
"""

import ast
import hashlib
import importlib.util
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PACKAGE = __name__.partition(".")[0]  # recallgym


@cache
def source_digest(*modules: str) -> str:
    """Returns the digest of the named modules and of all that they import within their own packages.

    Args:
        modules: Full names, such as ``recallgym.agents.ppo``.

    Raises:
        ModuleNotFoundError: There is no such module.
    """
    digest = hashlib.sha256()
    for name in sorted(imported(modules)):
        digest.update(f"{name}\0{_code(name)}\0".encode())
    return digest.hexdigest()


def imported(modules: Iterable[str]) -> set[str]:
    """Returns the names of the modules and of all that they import within their own packages, transitively.

    The root package's ``__init__`` is left out: it holds the version and nothing that a trial could depend on. So are
    imports for type checkers only.
    """
    todo = [*modules]
    tops = {PACKAGE, *(_top(name) for name in todo)}
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        if name not in seen and name != PACKAGE:
            seen.add(name)
            todo += [parent for parent in _parents(name) if parent != PACKAGE]  # importing a module runs its packages
            todo += _imports(name, tops)
    return seen


def _imports(name: str, tops: set[str]) -> Iterator[str]:
    """Yields the modules under ``tops`` that a module imports; of ``from a import b``, a and, where a module, a.b."""
    path = _path(name)
    if path is None:
        return
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in _run(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _top(alias.name) in tops)
        elif isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            if _top(base) in tops:
                yield base
                yield from (full for alias in node.names if _is_module(full := f"{base}.{alias.name}"))


def _run(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes below ``node``, but those in ``if TYPE_CHECKING:``."""
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING"):
            yield child
            yield from _run(child)


@cache
def _code(name: str) -> str:
    path = _path(name)
    if path is None:
        return ""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


@cache
def _path(name: str) -> Path | None:
    """Source file of a module; None for a namespace package, which has none."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(f"no module named {name!r}", name=name)
    return Path(spec.origin) if spec.origin is not None else None


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # the parent is a module, not a package: ``name`` is something defined in it
        return False


def _top(name: str) -> str:
    return name.partition(".")[0]


def _parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:i]) for i in range(1, len(parts))]
