"""Shares of attention: over the passages alone, in their order, without a trace in the reader."""

import numpy as np
import pytest

from recallgym.backends.readers.attention import attention_shares
from recallgym.backends.readers.reader import Reader

pytestmark = pytest.mark.xdist_group("reader")

QUESTION = "What is the default of `timeout` in `get`?"
PASSAGES = [
    "get, parameter timeout: int (30). Seconds to wait.",
    "Tea is grown in the hills.",
    "获取，参数 timeout：整数。",
]


def test_shares_are_positive_and_add_up_to_one(reader: Reader) -> None:
    for answer in ("30", "", "thirty seconds", "三十秒"):
        shares = attention_shares(reader, QUESTION, answer, PASSAGES)
        assert shares.shape == (3,)
        assert shares.dtype == np.float32
        assert (shares > 0).all()
        assert shares.sum() == pytest.approx(1, rel=1e-5)


def test_one_passage_has_it_all_and_no_passage_has_nothing(reader: Reader) -> None:
    np.testing.assert_allclose(attention_shares(reader, QUESTION, "30", PASSAGES[:1]), [1])
    assert attention_shares(reader, QUESTION, "30", []).shape == (0,)


def test_looking_leaves_outcomes_as_they_were(reader: Reader) -> None:
    sets = np.array([[True, True, False], [False, True, True]])
    before = reader.score(QUESTION, "30", PASSAGES, sets)
    attention_shares(reader, QUESTION, "30", PASSAGES)
    after = reader.score(QUESTION, "30", PASSAGES, sets)
    np.testing.assert_array_equal(before.u_ref, after.u_ref)
    assert before.answers == after.answers


def test_a_longer_passage_gets_the_share_of_all_its_tokens(reader: Reader) -> None:
    """Not a mean over its tokens: what is read twice as long is looked at more."""
    short, long = attention_shares(reader, QUESTION, "30", ["Tea.", "Tea is grown in the hills. " * 3])
    assert long > short
