"""Names that a message proposes for one that is unknown. Imports nothing heavy: the command line uses it too."""

import difflib
from collections.abc import Iterable


def nearest(name: str, valid: Iterable[str], *, shown: int = 3) -> str:
    """Returns the valid names closest to ``name`` as a phrase, or all of them where none is close."""
    known = sorted(set(valid))
    close = difflib.get_close_matches(name, known, n=shown, cutoff=0.5)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"valid: {', '.join(known)}" if known else "there are none"
