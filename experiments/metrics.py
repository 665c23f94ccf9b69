"""Measures: what each step of an evaluation adds to the numerator and the denominator of a metric."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .store import Records

Floats = NDArray[np.float64]
Measure = Callable[[Records], tuple[Floats, Floats]]


def per_unit(numerator: str, denominator: str | None = None) -> Measure:
    """Returns the measure sum(numerator) / sum(denominator) over records of these names; None counts units."""

    def measure(records: Records) -> tuple[Floats, Floats]:
        top = _flat(records, numerator)
        return top, np.ones_like(top) if denominator is None else _flat(records, denominator)

    return measure


def empty_set(records: Records) -> tuple[Floats, Floats]:
    """Share of steps in which the reader is shown nothing; column 0 of a table is the empty set."""
    empty = (_flat(records, "set") == 0).astype(np.float64)
    return empty, np.ones_like(empty)


MEASURES: dict[str, Measure] = {
    "utility": per_unit("utility"),
    "net_utility": per_unit("reward"),
    "regret": per_unit("regret"),
    "exact_match": per_unit("exact_match"),
    "leakage": per_unit("leaked", "rejected"),
    "harmful_exposure": per_unit("harmful", "shown"),
    "empty_set": empty_set,
    "fallback": per_unit("fell_back"),
    "rejection": per_unit("rejected", "candidates"),
    "search": per_unit("searched"),
    "tokens": per_unit("tokens"),
    "error": per_unit("error"),
    "rank_correlation": per_unit("rank_correlation"),
    "lds": per_unit("lds", "predicted"),
    "drop": per_unit("drop"),
    "coverage": per_unit("covered", "intervals"),
    "null_coverage": per_unit("null_covered", "null_intervals"),
    "width": per_unit("width", "intervals"),
    "calls": per_unit("calls"),
    "informedness": per_unit("informedness"),
    "informedness_misled": per_unit("informedness_misled"),
    "informedness_wrong": per_unit("informedness_wrong"),
    "flag_rate": per_unit("flagged"),
    "flag_precision": per_unit("true_flags", "flagged"),
    "flag_recall": per_unit("true_flags", "harmed"),
    "chosen_utility": per_unit("chosen_utility"),
    "chosen_right": per_unit("chosen_right"),
    "signal_correlation": per_unit("signal_correlation"),
    "sign_agreement": per_unit("sign_right", "sign_judged"),
    "harm_seen": per_unit("harm_seen", "harm"),
    "emptied": per_unit("emptied"),
    "wrong_fallback": per_unit("wrong_fallback", "emptied"),
    "fallback_gain": per_unit("fallback_gain", "emptied"),
    "fallback_right": per_unit("fallback_right", "emptied"),
    "fallback_harmful": per_unit("fallback_harmful", "fallback_read"),
    "reviewed": per_unit("reviewed", "emptied"),
    "false_keep": per_unit("kept_harmful", "harmful_candidates"),
    "false_reject": per_unit("rejected_helpful", "helpful_candidates"),
    "conditional_information": per_unit("conditional_information"),
    "unconditional_information": per_unit("unconditional_information"),
    "alarm": per_unit("alarm"),
    "swapped": per_unit("swapped"),
    "later_regret": per_unit("later_regret", "later"),
    "later_greedy_regret": per_unit("later_greedy_regret", "later"),
    "later_utility": per_unit("later_utility", "later"),
    "later_exact_match": per_unit("later_exact_match", "later"),
    "later_identification": per_unit("later_identified", "later_judged"),
    "first_identification": per_unit("first_identified", "first_judged"),
    "asked": per_unit("asked"),
    "resets": per_unit("reset"),
    "misjudgement": per_unit("misjudged", "judged"),
    "clean_misjudgement": per_unit("misjudged_clean", "judged"),
    "clean_auroc": per_unit("concordant", "pairs"),
    "flipped": per_unit("flipped", "decisions"),
    "noised_rejection": per_unit("rejected_noised", "decisions"),
}


def measure(name: str, records: Records) -> tuple[Floats, Floats]:
    """Returns numerator and denominator of each unit, (units,) float64.

    Args:
        name: One of :data:`MEASURES`.
        records: Of one trial; all arrays have one shape.

    Raises:
        KeyError: There is no such measure, or the evaluation did not record what it needs.
    """
    if name not in MEASURES:
        raise KeyError(f"unknown measure {name!r}; expected one of {', '.join(MEASURES)}")
    return MEASURES[name](records)


def _flat(records: Records, name: str) -> NDArray[Any]:
    if name not in records:
        raise KeyError(f"this evaluation recorded no {name!r}; it has {', '.join(records)}")
    return np.asarray(records[name], np.float64).ravel()
