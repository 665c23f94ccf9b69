from collections import Counter

import pytest
from hypothesis import given, strategies as st

from recallgym.backends.corpora.datasets import DatasetError
from recallgym.backends.corpora.locomo import _evidence, load_locomo

ENTRY = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ann",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ann", "dia_id": "D1:1", "text": "I moved to Oslo."},
            {"speaker": "Bo", "dia_id": "D1:2", "text": "Nice!", "blip_caption": "a photo of a harbour"},
        ],
        "session_2_date_time": "10:05 am on 1 June, 2023",
        "session_2": [{"speaker": "安", "dia_id": "D2:5", "text": "我养了一只猫。"}],
        "session_10_date_time": "12:00 am on 2 July, 2023",
        "session_10": [],
    },
    "qa": [
        {"question": "Where did Ann move?", "answer": "Oslo", "evidence": ["D1:1"], "category": 4},
        {"question": "When?", "answer": 2023, "evidence": ["D1:1; D2:05", "D:2:5", "D"], "category": 2},
        {"question": "What did Bo buy?", "evidence": [], "category": 5, "adversarial_answer": "a boat"},
    ],
}


def load(write, **change):
    return load_locomo(write("locomo", "locomo10.json", [{**ENTRY, **change}]))[0]


def test_turns_come_in_order_of_their_sessions_with_the_time_and_what_a_picture_shows(write):
    turns = load(write).turns
    assert [turn.id for turn in turns] == ["D1:1", "D1:2", "D2:5"]
    assert turns[0].time == "2023-05-08T13:56"
    assert turns[1].text == "Nice! [a photo of a harbour]"
    assert turns[2].text == "我养了一只猫。"


def test_evidence_is_read_as_what_it_can_only_mean_and_the_rest_is_listed(write):
    conversation = load(write)
    assert conversation.questions[1].evidence == ("D1:1", "D2:5")
    assert conversation.unresolved == ("D",)


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 60)), unique=True, min_size=1, max_size=5),
    st.sampled_from(["; ", " ", ", ", ";"]),
    st.sampled_from(["D{}:{}", "D:{}:{}", "D{}:0{}"]),
)
def test_turns_written_into_one_reference_are_found_in_their_order(turns, joint, form):
    ids = [f"D{session}:{turn}" for session, turn in turns]
    reference = joint.join(form.format(*turn) for turn in turns)
    assert _evidence([reference], set(ids)) == (tuple(ids), [])
    assert _evidence([reference], set(ids[1:])) == (tuple(ids[1:]), [reference])


def test_what_the_conversation_does_not_tell_has_no_answer_and_a_trap(write):
    question = load(write).questions[2]
    assert (question.answer, question.trap, question.kind) == ("", "a boat", "adversarial")


def test_numbers_become_text(write):
    assert load(write).questions[1].answer == "2023"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"qa": [{"question": "q", "answer": "a", "evidence": [], "category": 9}]}, "a category of 1 to 5, got 9"),
        ({"qa": [{"question": "q", "evidence": [], "category": 1}]}, "expected an answer to 'q', got none"),
        ({"sample_id": 3}, "conversation 0: expected 'sample_id' to be str, got int '3'"),
        ({"conversation": {"session_1": [], "session_1_date_time": "yesterday"}}, "a time like .*, got 'yesterday'"),
    ],
)
def test_what_is_not_as_published_is_named(write, change, says):
    with pytest.raises(DatasetError, match=says):
        load(write, **change)


def test_turns_that_share_an_id_are_refused(write):
    twice = {**ENTRY["conversation"], "session_2": ENTRY["conversation"]["session_1"]}
    with pytest.raises(DatasetError, match="ids of their own, got 2 twice"):
        load(write, conversation=twice)


def test_the_published_file_loads_whole(published):
    conversations = load_locomo(published)
    assert len(conversations) == 10
    assert sum(len(c.turns) for c in conversations) == 5882
    kinds = Counter(q.kind for c in conversations for q in c.questions)
    assert kinds == {"multi-hop": 282, "temporal": 321, "open": 96, "single-hop": 841, "adversarial": 446}
    assert sum(len(c.unresolved) for c in conversations) == 3
