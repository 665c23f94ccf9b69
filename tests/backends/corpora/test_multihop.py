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


def test_the_sentences_of_both_are_joined_as_each_writes_them(write):
    spaced = {**HOTPOT, "context": [["A", ["One.", " Two."]]], "supporting_facts": [["A", 0]]}
    bare = {**spaced, "context": [["A", ["One.", "Two."]]]}
    for name, file, row in (("hotpotqa", "hotpot.json", spaced), ("2wikimultihopqa", "wikihop.json", bare)):
        (question,) = load_multihop(write("multihop", file, [row], lines=True), name)
        assert question.pool[0].text == "One. Two."


def test_what_musique_marks_as_not_answerable_has_no_answers(write):
    rows = [{**MUSIQUE, "answerable": answerable} for answerable in (True, False)]
    found = load_multihop(write("multihop", "musique.jsonl", rows, lines=True), "musique")
    assert [question.answers for question in found] == [("Oslo", "Christiania"), ()]


def test_nq_and_triviaqa_are_read_as_migres_publishes_them(write):
    rows = [
        {"question": "who?", "context": "A text.", "id": -3, "answer": ["Ann"], "dataset": "nq"},
        {"question": "where?", "context": "", "example_id": 7, "short_answers": ["Oslo"], "dataset": "nq"},
        {"question": "what?", "answer": "['Moby-Dick', \"Ahab's\", '白鲸']", "dataset": "trivia"},
    ]
    found = load_multihop(write("multihop", "odqa.json", rows, lines=True), "single_hop")
    assert [q.id for q in found] == ["-3", "7", "2"]
    assert [q.answers for q in found] == [("Ann",), ("Oslo",), ("Moby-Dick", "Ahab's", "白鲸")]
    assert [q.kind for q in found] == ["nq", "nq", "triviaqa"]
    assert not any(q.pool for q in found)  # whether NQ's context tells is not published


def test_bamboogle_is_read_from_its_table(tmp_path):
    folder = tmp_path / "multihop" / "dataset" / "bamboogle"
    folder.mkdir(parents=True)
    table = 'Question\t\t\t\tAnswer\tAnswer 2\tcanary\nWho said "Go"?\t\t\t\tAnn\tAnna\t\n哪里？\t\t\t\t奥斯陆\t\t\n'
    (folder / "Bamboogle_Prerelease.tsv").write_text(table, encoding="utf-8")
    found = load_multihop(tmp_path, "bamboogle")
    assert [(q.text, q.answers) for q in found] == [('Who said "Go"?', ("Ann", "Anna")), ("哪里？", ("奥斯陆",))]
    (folder / "Bamboogle_Prerelease.tsv").write_text(f"{table}Who?\n", encoding="utf-8")
    with pytest.raises(DatasetError, match=r"Prerelease\.tsv:4: expected 'Answer' to be str, got NoneType"):
        load_multihop(tmp_path, "bamboogle")


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


@pytest.mark.parametrize(
    ("name", "file", "row", "says"),
    [
        ("hotpotqa", "hotpot.json", {**HOTPOT, "context": [["A"]]}, r"'context' of \[title, list\], got \"\['A'\]\""),
        ("hotpotqa", "hotpot.json", {**HOTPOT, "context": [["A", [3]]]}, r"'context' of \[title, list\]"),
        (
            "hotpotqa",
            "hotpot.json",
            {**HOTPOT, "supporting_facts": ["A"]},
            r"'supporting_facts' of \[title, int\], got 'A'",
        ),
        ("musique", "musique.jsonl", {**MUSIQUE, "paragraphs": [3]}, "an object with 'is_supporting', got int"),
        ("musique", "musique.jsonl", {**MUSIQUE, "question_decomposition": [3]}, "an object with 'question', got int"),
        (
            "single_hop",
            "odqa.json",
            {"question": "q", "answer": "[oops", "dataset": "trivia"},
            "printed list of answers",
        ),
    ],
)
def test_rows_that_are_not_as_published_are_named_with_what_was_expected(write, name, file, row, says):
    folder = write("multihop", file, [row], lines=True)
    with pytest.raises(DatasetError, match=rf"{file}:1: expected .*{says.replace('an object', 'a JSON object')}"):
        load_multihop(folder, name)


def test_the_published_samples_load_whole(published):
    sizes = {name: len(load_multihop(published, name)) for name in SETS}
    assert sizes.pop("2wikimultihopqa") in (164, 200)  # with paragraphs, and as published
    assert sizes == {
        "musique": 200,
        "hotpotqa": 200,
        "single_hop": 400,
        "strategyqa": 229,
        "bamboogle": 125,
    }
    musique = load_multihop(published, "musique")
    assert Counter(len(q.steps) for q in musique).keys() <= {2, 3, 4}
    assert all(sum(p.relation == "gold" for p in q.pool) >= 2 for q in musique)
    assert Counter(len(q.pool) for q in musique) == {20: 200}
    groups = Counter(q.group for q in musique)
    assert (len(groups), max(groups.values())) == (121, 6)
    single = load_multihop(published, "single_hop")
    assert Counter(q.kind for q in single) == {"nq": 200, "triviaqa": 200}
