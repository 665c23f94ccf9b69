import pytest
from hypothesis import given, strategies as st

from recallgym.experiments.statistics import Interval, Needed
from recallgym.experiments.verdicts import Contrast, Verdict, claimed, explain, judge


def contrast(low, high, *, delta=0.1, published=None) -> Contrast:
    return Contrast(Interval((low + high) / 2, low, high), delta, published)


@pytest.mark.parametrize(
    ("low", "high", "published", "verdict"),
    [
        (0.2, 0.4, 0.5, Verdict.REPRODUCED),
        (0.2, 0.25, 0.5, Verdict.REPRODUCED),  # reaches exactly half
        (0.2, 0.24, 0.5, Verdict.SAME_DIRECTION),  # beyond delta, short of half
        (0.2, 0.4, None, Verdict.SAME_DIRECTION),  # no figure to reproduce
        (0.05, 0.4, 0.5, Verdict.SAME_DIRECTION),  # not surely beyond delta
        (-0.05, 0.05, 0.5, Verdict.EQUIVALENT),
        (0.01, 0.05, 0.02, Verdict.EQUIVALENT),  # excludes 0, of no interest
        (-0.05, -0.01, 0.5, Verdict.EQUIVALENT),
        (-0.4, -0.05, 0.5, Verdict.OPPOSITE),
        (-0.4, 0.05, 0.5, Verdict.INCONCLUSIVE),
        (-0.1, 0.1, 0.5, Verdict.INCONCLUSIVE),  # touches delta
        (0.0, 0.3, 0.5, Verdict.INCONCLUSIVE),  # touches 0
    ],
)
def test_each_rule_at_its_edges(low, high, published, verdict):
    assert judge(contrast(low, high, published=published)) is verdict


def test_construction_precedes_the_instrument_and_the_instrument_precedes_the_data():
    strong = contrast(0.2, 0.4, published=0.3)
    assert judge(strong, by_construction=True, instruments_passed=False) is Verdict.BY_DEFINITION
    assert judge(strong, instruments_passed=False) is Verdict.UNTESTABLE


finite = st.floats(-5, 5)


@given(st.tuples(finite, finite, finite), st.floats(0, 2), st.none() | st.floats(0.01, 3), st.booleans(), st.booleans())
def test_every_contrast_has_exactly_one_verdict_that_its_rule_allows(ends, delta, published, construction, passed):
    low, estimate, high = sorted(ends)
    c = Contrast(Interval(estimate, low, high), delta, published)
    verdict = judge(c, by_construction=construction, instruments_passed=passed)
    allowed = {
        Verdict.BY_DEFINITION: construction,
        Verdict.UNTESTABLE: not passed,
        Verdict.REPRODUCED: low > delta and published is not None and high >= published / 2,
        Verdict.EQUIVALENT: -delta < low and high < delta,
        Verdict.SAME_DIRECTION: low > 0,
        Verdict.OPPOSITE: high < 0,
        Verdict.INCONCLUSIVE: low <= 0 <= high and not (-delta < low and high < delta),
    }
    assert allowed[verdict]
    assert explain(verdict, c, "nats", needed=Needed(12, None), measured="reader scores 0.02")


@given(st.tuples(finite, finite, finite), st.floats(0, 2))
def test_without_a_published_effect_turning_the_contrast_turns_the_verdict(ends, delta):
    low, estimate, high = sorted(ends)
    turned = {
        Verdict.SAME_DIRECTION: Verdict.OPPOSITE,
        Verdict.OPPOSITE: Verdict.SAME_DIRECTION,
        Verdict.EQUIVALENT: Verdict.EQUIVALENT,
        Verdict.INCONCLUSIVE: Verdict.INCONCLUSIVE,
    }
    verdict = judge(Contrast(claimed(Interval(estimate, low, high), "higher"), delta))
    assert judge(Contrast(claimed(Interval(estimate, low, high), "lower"), delta)) is turned[verdict]


def test_lower_is_better_turns_the_interval_and_keeps_its_order():
    assert claimed(Interval(-0.2, -0.3, -0.1), "lower") == (0.2, 0.1, 0.3)
    with pytest.raises(ValueError, match="higher or lower, got 'up'"):
        claimed(Interval(0, 0, 0), "up")


def test_the_sentence_says_what_would_decide():
    c = contrast(-0.4, 0.5)
    said = explain(Verdict.INCONCLUSIVE, c, "nats", needed=Needed(40, 31), per_cluster=20)
    assert "about 40 seeds or 31 clusters (some 620 questions) in all" in said
    assert "Neither" in explain(Verdict.INCONCLUSIVE, c, "nats", needed=Needed(None, None))
    assert "reader scores 0.02" in explain(Verdict.UNTESTABLE, c, "nats", measured="reader scores 0.02")


@pytest.mark.parametrize(("low", "high", "delta"), [(0.2, 0.1, 0.1), (float("nan"), 1.0, 0.1), (0.0, 1.0, -1.0)])
def test_an_impossible_contrast_is_refused(low, high, delta):
    with pytest.raises(ValueError, match=r"finite low <= estimate|delta must be"):
        contrast(low, high, delta=delta)


def test_a_published_effect_must_be_positive_as_claimed():
    with pytest.raises(ValueError, match="positive in the claimed direction"):
        contrast(0, 1, published=-0.2)
