from collections import Counter

import pytest

from recallgym.backends.corpora.datasets import DatasetError
from recallgym.backends.corpora.skr import load_skr

ROWS = [
    {"question": "who?", "judgement": "ir_better", "golden_answers": ["Ann"]},
    {"question": "谁？", "judgement": "ir_worse", "golden_answers": []},
    {"question": "when?", "judgement": "same", "golden_answers": ["1999"]},
]


@pytest.mark.parametrize(("name", "lines"), [("skr_training.jsonl", True), ("skr_training.json", False)])
def test_judgements_are_signs_in_one_list_as_published_and_one_a_line(write, name, lines):
    found = load_skr(write("skr", name, ROWS, lines=lines))
    assert [(j.text, j.helped) for j in found] == [("who?", 1), ("谁？", -1), ("when?", 0)]
    assert found[1].answers == ()


def test_unknown_judgements_and_absent_files_are_named(write, tmp_path):
    with pytest.raises(DatasetError, match=r"holds no skr_training\.json\*; get it by `recallgym data fetch skr"):
        load_skr(tmp_path)
    with pytest.raises(DatasetError, match="a judgement of ir_better, same, ir_worse, got 'maybe'"):
        load_skr(write("skr", "skr_training.jsonl", [{**ROWS[0], "judgement": "maybe"}], lines=True))


def test_the_published_file_loads_whole(published):
    found = load_skr(published)
    assert Counter(j.helped for j in found) == {1: 47, -1: 62, 0: 740}
    assert len({j.text for j in found}) == 849
    assert sum(not j.answers for j in found) == 1
