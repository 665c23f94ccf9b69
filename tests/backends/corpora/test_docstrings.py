"""Parameters, types and version notes come out of the three docstring styles."""

import pytest

from recallgym.backends.corpora.docstrings import ParameterEntry, parameters, summary, version_notes

NUMPY = """Fits a line.

Longer words.

Parameters
----------
x, y : array_like
    Points.
deg : int, default=1
    Degree.

    .. versionadded:: 1.4

Returns
-------
z : float
    Not a parameter.
"""
GOOGLE = """Fits a line.

Args:
    x (`torch.Tensor`): The points.
    deg (`int`, *optional*, defaults to 1): Degree,
        on two lines.

Returns:
    z (float): Not a parameter.
"""
SPHINX = """Fits a line.

:param x: The points.
:param int deg: Degree,
    on two lines.
:return: z
"""


def test_numpy_style_shares_an_entry_among_names_and_leaves_returns_out() -> None:
    found = parameters(NUMPY)
    assert [(e.name, e.type) for e in found] == [("x", "array_like"), ("y", "array_like"), ("deg", "int, default=1")]
    assert found[2].text.startswith("Degree.")


def test_google_style_keeps_the_type_as_written_and_joins_continuations() -> None:
    x, deg = parameters(GOOGLE)
    assert x == ParameterEntry("x", "`torch.Tensor`", "The points.")
    assert (deg.name, deg.type) == ("deg", "`int`, *optional*, defaults to 1")
    assert deg.text.split() == ["Degree,", "on", "two", "lines."]


def test_sphinx_style_reads_types_before_names() -> None:
    assert [(e.name, e.type) for e in parameters(SPHINX)] == [("x", ""), ("deg", "int")]
    assert parameters(SPHINX)[1].text.split() == ["Degree,", "on", "two", "lines."]


@pytest.mark.parametrize("text", ["", "One line.", "Parameters\n----------\n", "Args:\n"])
def test_docstrings_without_parameters_give_none(text: str) -> None:
    assert parameters(text) == []


def test_version_notes_keep_kind_version_and_words() -> None:
    text = ".. versionadded:: 1.4\n\n.. versionchanged:: 2.0\n   Changed from 3 to 4.\n\n.. deprecated:: v2.1"
    assert [(n.what, n.version, n.text) for n in version_notes(text)] == [
        ("versionadded", "1.4", ""),
        ("versionchanged", "2.0", "Changed from 3 to 4."),
        ("deprecated", "v2.1", ""),
    ]


def test_summary_is_the_first_paragraph_on_one_line() -> None:
    assert summary("A\n    b.\n\n    c.") == "A b."
