"""Noised variants of a question, as users type them: the yardstick of a gate's robustness (claim C3)."""

import re
from collections.abc import Callable

import numpy as np

_PARAPHRASES = (
    (re.compile(r"^What is the default of (\S+) in (\S+)\?$"), r"If I call \2 without \1, which value is used?"),
    (re.compile(r"^What is the type of (\S+) in (\S+)\?$"), r"What kind of object should I pass as \1 to \2?"),
    (re.compile(r"^In which version was (.+) added\?$"), r"Since which release does \1 exist?"),
)
_PREFIXES = (
    "Hi there, hope you are well. I had coffee and the weather is lovely. ",
    "Quick one before my train leaves, my colleague was asking: ",
    "Thanks for your help with the printer last week! Anyway, ",
    "Not urgent, and my cat says hello. ",
)


def typos(text: str, rng: np.random.Generator) -> str:
    """Swaps, drops or doubles a character in about one of eight, never the first of the text."""
    out = list(text)
    for i in np.flatnonzero(rng.random(len(out)) < 0.125):
        if i == 0:
            continue
        kind = rng.integers(3)
        if kind == 0:
            out[i - 1], out[i] = out[i], out[i - 1]
        else:
            out[i] = "" if kind == 1 else out[i] * 2
    return "".join(out)


def paraphrase(text: str, rng: np.random.Generator) -> str:
    """Asks the same in other words; a question of unknown form is wrapped in an indirect one."""
    for pattern, replacement in _PARAPHRASES:
        if pattern.match(text):
            return pattern.sub(replacement, text)
    return f"Could you tell me the answer to this: {text}"


def truncation(text: str, rng: np.random.Generator) -> str:
    """Keeps the first 60% to 85% of the characters."""
    return text[: max(1, round(len(text) * rng.uniform(0.6, 0.85)))]


def prefix(text: str, rng: np.random.Generator) -> str:
    """Puts an irrelevant sentence before the question."""
    return _PREFIXES[rng.integers(len(_PREFIXES))] + text


NOISES: dict[str, Callable[[str, np.random.Generator], str]] = {
    "typos": typos,
    "paraphrase": paraphrase,
    "truncation": truncation,
    "prefix": prefix,
}
