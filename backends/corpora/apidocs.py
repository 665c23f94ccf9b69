"""The corpus *apidocs*: documentation of the installed Python packages, cut into passages, with exact questions.

Source files are parsed, never imported, so extraction has no side effects and depends on package versions alone.
Three question families ask for the default of a parameter, its documented type, and the version in which something
was added; each answer stands literally in its gold passages. See docs/data/apidocs.md for the dataset card.
"""

import ast
import hashlib
import importlib.metadata
import importlib.util
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from . import docstrings
from .records import Document, Question

# Packages that share authors, idioms and text stand in one family, so that a split by family separates all three.
FAMILIES: dict[str, tuple[str, ...]] = {
    "numpy": ("numpy",),
    "scipy": ("scipy",),
    "scikit-learn": ("sklearn", "joblib"),
    "pandas": ("pandas",),
    "matplotlib": ("matplotlib",),
    "networkx": ("networkx",),
    "sympy": ("sympy", "mpmath"),
    "torch": ("torch",),
    "hugging face": (
        "transformers",
        "trl",
        "peft",
        "accelerate",
        "datasets",
        "huggingface_hub",
        "sentence_transformers",
    ),
    "farama": ("gymnasium", "stable_baselines3"),
    "ray": ("ray",),
    "wandb": ("wandb",),
    "pydantic": ("pydantic",),
    "http": ("requests", "urllib3", "httpx", "httpcore", "anyio"),
    "console": ("click", "typer", "rich", "tqdm"),
    "pallets": ("jinja2", "werkzeug"),
    "imaging": ("PIL", "fontTools"),
    "arrow": ("pyarrow", "fsspec"),
}
DISTRIBUTIONS = {"sklearn": "scikit-learn", "PIL": "pillow", "sentence_transformers": "sentence-transformers"}

_SKIPPED = re.compile(
    r"(^|\.)(tests?|testing|conftest|_?vendor(ed)?|externals?|compat|benchmarks?|examples?|_internal|_dynamo|_inductor|"
    r"_refs|_prims\w*|_decomp|legacy|deprecated|cli|proto|protobuf|generated?|setup|_pyinstaller|thirdparty_files|rllib)(\.|$)"
    r"|^transformers\.models|^transformers\.integrations|^torch\.(ao|fx|distributed|onnx|utils|jit|package|backends)\."
)
_DEFAULT = re.compile(r"\bdefaults?(?:\s+(?:is|to|value is|value))?\s*[:=]?\s*[(`'\"*]*(?P<value>-?[\w.+\-]+)", re.I)
_LITERAL = re.compile(r"^(?:True|False|None|-?\d[\w.+\-]*)$")
_CHANGED = re.compile(r"\bchanged?\s+from\s+[`'\"]*(?P<old>-?[\w.+\-]+?)[`'\"]*\s+to\b")
_SIMPLE_TYPE = re.compile(r"^[A-Za-z_][\w.\-]*(?: of [A-Za-z_]\w*)?(?: or [A-Za-z_]\w*)?$")
MAX_CHARS = 160  # about 30 tokens of the default reader on average, and almost never more than 64


class Statement(NamedTuple):
    """What a passage says that can answer a question: (kind, parameter or "", value)."""

    kind: str
    parameter: str
    value: str


