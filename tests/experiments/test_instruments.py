from dataclasses import replace

import numpy as np
import pytest

from recallgym.envs.outcomes.toy import toy_table
from recallgym.experiments.instruments import INSTRUMENTS, Evidence
from recallgym.experiments.statistics import Scores

TABLE = toy_table(questions=120)


def scores(value: float, spread: float = 0.01) -> Scores:
    noise = spread * np.linspace(-1, 1, 6)[:, None] * np.ones((1, 5))
    return Scores(value + noise, np.ones((6, 5)), tuple(range(6)), tuple("abcde"))


def evidence(table=TABLE, arms=None, **changes) -> Evidence:
    arms = arms or {}
    made = Evidence(
        table=table,
        split="test",
        scores=lambda name, arm: arms[arm],
        direction="higher",
        metric="utility",
        control=("latent", "blind"),
        primary=("a", "b"),
    )
    return replace(made, **changes)


def test_a_reader_that_uses_the_gold_passage_passes_and_one_that_does_not_fails():
    passed = INSTRUMENTS["reader_gold"](evidence())
    assert passed.passed
    assert passed.measured.estimate == pytest.approx(0.6, abs=1e-5)
    deaf = replace(TABLE, u_ref=np.full_like(TABLE.u_ref, -3))
    assert not INSTRUMENTS["reader_gold"](evidence(deaf)).passed


def test_a_table_without_a_gold_passage_cannot_check_its_reader():
    without = replace(TABLE, relation=np.full_like(TABLE.relation, 4))
    check = INSTRUMENTS["reader_gold"](evidence(without))
    assert not check.passed
    assert "there is none" in str(check)


def test_headroom_is_asked_for_beyond_the_dead_zone():
    assert INSTRUMENTS["headroom"](evidence()).passed
    flat = replace(TABLE, u_ref=TABLE.u_ref * 0.01)
    check = INSTRUMENTS["headroom"](evidence(flat))
    assert not check.passed
    assert check.measured.low > 0


@pytest.mark.parametrize(("gap", "passed"), [(0.5, True), (0.0, False), (-0.5, False)])
def test_the_latent_control_must_win(gap, passed):
    arms = {"latent": scores(1 + gap), "blind": scores(1.0, spread=-0.01)}
    assert INSTRUMENTS["latent"](evidence(arms=arms)).passed is passed
    assert INSTRUMENTS["latent"](evidence(arms=arms, direction="lower")).passed is (gap < 0)


def test_noise_must_move_queries_and_leave_them_recognisable():
    spread = np.random.default_rng(0).normal(size=(TABLE.questions, 32)).astype(np.float32)

    def noised(scale: float) -> bool:
        noise = np.random.default_rng(1).normal(size=(4, *spread.shape)) * scale
        table = replace(TABLE, query=spread, noised=(spread + noise).astype(np.float16))
        return INSTRUMENTS["noise"](evidence(table)).passed

    assert noised(0.5)
    assert not noised(0.0)
    assert not noised(50.0)


@pytest.mark.parametrize(("worse", "passed"), [(0.7, True), (0.5, False)])
def test_both_arms_must_judge_better_than_chance(worse, passed):
    arms = {"a": scores(0.8), "b": scores(worse, spread=0.02)}
    check = INSTRUMENTS["judgement"](evidence(arms=arms))
    assert check.passed is passed
    assert check.note.endswith("b")
