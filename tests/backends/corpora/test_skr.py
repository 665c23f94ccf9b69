from collections import Counter

import pytest

from recallgym.backends.corpora.datasets import DatasetError
from recallgym.backends.corpora.skr import load_skr

ROWS = [
    {"question": "who?", "judgement": "ir_better", "golden_answers": ["Ann"]},
    {"question": "谁？", "judgement": "ir_worse", "golden_answers": []},
    {"question": "when?", "judgement": "same", "golden_answers": ["1999"]},
]


@pytest.mark.parametrize("name", ["skr_training.jsonl", "skr_training.json"])
def test_judgements_are_signs_whatever_the_file_is_called(write, name):
    found = load_skr(write("skr", name, ROWS, lines=True))
    assert [(j.text, j.helped) for j in found] == [("who?", 1), ("谁？", -1), ("when?", 0)]
    assert found[1].answers == ()


def test_unknown_judgements_and_absent_files_are_named(write, tmp_path):
    with pytest.raises(DatasetError, match=r"holds no skr_training\.json; get it by `recallgym data fetch skr"):
        load_skr(tmp_path)
    with pytest.raises(DatasetError, match="a judgement of ir_better, same, ir_worse, got 'maybe'"):
        load_skr(write("skr", "skr_training.jsonl", [{**ROWS[0], "judgement": "maybe"}], lines=True))


def test_the_published_file_loads_whole(published):
    assert Counter(j.helped for j in load_skr(published)) == {1: 47, -1: 62, 0: 740}