@dataclass(frozen=True, eq=False)
class Corpus:
    """Documents, the questions about them and what each document states.

    Attributes:
        documents: All passages, in a fixed order.
        questions: All questions that can be asked exactly.
        statements: Document id to its statements: about the object that it documents.
        outdated: Document id to statements that its text marks as no longer true.
    """

    documents: tuple[Document, ...]
    questions: tuple[Question, ...]
    statements: dict[str, tuple[Statement, ...]]
    outdated: dict[str, tuple[Statement, ...]]

    @cached_property
    def by_id(self) -> dict[str, Document]:
        """Documents by id."""
        return {d.id: d for d in self.documents}

    @cached_property
    def fingerprint(self) -> str:
        """Digest of every passage, question and package version."""
        digest = hashlib.sha256()
        for d in self.documents:
            digest.update(f"{d.id}\0{d.version}\0{d.sha256}\n".encode("utf-8", "surrogatepass"))
        for q in self.questions:
            digest.update(f"{q.id}\0{q.text}\0{q.answer}\0{q.gold}\n".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def relation(self, question: Question, document_id: str) -> str:
        """Types a passage by what it states about a question's answer.

        Returns:
            ``gold`` (states it for the asked object), ``stale`` (states a former value for it), ``equivalent`` (states
            the same value for a parameter of the same name elsewhere), ``contradicting`` (states another value for it)
            or ``silent``.
        """
        if document_id in question.gold:
            return "gold"
        asked = (question.kind, question.parameter)
        same_object = self.by_id[document_id].object == question.object
        if same_object and any(s[:2] == asked for s in self.outdated.get(document_id, ())):
            return "stale"
        values = {
            s.value
            for s in self.statements.get(document_id, ())
            if s[:2] == asked or (question.kind == "version" and s.kind == "version" and same_object)
        }
        if not values:
            return "silent"
        return "equivalent" if question.answer in values else "contradicting"


def installed_version(package: str) -> str | None:
    """Returns the version of the distribution that provides an importable package, or None where it is absent."""
    try:
        return importlib.metadata.version(DISTRIBUTIONS.get(package, package))
    except importlib.metadata.PackageNotFoundError:
        return None


def load_apidocs(
    packages: Sequence[str] | None = None, *, max_objects: int = 150, max_chars: int = MAX_CHARS
) -> Corpus:
    """Extracts the corpus from the installed packages.

    Args:
        packages: Import names to read; all of ``FAMILIES`` by default. Absent packages are left out.
        max_objects: Most documented objects of a package. Whole modules are taken, in an order drawn from a digest of
            their names, so that siblings stay together.
        max_chars: Longest passage, in characters.

    Returns:
        The corpus, in an order that depends on the packages' content alone.
    """
    known = {p: f for f, members in FAMILIES.items() for p in members}
    unknown = sorted(set(packages or ()) - set(known))
    if unknown:
        raise ValueError(f"unknown packages {unknown}; apidocs reads {', '.join(sorted(known))}")
    documents: dict[str, Document] = {}
    statements: dict[str, tuple[Statement, ...]] = {}
    outdated: dict[str, tuple[Statement, ...]] = {}
    questions: dict[str, Question] = {}
    for package in packages or known:
        version = installed_version(package)
        if version is None:
            continue
        for item in _chosen(package, max_objects):
            passages = list(_passages(item, known[package], package, version, max_chars))
            for document, states, former in passages:
                documents[document.id] = document
                statements[document.id] = states
                outdated[document.id] = former
            for question in _questions(item, known[package], passages):
                questions.setdefault(question.id, question)
    return Corpus(tuple(documents.values()), tuple(questions.values()), statements, outdated)


class _Object(NamedTuple):
    name: str
    docstring: str
    defaults: dict[str, str]  # parameter -> literal default as written ("" where it has none or it is computed)


_Passage = tuple[Document, tuple[Statement, ...], tuple[Statement, ...]]


def _chosen(package: str, limit: int) -> list[_Object]:
    """Takes whole modules of documented objects, in digest order, until ``limit`` objects are reached."""
    modules: dict[str, dict[str, _Object]] = {}
    seen: set[str] = set()
    for module, item in _objects(package):
        if item.docstring and item.name not in seen:
            seen.add(item.name)
            modules.setdefault(module, {})[item.name] = item
    chosen: list[_Object] = []
    for module in sorted(modules, key=lambda m: hashlib.sha256(m.encode()).digest()):
        documented = [i for i in modules[module].values() if docstrings.parameters(i.docstring)]
        if documented and len(chosen) < limit:
            chosen += documented[: limit - len(chosen)]
    return sorted(chosen)


def _objects(package: str) -> Iterator[tuple[str, _Object]]:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return
    root = Path(next(iter(spec.submodule_search_locations)))
    for path in sorted(root.rglob("*.py")):
        parts = [package, *path.relative_to(root).with_suffix("").parts]
        if parts[-1] == "__init__":
            parts.pop()
        module = ".".join(parts)
        if _SKIPPED.search(module):
            continue
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError, RecursionError):
            continue
        public = ".".join(p for p in parts if not p.startswith("_"))
        for item in _members(tree.body, public):
            yield module, item


def _members(body: list[ast.stmt], prefix: str) -> Iterator[_Object]:
    for node in body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield _Object(f"{prefix}.{node.name}", ast.get_docstring(node) or "", _defaults(node))
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            init = next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)
            text = ast.get_docstring(node) or ""
            if init is not None and not docstrings.parameters(text):
                text = f"{text}\n\n{ast.get_docstring(init) or ''}"
            yield _Object(f"{prefix}.{node.name}", text, _defaults(init) if init else {})
            yield from _members([n for n in node.body if isinstance(n, ast.FunctionDef)], f"{prefix}.{node.name}")


def _defaults(node: ast.FunctionDef) -> dict[str, str]:
    positional = [*node.args.posonlyargs, *node.args.args]
    given = [None] * (len(positional) - len(node.args.defaults)) + list(node.args.defaults)
    pairs = [*zip(positional, given, strict=True), *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]
    return {a.arg: _literal(d) for a, d in pairs if a.arg not in ("self", "cls")}


def _literal(node: ast.expr | None) -> str:
    if node is None:
        return ""
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return ""
    text = ast.unparse(node)
    return text if len(text) <= 24 else ""


def _answer(literal: str) -> str:
    value = ast.literal_eval(literal)
    return value if isinstance(value, str) else literal


def _cut(text: str, limit: int) -> str:
    text = docstrings.one_line(text)
    return text if len(text) <= limit else text[:limit].rsplit(" ", 1)[0]


