"""Errors of the command line, and what they say."""

from collections.abc import Iterable
from difflib import get_close_matches


class UsageError(ValueError):
    """Bad input: the message is one line that names what was given and what would do."""


def unknown(kind: str, name: str, options: Iterable[str]) -> UsageError:
    """Returns the error for a name that is none of ``options``, with the nearest ones (all, where none is near)."""
    known = sorted(options)
    near = get_close_matches(name, known, n=3, cutoff=0.5)
    advice = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known) or 'none'}"
    return UsageError(f"unknown {kind} {name!r}; {advice}")
