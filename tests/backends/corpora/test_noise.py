"""Noised questions keep their meaning's carrier, depend on the seed alone and work in Chinese too."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from recallgym.backends.corpora.noise import NOISES

QUESTIONS = [
    "What is the default of `n` in `a.f`?",
    "What is the type of `n` in `a.f`?",
    "In which version was `n` of `a.f` added?",
    "`a.f` 的参数 `n` 默认值是什么？",
]


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("text", QUESTIONS)
def test_noise_is_repeatable_and_changes_the_text(name: str, text: str) -> None:
    noised = [NOISES[name](text, np.random.default_rng(3)) for _ in range(2)]
    assert noised[0] == noised[1]
    assert noised[0] != text


@pytest.mark.parametrize("text", QUESTIONS)
def test_paraphrase_and_prefix_keep_every_name(text: str) -> None:
    for name in ("paraphrase", "prefix"):
        assert "`n`" in NOISES[name](text, np.random.default_rng(0))


@given(st.text(min_size=1), st.integers(0, 99))
def test_any_text_is_accepted(text: str, seed: int) -> None:
    for noise in NOISES.values():
        assert isinstance(noise(text, np.random.default_rng(seed)), str)


@given(st.text(min_size=1), st.integers(0, 99))
def test_truncation_is_a_prefix_and_prefix_a_suffix(text: str, seed: int) -> None:
    assert text.startswith(NOISES["truncation"](text, np.random.default_rng(seed)))
    assert NOISES["prefix"](text, np.random.default_rng(seed)).endswith(text)
