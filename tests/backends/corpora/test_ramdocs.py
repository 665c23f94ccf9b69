from collections import Counter

import pytest

from recallgym.backends.corpora.datasets import DatasetError
from recallgym.backends.corpora.ramdocs import load_ramdocs

ROW = {
    "question": "How high is the tower?",
    "documents": [
        {"text": "The tower is 30 m high.", "type": "correct", "answer": "30 m"},
        {"text": "The tower is 90 m high.", "type": "misinfo", "answer": "90 m"},
        {"text": "The tower is old.", "type": "noise", "answer": "unknown"},
        {"text": "The tower is 30 m high.", "type": "noise", "answer": "unknown"},
        {"text": "  ", "type": "noise", "answer": "unknown"},
    ],
    "disambig_entity": ["Tower"],
    "gold_answers": ["30 m", "30 m", "thirty metres"],
    "wrong_answers": ["90 m"],
}


def test_documents_are_typed_by_what_they_state_and_copies_and_blanks_are_gone(write):
    (question,) = load_ramdocs(write("ramdocs", "RAMDocs_test.jsonl", [ROW], lines=True))
    assert [p.relation for p in question.pool] == ["gold", "contradicting", "silent"]
    assert question.answers == ("30 m", "thirty metres")
    assert question.wrong_answers == ("90 m",)


def test_a_copy_that_is_listed_as_gold_later_is_gold(write):
    row = {**ROW, "documents": ROW["documents"][::-1]}
    (question,) = load_ramdocs(write("ramdocs", "RAMDocs_test.jsonl", [row], lines=True))
    first = question.pool[0]
    assert (first.text, first.relation) == ("The tower is 30 m high.", "gold")


def test_what_is_published_both_as_right_and_as_wrong_is_right(write):
    row = {**ROW, "gold_answers": ["Ice hockey", "跑步"], "wrong_answers": ["Ice Hockey", "跑步", "Chess"]}
    (question,) = load_ramdocs(write("ramdocs", "RAMDocs_test.jsonl", [row], lines=True))
    assert (question.answers, question.wrong_answers) == (("Ice hockey", "跑步"), ("Chess",))


def test_a_question_without_documents_has_an_empty_pool(write):
    (question,) = load_ramdocs(write("ramdocs", "RAMDocs_test.jsonl", [{**ROW, "documents": []}], lines=True))
    assert question.pool == ()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"gold_answers": []}, r"RAMDocs_test\.jsonl:1: expected at least one of gold_answers, got none"),
        ({"documents": [{"text": "a", "type": "odd"}]}, "type correct, misinfo, noise, got 'odd'"),
        ({"documents": "none"}, "expected 'documents' to be list, got str 'none'"),
        ({"question": None}, "expected 'question' to be str, got NoneType"),
    ],
)
def test_a_row_that_is_not_as_published_is_named_with_what_was_expected(write, change, says):
    with pytest.raises(DatasetError, match=says):
        load_ramdocs(write("ramdocs", "RAMDocs_test.jsonl", [{**ROW, **change}], lines=True))


def test_data_that_is_not_there_is_one_line_with_the_command_that_gets_it(tmp_path):
    with pytest.raises(
        DatasetError, match=r"holds no RAMDocs_test\.jsonl; get it by `recallgym data fetch ramdocs --to"
    ) as e:
        load_ramdocs(tmp_path)
    assert "\n" not in str(e.value)


def test_a_line_that_is_no_json_is_named(write):
    folder = write("ramdocs", "RAMDocs_test.jsonl", [ROW], lines=True)
    with (folder / "ramdocs" / "RAMDocs_test.jsonl").open("a") as file:
        file.write("\n{oops\n")
    with pytest.raises(DatasetError, match=r"RAMDocs_test\.jsonl:2: is no JSON"):
        load_ramdocs(folder)


def test_the_published_file_loads_whole(published):
    questions = load_ramdocs(published)
    assert len(questions) == len({q.group for q in questions}) == 500
    assert sum(not any(p.relation == "gold" for p in q.pool) for q in questions) == 3
    assert sum(not q.wrong_answers for q in questions) == 202
    assert Counter(p.relation for q in questions for p in q.pool) == {"gold": 1917, "silent": 541, "contradicting": 307}
