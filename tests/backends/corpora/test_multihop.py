from collections import Counter

import pytest
from hypothesis import given, strategies as st

from recallgym.backends.corpora.datasets import DatasetError
from recallgym.backends.corpora.multihop import SETS, _groups, load_multihop
from recallgym.backends.corpora.records import Step

MUSIQUE = {
    "id": "2hop__1",
    "question": "What is the capital of the country where the river ends?",
    "answer": "Oslo",
    "answer_aliases": ["Christiania", ""],
    "paragraphs": [
        {"idx": 0, "title": "River", "paragraph_text": "The river ends in Norway.", "is_supporting": True},
        {"idx": 1, "title": "Norway", "paragraph_text": "Its capital is Oslo.", "is_supporting": True},
        {"idx": 2, "title": "Lake", "paragraph_text": "The lake is deep.", "is_supporting": False},
    ],
    "question_decomposition": [
        {"id": 1, "question": "river >> ends in", "answer": "Norway", "paragraph_support_idx": 0},
        {"id": 2, "question": "#1 >> capital", "answer": "Oslo", "paragraph_support_idx": 1},
    ],
}
HOTPOT = {
    "_id": "5a",
    "question": "Which is older?",
    "answer": "A",
    "type": "comparison",
    "context": [["A", ["A is old.", " Very."]], ["B", ["B is new."]], ["C", ["C."]]],
    "supporting_facts": [["A", 0], ["B", 0]],
}


def test_musique_is_read_as_published_and_as_a_sample_brings_it(write):
    sample = {
        **{key: MUSIQUE[key] for key in ("id", "question", "answer", "answer_aliases")},
        "paragraphs": [
            {"title": p["title"], "text": p["paragraph_text"], "is_supporting": p["is_supporting"]}
            for p in MUSIQUE["paragraphs"]
        ],
        "decomposition": [
            {"question": s["question"], "answer": s["answer"]} for s in MUSIQUE["question_decomposition"]
        ],
    }
    folder = write("multihop", "musique_ans_dev.jsonl", [MUSIQUE, sample], lines=True)
    one, other = load_multihop(folder, "musique")
    assert (one.pool, one.answers, one.steps) == (other.pool, other.answers, other.steps)
    assert one.answers == ("Oslo", "Christiania")
    assert one.steps == (Step("river >> ends in", "Norway"), Step("#1 >> capital", "Oslo"))
    assert [p.relation for p in one.pool] == ["gold", "gold", "silent"]


@pytest.mark.parametrize(("name", "file"), [("hotpotqa", "hotpot_dev.json"), ("2wikimultihopqa", "2wiki_dev.json")])
def test_hotpotqa_and_2wiki_name_supporting_paragraphs_by_title(write, name, file):
    (question,) = load_multihop(write("multihop", file, [HOTPOT]), name)
    assert [(p.title, p.relation) for p in question.pool] == [("A", "gold"), ("B", "gold"), ("C", "silent")]
    assert question.pool[0].text == "A is old. Very."
    assert (question.id, question.kind) == ("5a", "comparison")


def test_sets_without_paragraphs_have_empty_pools(write):
    rows = [{"dataset": "nq", "id": "1", "question": "谁写的？", "answers": ["鲁迅"]}]
    (question,) = load_multihop(write("multihop", "single_hop_odqa_400.jsonl", rows, lines=True), "single_hop")
    assert (question.pool, question.answers, question.kind) == ((), ("鲁迅",), "nq")
    rows = [{"qid": "e", "question": "Is it?", "answer": False, "decomposition": ["What is it?"]}]
    (question,) = load_multihop(write("multihop", "strategyqa_229.jsonl", rows, lines=True), "strategyqa")
    assert question.answers == ("no",)
    assert question.steps == (Step("What is it?", ""),)


def test_questions_that_share_a_supporting_paragraph_are_one_group(write):
    other = {**MUSIQUE, "id": "2", "paragraphs": MUSIQUE["paragraphs"][1:]}
    alone = {**MUSIQUE, "id": "3", "paragraphs": MUSIQUE["paragraphs"][2:]}
    found = load_multihop(write("multihop", "musique.jsonl", [MUSIQUE, other, alone], lines=True), "musique")
    assert found[0].group == found[1].group != found[2].group  # a shared distractor does not join


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=3), max_size=12))
def test_groups_are_the_connected_components(keys):
    groups = _groups(keys)
    for i, one in enumerate(keys):
        for j, other in enumerate(keys):
            if set(one) & set(other):
                assert groups[i] == groups[j]
    for number in set(groups):
        members = [i for i, group in enumerate(groups) if group == number]
        reached, todo = {members[0]}, [members[0]]
        while todo:
            i = todo.pop()
            near = [j for j in range(len(keys)) if j not in reached and set(keys[i]) & set(keys[j])]
            reached.update(near)
            todo += near
        assert reached == set(members)


def test_unknown_sets_absent_files_and_rows_without_an_answer_are_named(write, tmp_path):
    with pytest.raises(DatasetError, match=r"multihop has the sets musique, .*, got 'squad'"):
        load_multihop(tmp_path, "squad")
    with pytest.raises(DatasetError, match="get it by `recallgym data fetch multihop"):
        load_multihop(tmp_path, "musique")
    with pytest.raises(DatasetError, match=r"musique\.jsonl:1: expected an answer, got none in the fields question"):
        load_multihop(write("multihop", "musique.jsonl", [{"question": "q"}], lines=True), "musique")


def test_the_published_samples_load_whole(published):
    sizes = {name: len(load_multihop(published, name)) for name in SETS}
    assert sizes == {
        "musique": 200,
        "hotpotqa": 200,
        "2wikimultihopqa": 164,
        "single_hop": 400,
        "strategyqa": 229,
        "bamboogle": 125,
    }
    musique = load_multihop(published, "musique")
    assert Counter(len(q.steps) for q in musique).keys() <= {2, 3, 4}
    assert all(sum(p.relation == "gold" for p in q.pool) >= 2 for q in musique)