def _passages(item: _Object, family: str, package: str, version: str, limit: int) -> Iterator[_Passage]:
    def document(section: str, key: str, parameter: str, text: str) -> Document:
        return Document(f"{item.name}#{section}/{key}", family, package, version, item.name, section, parameter, text)

    text = docstrings.summary(item.docstring)
    if text:
        yield document("summary", "0", "", _cut(f"{item.name}: {text}", limit)), (), ()
    for i, window in enumerate(_signature_windows(item, limit)):
        states = tuple(Statement("default", p, _answer(item.defaults[p])) for p in window if item.defaults[p])
        shown = ", ".join(f"{p}={item.defaults[p]}" if item.defaults[p] else p for p in window)
        yield document("signature", str(i), "", f"{item.name}({shown})"), states, ()
    for entry in docstrings.parameters(item.docstring):
        if not (entry.type or entry.text):
            continue
        head = f"{item.name}, parameter {entry.name}: {entry.type}".rstrip(": ")
        shown = _cut(f"{head}. {entry.text}", limit)
        yield document("parameter", entry.name, entry.name, shown), *_parameter_statements(item, entry, shown)
        for note in docstrings.version_notes(entry.text):
            key = f"{entry.name}/{note.what}/{note.version}"
            shown = _cut(f"{item.name}, parameter {entry.name}, {note.what}:: {note.version} {note.text}", limit)
            states = (Statement("version", entry.name, note.version),) if note.what == "versionadded" else ()
            former = tuple(Statement("default", entry.name, m["old"]) for m in _CHANGED.finditer(shown))
            yield document("version", key, entry.name, shown), states, former
    head_text = item.docstring.split("Parameters\n", 1)[0]
    for note in docstrings.version_notes(head_text):
        shown = _cut(f"{item.name}, {note.what}:: {note.version} {note.text}", limit)
        states = (Statement("version", "", note.version),) if note.what == "versionadded" else ()
        yield document("version", f"{note.what}/{note.version}", "", shown), states, ()


def _signature_windows(item: _Object, limit: int) -> Iterator[list[str]]:
    window: list[str] = []
    length = len(item.name) + 2
    for name, default in item.defaults.items():
        size = len(name) + len(default) + 3
        if window and length + size > limit:
            yield window
            window, length = [], len(item.name) + 2
        window.append(name)
        length += size
    if window:
        yield window


def _parameter_statements(
    item: _Object, entry: docstrings.ParameterEntry, shown: str
) -> tuple[tuple[Statement, ...], tuple[Statement, ...]]:
    former = tuple(Statement("default", entry.name, m["old"]) for m in _CHANGED.finditer(shown))
    literal = item.defaults.get(entry.name, "")
    actual = _answer(literal) if literal else None
    said = [m["value"].rstrip(".") for m in _DEFAULT.finditer(shown)]
    # Prose after "default" is no value ("the default is the current time"): keep literals and the true default.
    states = [Statement("default", entry.name, v) for v in said if v == actual or _LITERAL.match(v)][:1]
    kind = _simple_type(entry.type)
    if kind:
        states.append(Statement("type", entry.name, kind))
    added = [n for n in docstrings.version_notes(shown) if n.what == "versionadded"]
    states += [Statement("version", entry.name, n.version) for n in added[:1]]
    return tuple(states), former


def _simple_type(text: str) -> str:
    kind = re.split(r",|;|\{|\(", text.replace("`", ""), maxsplit=1)[0].strip()
    return kind if _SIMPLE_TYPE.match(kind) and len(kind) <= 24 and not kind.endswith("of shape") else ""


def _questions(item: _Object, family: str, passages: list[_Passage]) -> Iterator[Question]:
    def ask(kind: str, parameter: str, text: str, answer: str) -> Question | None:
        wanted = Statement(kind, parameter, answer)
        gold = tuple(d.id for d, states, _ in passages if wanted in states and answer in d.text)
        if not gold:
            return None
        return Question(f"{kind}/{item.name}/{parameter}", kind, text, answer, gold, family, item.name, parameter)

    documented = {e.name: e for e in docstrings.parameters(item.docstring)}
    for name, literal in item.defaults.items():
        answer = _answer(literal) if literal else ""
        if answer and name in documented:
            text = f"What is the default of `{name}` in `{item.name}`?"
            if question := ask("default", name, text, answer):
                yield question
    for name, entry in documented.items():
        if kind := _simple_type(entry.type):
            text = f"What is the type of `{name}` in `{item.name}`?"
            if question := ask("type", name, text, kind):
                yield question
    for document, states, _ in passages:
        for statement in states:
            if document.section == "version" and statement.kind == "version":
                what = f"`{statement.parameter}` of " if statement.parameter else ""
                text = f"In which version was {what}`{item.name}` added?"
                if question := ask("version", statement.parameter, text, statement.value):
                    yield question
