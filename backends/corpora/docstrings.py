"""Reads parameters, types and version notes out of docstrings: NumPy, Google and Sphinx style."""

import inspect
import re
from dataclasses import dataclass
from itertools import zip_longest

_NUMPY_SECTION = re.compile(r"^(?P<title>[A-Z][\w ]+)\n-{3,}[ ]*$", re.M)
_NUMPY_ENTRY = re.compile(r"^(?P<names>\*{0,2}\w+(?:, ?\*{0,2}\w+)*)[ ]?:[ ]?(?P<type>.*)$")
_GOOGLE_HEAD = re.compile(r"^(?:Args|Arguments|Parameters|Keyword Args|Keyword Arguments):[ ]*$")
_GOOGLE_ENTRY = re.compile(
    r"^`{0,2}(?P<name>\*{0,2}\w+)`{0,2}[ ]*(?:\((?P<type>[^()]*(?:\([^()]*\)[^()]*)*)\))?[ ]*:[ ]*(?P<text>.*)$"
)
_SPHINX_PARAM = re.compile(r"^[ ]*:param[ ]+(?:(?P<type>[\w.\[\], |]+?)[ ]+)?(?P<name>\w+):[ ]*(?P<text>.*)$")
_VERSION = re.compile(r"\.\.[ ]+(?P<what>versionadded|versionchanged|deprecated)::[ ]*(?P<version>v?\d[\w.]*)")


@dataclass(frozen=True)
class ParameterEntry:
    """One parameter of a docstring: its name, the type as written ("" where none) and its description."""

    name: str
    type: str
    text: str


@dataclass(frozen=True)
class VersionNote:
    """A ``versionadded``, ``versionchanged`` or ``deprecated`` directive with the text that follows it."""

    what: str
    version: str
    text: str


def summary(docstring: str) -> str:
    """Returns the first paragraph of a docstring on one line."""
    return one_line(inspect.cleandoc(docstring).split("\n\n", 1)[0])


def one_line(text: str) -> str:
    """Folds white space."""
    return " ".join(text.split())


def parameters(docstring: str) -> list[ParameterEntry]:
    """Lists the documented parameters in order, in whichever of the three styles the docstring is written."""
    text = inspect.cleandoc(docstring)
    return _numpy(text) or _google(text) or _sphinx(text)


def version_notes(text: str) -> list[VersionNote]:
    """Lists the version directives of a text, each with its indented or trailing words (at most 200 characters)."""
    notes = []
    for match in _VERSION.finditer(text):
        rest = text[match.end() : match.end() + 400].split("\n\n", 1)[0].split(".. ", 1)[0]
        notes.append(VersionNote(match["what"], match["version"].strip("."), one_line(rest)[:200]))
    return notes


def _numpy(text: str) -> list[ParameterEntry]:
    heads = list(_NUMPY_SECTION.finditer(text))
    entries: list[ParameterEntry] = []
    for head, following in zip_longest(heads, heads[1:]):
        if head["title"] not in ("Parameters", "Other Parameters"):
            continue
        body = text[head.end() : following.start() if following else len(text)]
        for name, kind, lines in _blocks(body, _NUMPY_ENTRY, "names"):
            entries += [ParameterEntry(n.strip(" *"), kind, "\n".join(lines).strip()) for n in name.split(",")]
    return entries


def _google(text: str) -> list[ParameterEntry]:
    lines = text.split("\n")
    for i, line in enumerate(lines):
        if not _GOOGLE_HEAD.match(line):
            continue
        body = []
        for following in lines[i + 1 :]:
            if following.strip() and not following.startswith(" "):
                break
            body.append(following)
        return [
            ParameterEntry(name.strip(" *"), kind, "\n".join(rest).strip())
            for name, kind, rest in _blocks(inspect.cleandoc("\n".join(body)), _GOOGLE_ENTRY, "name")
        ]
    return []


def _sphinx(text: str) -> list[ParameterEntry]:
    entries: list[ParameterEntry] = []
    for line in text.split("\n"):
        if match := _SPHINX_PARAM.match(line):
            entries.append(ParameterEntry(match["name"], match["type"] or "", match["text"].strip()))
        elif entries and line.startswith(" ") and line.strip() and not line.lstrip().startswith(":"):
            last = entries.pop()
            entries.append(ParameterEntry(last.name, last.type, f"{last.text}\n{line.strip()}"))
    return entries


def _blocks(body: str, head: re.Pattern[str], group: str) -> list[tuple[str, str, list[str]]]:
    """Cuts a section into entries: an unindented line that matches ``head``, then its indented lines."""
    found: list[tuple[str, str, list[str]]] = []
    for line in body.split("\n"):
        match = head.match(line)
        if match:
            first = [match["text"]] if "text" in match.groupdict() else []
            found.append((match[group], (match["type"] or "").strip(), first))
        elif found and (line.startswith(" ") or not line.strip()):
            found[-1][2].append(line.strip())
    return found
