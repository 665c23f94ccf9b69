import pytest

from recallgym.backends.corpora.datasets import DatasetError
from recallgym.backends.corpora.rgb import load_rgb

ROW = {
    "id": 0,
    "query": "立法会有多少个议席？",
    "answer": "70",
    "fakeanswer": "170",
    "positive": ["立法会共有70个议席。", "共70席。"],
    "positive_wrong": ["立法会共有170个议席。", "共70席。"],
    "negative": ["功能界别为28个。"],
}


def test_counterfactual_copies_contradict_unless_they_are_the_same(write):
    (question,) = load_rgb(write("rgb", "zh_fact.json", [ROW], lines=True), "zh", "fact")
    assert [p.relation for p in question.pool] == ["gold", "gold", "contradicting", "silent"]
    assert question.wrong_answers == ("170",)
    assert question.language == "zh"


def test_an_answer_of_several_parts_is_whole_and_no_part_is_an_answer(write):
    row = {**ROW, "answer": [["1月3日", "3 January"], "1月12日"], "positive": [["a"], ["b", "c"]]}
    (question,) = load_rgb(write("rgb", "zh_int.json", [row], lines=True), "zh", "int")
    assert question.answers == ("1月3日、1月12日",)
    assert question.parts == (("1月3日", "3 January"), ("1月12日",))
    assert [p.text for p in question.pool if p.relation == "gold"] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("answer", "answers"), [("70", ("70",)), (70, ("70",)), (["70"], ("70",)), ([["70", "七十"]], ("70", "七十"))]
)
def test_spellings_of_one_answer_are_alternatives(write, answer, answers):
    (question,) = load_rgb(write("rgb", "zh_fact.json", [{**ROW, "answer": answer}], lines=True), "zh", "fact")
    assert (question.answers, question.parts) == (answers, ())


def test_a_wrong_answer_of_several_parts_is_whole_too(write):
    row = {**ROW, "answer": ["A", "B"], "fakeanswer": ["C", "D"]}
    (question,) = load_rgb(write("rgb", "en_fact.json", [row], lines=True), "en", "fact")
    assert (question.answers, question.wrong_answers) == (("A, B",), ("C, D",))


def test_unknown_parts_absent_files_and_rows_without_an_answer_are_named(write, tmp_path):
    with pytest.raises(DatasetError, match="parts '', 'refine', 'int', 'fact', got 'en' and 'all'"):
        load_rgb(tmp_path, "en", "all")
    with pytest.raises(DatasetError, match=r"holds no en\.json; get it by `recallgym data fetch rgb --to"):
        load_rgb(tmp_path, "en", "")
    with pytest.raises(DatasetError, match=r"en_fact\.json:1: expected an answer, got none"):
        load_rgb(write("rgb", "en_fact.json", [{**ROW, "answer": []}], lines=True), "en", "fact")


def test_the_published_files_load_whole(published):
    fact = load_rgb(published, "en", "fact")
    assert len(fact) == 100
    assert all(q.wrong_answers and any(p.relation == "gold" for p in q.pool) for q in fact)
    chinese = {part: load_rgb(published, "zh", part) for part in ("refine", "int", "fact")}
    assert {part: len(questions) for part, questions in chinese.items()} == {"refine": 300, "int": 100, "fact": 100}
    assert {part: sum(bool(q.parts) for q in questions) for part, questions in chinese.items()} == {
        "refine": 43,
        "int": 100,
        "fact": 1,
    }
    pools = [(q, p) for q in chinese["fact"] for p in q.pool if p.relation == "contradicting"]
    assert (len(pools), sum(any(answer in p.text for answer in q.answers) for q, p in pools)) == (417, 11)
    assert sum(not any(p.relation == "silent" for p in q.pool) for q in chinese["fact"]) == 3
