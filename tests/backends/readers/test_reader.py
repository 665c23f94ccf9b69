"""The reader over a prefix trie says what plain forward passes and greedy decoding say, set by set."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from recallgym.backends.interventions.sets import reading_sets
from recallgym.backends.readers.prompt import Prompt
from recallgym.backends.readers.reader import Reader

pytestmark = pytest.mark.xdist_group("reader")

PASSAGES = [
    "shelf.Box(size=12, colour='red')",
    "shelf.Box, parameter size: int. Edge length in centimetres.",
    "shelf.Crate(size=30)",
    "长度参数 size 的默认值是 12。",
]
QUESTION, ANSWER = "What is the default of `size` in `shelf.Box`?", "12"


def prompt_ids(reader: Reader, question: str, passages: list[str]) -> list[int]:
    ids = reader.encode(reader.prompt.head.format(question=question), first=True)
    for text in passages:
        ids += reader.passage_tokens(text)
    return ids + reader.encode(reader.prompt.tail.format(question=question))


@torch.inference_mode()
def plain(reader: Reader, ids: list[int], reference: list[int]) -> tuple[float, float, float, str]:
    """Scores one prompt without a cache, a batch or a trie."""
    model = reader.trie.model
    log_p = model(torch.tensor([ids + reference])).logits[0].log_softmax(-1)
    u_ref = float(np.mean([log_p[len(ids) - 1 + k, t] for k, t in enumerate(reference)]))
    tokens: list[int] = []
    scores: list[float] = []
    spreads: list[float] = []
    while len(tokens) < reader.max_new_tokens:
        step = model(torch.tensor([ids + tokens])).logits[0, -1].log_softmax(-1)
        token = int(step.argmax())
        text = reader.trie.tokenizer.decode([token])
        stop = token == reader.trie.tokenizer.eos_token_id or any(s in text for s in reader.prompt.stops)
        if not stop or not tokens:
            scores.append(float(step[token]))
            spreads.append(float(-(step.exp() * step).sum()))
        if stop:
            break
        tokens.append(token)
    answer = reader.trie.tokenizer.decode(tokens, skip_special_tokens=True).strip()
    return u_ref, float(np.mean(scores)), float(np.mean(spreads)), answer


def assert_equals_plain(reader: Reader, question: str, answer: str, passages: list[str], sets: np.ndarray) -> None:
    outcomes = reader.score(question, answer, passages, sets)
    for i, row in enumerate(sets):
        ids = prompt_ids(reader, question, [passages[j] for j in np.flatnonzero(row)])
        u_ref, u_self, entropy, text = plain(reader, ids, reader.encode(answer))
        assert outcomes.tokens[i] == len(ids)
        assert outcomes.answers[i] == text
        np.testing.assert_allclose(
            [outcomes.u_ref[i], outcomes.u_self[i], outcomes.entropy[i]], [u_ref, u_self, entropy], atol=1e-4
        )


def test_every_set_equals_the_plain_computation(reader: Reader) -> None:
    assert_equals_plain(reader, QUESTION, ANSWER, PASSAGES, reading_sets(4, 2))


@settings(max_examples=6, deadline=None)
@given(
    bits=st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=3),
    answer=st.sampled_from(["12", "red", "None", "默认", "a much longer answer than any"]),
)
def test_any_collection_of_sets_and_any_answer_equals_the_plain_computation(
    reader: Reader, bits: list[list[bool]], answer: str
) -> None:
    assert_equals_plain(reader, QUESTION, answer, PASSAGES, np.array(bits))


def test_pools_scored_together_equal_pools_scored_apart_and_share_work(reader: Reader) -> None:
    sets = reading_sets(3, 2)
    pools = [PASSAGES[:3], [PASSAGES[0], PASSAGES[3], PASSAGES[2]]]
    reader.trie.tokens_run = 0
    together = reader.score_pools(QUESTION, ANSWER, pools, sets)
    shared = reader.trie.tokens_run
    reader.trie.tokens_run = 0
    apart = [reader.score(QUESTION, ANSWER, pool, sets) for pool in pools]
    assert shared < reader.trie.tokens_run
    for one, other in zip(together, apart, strict=True):
        np.testing.assert_allclose(one.u_ref, other.u_ref, atol=1e-4)
        np.testing.assert_allclose(one.u_self, other.u_self, atol=1e-4)
        assert one.answers == other.answers


def test_the_trie_runs_far_fewer_tokens_than_the_prompts_hold(reader: Reader) -> None:
    reader.trie.tokens_run = 0
    outcomes = reader.score(QUESTION, ANSWER, PASSAGES, reading_sets(4, 3))
    assert reader.trie.tokens_run < 0.8 * outcomes.tokens.sum()


def test_the_gold_passage_makes_the_answer_likelier_and_right(reader: Reader) -> None:
    outcomes = reader.score(QUESTION, ANSWER, PASSAGES, np.array([[0, 0, 0, 0], [1, 0, 0, 0]], dtype=bool))
    assert outcomes.u_ref[1] > outcomes.u_ref[0] + 1
    assert outcomes.answers[1] == ANSWER


def test_the_reference_decides_u_ref_and_nothing_else(reader: Reader) -> None:
    sets = reading_sets(3, 1)
    one, other = (reader.score(QUESTION, answer, PASSAGES[:3], sets) for answer in ("12", "red"))
    assert one.answers == other.answers
    np.testing.assert_allclose(one.u_self, other.u_self, atol=1e-4)
    np.testing.assert_allclose(one.entropy, other.entropy, atol=1e-4)
    assert not np.allclose(one.u_ref, other.u_ref)


def test_long_passages_are_cut_to_the_limit(reader: Reader) -> None:
    short = replace(reader, max_passage_tokens=8)
    assert len(short.passage_tokens("word " * 100)) <= 8 + len(reader.passage_tokens(""))


def test_prompts_survive_a_round_trip_as_plain_data() -> None:
    prompt = Prompt(head="H", stops=("x",))
    assert Prompt.from_dict(prompt.to_dict()) == prompt


def test_an_unknown_dtype_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="dtype must be one of float32, bfloat16, float16, got 'int8'"):
        Reader.load(dtype="int8")
