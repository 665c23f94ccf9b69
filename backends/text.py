"""Text as answers and as search terms, in English and Chinese: pure functions without a model.

Answers here are often Python literals, so normalisation keeps what tells them apart: ``-1`` is not ``1``, ``0.1`` is
not ``01``, and ``','`` is not ``';'``. Chinese is written without spaces: an answer is compared a character at a time,
and search terms are pairs of neighbouring characters.
"""

import re
import unicodedata
from collections import Counter

ARTICLES = frozenset({"a", "an", "the"})

# Ideographs: the blocks of the basic plane, compatibility forms, all of planes 2 and 3, and the marks 々 and 〇.
_HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = rf"[^\W{_HAN}]"  # a word character that is not an ideograph
_MARKED = rf"(?:{_WORD}|[\u0300-\u036f])"  # ... or an accent that did not compose with its letter

# A sign counts where nothing it could subtract from precedes it: in "2020-01" and "x-1" the dash is a hyphen.
_SIGNABLE = rf"(?<!{_WORD})(?<![.)\]])"
_NUMBER = rf"{_SIGNABLE}-?\.?\d(?:e[+-]?\d|{_MARKED}|\.(?=\d))*"
_MINUS_INFINITY = rf"{_SIGNABLE}-(?:{_WORD}+\.)?inf(?:inity)?(?!{_WORD})"
_ANSWER_TOKEN = re.compile(rf"[{_HAN}]|{_NUMBER}|{_MINUS_INFINITY}|{_WORD}{_MARKED}*(?:\+\+|#)?")
_INITIALS = re.compile(rf"(?<!{_WORD})(?:[^\W\d_]\.){{2,}}")  # U.S. and e.g.: one word, not two
_APOSTROPHE = re.compile(rf"(?<={_WORD})'(?={_WORD})")
_BETWEEN_HAN = re.compile(rf"(?<=[{_HAN}]) (?=[{_HAN}])")
_QUOTES = re.compile("['\"`\u2018\u2019\u201c\u201d\u300c-\u300f]")

_SEARCH_RUN = re.compile(
    rf"(?P<han>[{_HAN}]+)"
    rf"|(?P<number>\d+(?:\.\d+)*(?:[eE][+-]?\d+)?(?!{_WORD}))"
    rf"|(?P<name>{_WORD}{_MARKED}*(?:\.{_WORD}{_MARKED}*)*)"
)
_PART_BOUNDARY = re.compile("_+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def repair_surrogates(text: str) -> str:
    """Joins surrogate pairs into their character and replaces lone surrogates by U+FFFD.

    Text decoded from JSON may hold lone surrogates, which no encoder and no tokenizer accepts.
    """
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def answer_tokens(text: str) -> list[str]:
    """Splits an answer into comparable tokens: words and numbers, and one token for each Chinese character.

    The text is NFKC-normalised and case-folded, punctuation is dropped, and so are the English articles where the text
    has no Chinese in it (SQuAD's rule; "A" in a Chinese answer is a letter). Numbers keep sign, decimal point and
    exponent, and ``-inf`` its sign; ``c++``, ``c#`` and ``k-means++`` keep their suffix. Commas always separate:
    ``(0,1)`` equals ``(0, 1)``, and ``1,000`` is two tokens. Numbers are compared as written:
    ``1e-3`` is not ``0.001``.

    Text of nothing but punctuation, such as the default ``','``, stands for itself without its quotes, and the empty
    string literal for ``''``: otherwise all of them would be equal.

    Args:
        text: An answer, of any length; lone surrogates are allowed.

    Returns:
        The tokens in order, with repetitions; empty only where the text is blank.
    """
    text = unicodedata.normalize("NFKC", repair_surrogates(text)).casefold()
    text = unicodedata.normalize("NFKC", text).replace("\u2212", "-").replace("\u2019", "'")
    plain = _INITIALS.sub(lambda m: m[0].replace(".", ""), _APOSTROPHE.sub("", text))
    tokens = _ANSWER_TOKEN.findall(plain)
    if not tokens:
        return _QUOTES.sub(" ", text).split() or (["''"] if text.strip() else [])
    if not any(re.match(f"[{_HAN}]", token) for token in tokens):
        # 'a' is also a literal (a file mode): an answer of nothing but articles keeps them.
        tokens = [token for token in tokens if token not in ARTICLES] or tokens
    return tokens


def normalize_answer(text: str) -> str:
    """Returns the answer in the form that exact match compares: its tokens, with spaces only outside Chinese."""
    return _BETWEEN_HAN.sub("", " ".join(answer_tokens(text)))


def exact_match(prediction: str, reference: str) -> bool:
    """Returns whether two answers are equal after normalisation. A blank prediction matches nothing."""
    predicted = answer_tokens(prediction)
    return bool(predicted) and predicted == answer_tokens(reference)


def f1(prediction: str, reference: str) -> float:
    """Returns the harmonic mean of token precision and recall, in [0, 1]; 0 for a blank prediction.

    Tokens count as often as they occur (Rajpurkar et al. 2016): "Paris Paris Paris" against "Paris" is 0.5, not 1.
    """
    predicted, expected = Counter(answer_tokens(prediction)), Counter(answer_tokens(reference))
    shared = (predicted & expected).total()
    return 2 * shared / (predicted.total() + expected.total()) if shared else 0.0


def search_tokens(text: str) -> list[str]:
    """Splits text into lower-cased terms for lexical search, whole identifiers and their parts alike.

    ``KMeans.n_init`` gives ``kmeans.n_init``, ``kmeans``, ``k``, ``means``, ``n_init``, ``n``, ``init``. Numbers stay
    whole. A run of Chinese gives its character pairs, or the character where it stands alone.

    Args:
        text: A passage or a query; lone surrogates are allowed.

    Returns:
        The terms in order of occurrence, with repetitions; never empty where the text has a word, number or ideograph.
    """
    terms: list[str] = []
    for run in _SEARCH_RUN.finditer(unicodedata.normalize("NFKC", repair_surrogates(text))):
        if han := run["han"]:
            terms += [han[i : i + 2] for i in range(len(han) - 1)] or [han]
        elif run["number"]:
            terms.append(run[0].casefold())
        else:
            terms += _identifier_terms(run["name"])
    return terms


def _identifier_terms(name: str) -> list[str]:
    components = name.split(".")
    terms = [name] if len(components) > 1 else []
    for component in components:
        parts = [part for part in _PART_BOUNDARY.split(component) if part]
        terms.append(component)
        if parts != [component]:
            terms += parts
    return [term.casefold() for term in terms]
