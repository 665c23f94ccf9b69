"""Errors of the command line, and what they say."""

from collections.abc import Iterable

from ..experiments.names import nearest


class UsageError(ValueError):
    """Bad input: the message is one line that names what was given and what would do."""


def unknown(kind: str, name: str, options: Iterable[str]) -> UsageError:
    """Returns the error for a name that is none of ``options``, with the nearest ones (all, where none is near)."""
    return UsageError(f"unknown {kind} {name!r}; {nearest(name, options)}")
