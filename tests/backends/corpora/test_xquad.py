import pytest

from recallgym.backends.corpora.datasets import DatasetError
from recallgym.backends.corpora.xquad import load_xquad


def article(context, question, answer):
    entry = {"id": "q1", "question": question, "answers": [{"answer_start": 0, "text": answer}]}
    return {"data": [{"title": "T", "paragraphs": [{"context": context, "qas": [entry]}]}]}


def test_questions_are_the_same_in_both_languages(write):
    folder = write("xquad", "xquad.en.json", article("The team gave up 308 points.", "How many points?", "308"))
    write("xquad", "xquad.zh.json", article("球队丢了 308 分。", "丢了多少分？", "308"))
    english, chinese = (load_xquad(folder, language)[0] for language in ("en", "zh"))
    assert (english.id, english.group, english.answers) == (chinese.id, chinese.group, chinese.answers)
    assert (english.language, chinese.language) == ("en", "zh")
    assert chinese.pool[0].text == "球队丢了 308 分。"
    assert chinese.pool[0].relation == "gold"


def test_an_answer_that_its_paragraph_does_not_hold_is_refused(write):
    folder = write("xquad", "xquad.en.json", article("Nothing here.", "How many?", "308"))
    with pytest.raises(
        DatasetError, match=r"article 0: expected an answer of q1 that its paragraph holds, got \('308',\)"
    ):
        load_xquad(folder, "en")


def test_other_languages_and_absent_files_are_one_line(tmp_path):
    with pytest.raises(DatasetError, match="read in en and zh, got 'de'"):
        load_xquad(tmp_path, "de")
    with pytest.raises(DatasetError, match=r"holds no xquad\.zh\.json; get it by `recallgym data fetch xquad"):
        load_xquad(tmp_path, "zh")


def test_the_published_files_load_whole_and_are_parallel(published):
    english, chinese = (load_xquad(published, language) for language in ("en", "zh"))
    assert len(english) == 1190
    assert len({p for q in english for p in q.pool}) == 240
    assert [(q.id, q.group) for q in english] == [(q.id, q.group) for q in chinese]
