"""Answers and search terms in English and Chinese."""

import pytest
from hypothesis import given, strategies as st

from recallgym.backends.text import (
    answer_tokens,
    exact_match,
    f1,
    normalize_answer,
    repair_surrogates,
    search_tokens,
)

# Hypothesis draws no surrogates by default; here they are part of the input.
ANY_TEXT = st.text(st.characters(), max_size=40) | st.text(
    st.sampled_from("aA1 -.+,'\"eE_()巴黎，。類ａ１\ud800\udc00\u0301\u2212the"), max_size=20
)
HAN = st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("prediction", "reference"),
    [
        ("'auto'", "auto"),
        ("The Eiffel Tower.", "eiffel tower"),
        ("none", "None"),
        ("(0,1)", "(0, 1)"),
        ("1.", "1"),
        ("It's", "its"),
        ("It\u2019s", "It's"),
        ("the U.S.", "US"),
        ("−1", "-1"),
        ("－１", "-1"),
        ("+1", "1"),
        ("1E-3", "1e-3"),
        ("《红楼梦》。", "红楼梦"),
        ("北京，上海！", "北京 上海"),
        ("ＡＢＣ", "abc"),
        ("`n_init`", "n_init"),
        ('"\'"', "'\"'"),
    ],
)
def test_spellings_of_one_answer_match(prediction, reference):
    assert exact_match(prediction, reference)
    assert f1(prediction, reference) == 1.0


@pytest.mark.parametrize(
    ("prediction", "reference"),
    [
        ("1", "-1"),
        ("01", "0.1"),
        ("1", ".1"),
        ("13", "1e-3"),
        ("1e3", "1e-3"),
        ("inf", "-inf"),
        ("np.inf", "-np.inf"),
        ("为1", "为-1"),
        ("True", "False"),
        ("10", "1.0"),
        ("','", "';'"),
        ("''", "' '' x"),
        ("'a'", "'the'"),
        ("k-means", "k-means++"),
        ("C", "C++"),
        ("n_jobs", "n_job"),
        ("A型", "型"),
    ],
)
def test_different_literals_stay_different(prediction, reference):
    assert not exact_match(prediction, reference)
    assert not exact_match(reference, prediction)
    assert f1(prediction, reference) < 1.0


def test_a_dash_inside_a_date_or_a_difference_is_no_sign():
    assert answer_tokens("2020-01-05") == ["2020", "01", "05"]
    assert answer_tokens("x-1") == ["x", "1"]
    assert answer_tokens("(n)-1") == ["n", "1"]
    assert answer_tokens("(-1, 1)") == ["-1", "1"]


def test_articles_go_from_english_and_stay_in_chinese():
    assert normalize_answer("An answer to the question") == "answer to question"
    assert normalize_answer("A型血") == "a 型血"
    assert normalize_answer("'a'") == "a"


def test_the_default_that_is_an_empty_string_is_an_answer_and_a_blank_one_is_not():
    assert exact_match("''", '""')
    assert not exact_match("", "''")
    assert normalize_answer(" \n") == ""


@pytest.mark.parametrize("blank", ["", " ", "\u3000", "\n\t"])
def test_a_blank_prediction_earns_nothing_even_against_a_blank_reference(blank):
    for reference in ("Paris", "", blank, "''"):
        assert not exact_match(blank, reference)
        assert f1(blank, reference) == 0.0


def test_f1_counts_repetitions():
    assert f1("Paris Paris Paris Paris Paris", "Paris") == pytest.approx(2 * (1 / 5) * 1 / (1 / 5 + 1))
    assert f1("Paris Paris", "Paris Paris") == 1.0


def test_f1_of_partly_right_chinese_is_between_zero_and_one():
    assert f1("中国北京", "北京市") == pytest.approx(2 * 2 / (4 + 3))
    assert f1("“北京”。", "北京") == 1.0
    assert f1("上海", "北京") == 0.0


@given(ANY_TEXT)
def test_normalising_is_idempotent_and_crashes_on_nothing(text):
    once = normalize_answer(text)
    assert normalize_answer(once) == once
    assert bool(answer_tokens(text)) == bool(text.strip())


@given(ANY_TEXT, ANY_TEXT)
def test_f1_is_symmetric_bounded_and_one_for_exact_matches(a, b):
    assert 0.0 <= f1(a, b) <= 1.0
    assert f1(a, b) == f1(b, a)
    if exact_match(a, b):
        assert f1(a, b) == 1.0
        assert normalize_answer(a) == normalize_answer(b)


@given(st.integers(), st.integers())
def test_integers_match_only_themselves(a, b):
    assert exact_match(repr(a), repr(b)) == (a == b)


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_floats_match_only_themselves(a, b):
    assert exact_match(repr(a), f"`{a!r}`.")
    assert exact_match(repr(a), repr(b)) == (repr(a) == repr(b))


@given(st.tuples(st.floats(allow_nan=False), st.integers()), st.tuples(st.floats(allow_nan=False), st.integers()))
def test_tuples_match_only_themselves(a, b):
    assert exact_match(repr(a), repr(b)) == (repr(a) == repr(b))


@given(HAN)
def test_chinese_answers_are_compared_by_the_character(text):
    assert "".join(answer_tokens(text)) == normalize_answer(text)
    assert len(answer_tokens(text)) == len(text)
    assert normalize_answer("，".join(text)) == normalize_answer(text)


def test_identifiers_are_searchable_whole_and_by_their_parts():
    assert search_tokens("KMeans.n_init") == ["kmeans.n_init", "kmeans", "k", "means", "n_init", "n", "init"]
    assert search_tokens("fitTransform HTTPServer2") == [
        "fittransform",
        "fit",
        "transform",
        "httpserver2",
        "http",
        "server2",
    ]
    assert search_tokens("__init__") == ["__init__", "init"]
    assert search_tokens("_") == ["_"]


def test_numbers_are_searched_whole():
    assert search_tokens("tol=1e-4, C=0.25, v1.2") == ["tol", "1e-4", "c", "0.25", "v1.2", "v1", "2"]


def test_a_sentence_gives_no_terms_that_end_in_punctuation():
    assert search_tokens("Fit the model. Then predict.") == ["fit", "the", "model", "then", "predict"]


def test_chinese_is_searched_by_pairs_of_characters():
    assert search_tokens("聚类算法，类") == ["聚类", "类算", "算法", "类"]
    assert search_tokens("用KMeans聚类") == ["用", "kmeans", "k", "means", "聚类"]


@given(HAN, ANY_TEXT)
def test_chinese_never_gives_zero_terms(han, other):
    assert search_tokens(han)
    assert search_tokens(other + han + other)


@given(ANY_TEXT)
def test_search_terms_are_lower_cased_and_encodable(text):
    for term in search_tokens(text):
        assert term
        assert term == term.casefold()
        term.encode("utf-8")


def test_surrogate_pairs_are_joined_and_lone_ones_replaced():
    assert repair_surrogates("a\ud83d\ude00") == "a😀"
    assert repair_surrogates("a\ud83db") == "a\ufffdb"
    assert repair_surrogates("𠮷 naïve") == "𠮷 naïve"
    assert exact_match("\ud842\udfb7", "𠮷")
    assert search_tokens("x\udfff y") == ["x", "y"]
