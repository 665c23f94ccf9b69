"""Learning while serving, on problems whose answer is known."""

import numpy as np
import pytest
import torch

from recallgym.agents.online import Online, OnlineGate
from recallgym.backends.estimation.drift import DriftRule
from recallgym.policies.causal_gate import CausalGate
from recallgym.policies.rules import KeepAll, RandomGate

POOL, SIZE = 4, 8
SHAPE = {"blocks": (("query", SIZE),), "pool": POOL, "budget": 2}
QUERY = np.random.default_rng(0).normal(size=SIZE).astype(np.float32)
FALLING = DriftRule(low=-1, high=1, window=2, minimum=5)


def gate(seed: int = 0) -> CausalGate:
    made = CausalGate(**SHAPE, hidden=16, keep=0.5, search=0.5, seed=seed)
    sample = torch.randn(64, SIZE, generator=torch.Generator().manual_seed(0))
    made.fit_normaliser(sample, torch.full((SIZE,), -9.0), torch.full((SIZE,), 9.0))
    return made


def keep_probability(online: OnlineGate) -> np.ndarray:
    with torch.no_grad():
        return online.policy.propensity(torch.from_numpy(QUERY)[None])[0].numpy()


def serve(online: OnlineGate, steps: int, start: int = 0) -> list[np.ndarray]:
    """The first candidate helps, the second harms, the others do nothing."""
    done = []
    for i in range(start, start + steps):
        act = online.act(QUERY)
        bits = act.bits.numpy()
        online.learn(i / 10, QUERY, act, float(0.5 * bits[0] - 0.5 * bits[1]), -0.5)
        done.append(bits)
    return done


def test_it_comes_to_keep_what_helps_and_to_reject_what_harms() -> None:
    online = OnlineGate(gate(), Online(learning_rate=1e-2), seed=0)
    serve(online, 600)
    keep = keep_probability(online)
    assert keep[0] > 0.8
    assert keep[1] < 0.2
    assert online.likelier(QUERY)[0]
    assert not online.likelier(QUERY)[1]


def test_the_deployed_policy_stays_as_it_was() -> None:
    deployed = gate()
    before = {name: value.clone() for name, value in deployed.state_dict().items()}
    serve(OnlineGate(deployed, Online(learning_rate=1e-2), seed=0), 20)
    assert all(torch.equal(before[name], value) for name, value in deployed.state_dict().items())


@pytest.mark.parametrize("utility", [-0.05, -0.1 + 1e-9, 0.0, float("nan")])
def test_nothing_is_learned_in_the_dead_zone_or_without_an_outcome(utility: float) -> None:
    online = OnlineGate(gate(), Online(learning_rate=1e-2, uniform=0), seed=0)
    before = keep_probability(online)
    online.learn(0.0, QUERY, online.act(QUERY), utility, -0.5)
    np.testing.assert_array_equal(keep_probability(online), before)


def test_harm_makes_what_was_done_less_likely_and_help_more() -> None:
    for utility, sign in ((-0.5, -1), (0.5, 1)):
        online = OnlineGate(gate(), Online(learning_rate=1e-3, uniform=0), seed=1)
        act = online.act(QUERY)
        before = keep_probability(online)
        online.learn(0.0, QUERY, act, utility, -0.5)
        towards = (keep_probability(online) - before) * np.where(act.bits.numpy() > 0.5, 1, -1)
        assert (sign * towards > 0).all()


def test_uniform_masks_are_a_fixed_share_with_known_propensity_and_teach_nothing() -> None:
    online = OnlineGate(gate(), Online(learning_rate=1e-2, uniform=0.3), seed=0)
    acts = [online.act(QUERY) for _ in range(2000)]
    uniform = [act for act in acts if act.uniform]
    assert len(uniform) / len(acts) == pytest.approx(0.3, abs=0.04)
    assert all((act.propensity == 0.5).all() for act in uniform)
    assert np.mean([act.bits.mean() for act in uniform]) == pytest.approx(0.5, abs=0.05)
    before = keep_probability(online)
    online.learn(0.0, QUERY, uniform[0], 1.0, -0.5)
    np.testing.assert_array_equal(keep_probability(online), before)


def test_what_is_drawn_does_not_depend_on_what_is_learned() -> None:
    slow, fast = (OnlineGate(gate(), Online(learning_rate=rate), seed=4) for rate in (1e-9, 1e-12))
    for one, other in zip(serve(slow, 50), serve(fast, 50), strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_expert_moves_the_last_layer_towards_what_they_would_have_kept_and_nothing_else() -> None:
    online = OnlineGate(gate(), Online(learning_rate=0, label_rate=1e-2), seed=0)
    hidden = online.policy.hidden.weight.clone()  # type: ignore[union-attr, operator]
    for _ in range(100):
        online.teach(QUERY, np.array([True, False, False, True]))
    assert (keep_probability(online)[:POOL].round() == [1, 0, 0, 1]).all()
    assert torch.equal(hidden, online.policy.hidden.weight)  # type: ignore[arg-type, union-attr]


def test_a_fall_puts_the_deployed_last_layer_back_and_fits_it_to_the_last_days() -> None:
    online = OnlineGate(gate(), Online(learning_rate=1e-2, drift=FALLING, warm_up=0), seed=0)
    deployed = gate()
    resets = [online.learn(i / 10, QUERY, online.act(QUERY), 0.3, 0.5) for i in range(60)]
    resets += [online.learn(6 + i / 10, QUERY, online.act(QUERY), 0.3, -0.5) for i in range(25)]
    assert sum(resets) == online.resets == 1
    index = resets.index(True)
    again = OnlineGate(deployed, Online(learning_rate=1e-2, drift=FALLING, warm_up=0), seed=0)
    for i in range(index + 1):
        again.learn(i / 10 if i < 60 else 6 + (i - 60) / 10, QUERY, again.act(QUERY), 0.3, 0.5 if i < 60 else -0.5)
    assert torch.equal(again.policy.output.weight, deployed.output.weight)  # type: ignore[arg-type, union-attr]
    assert not torch.equal(again.policy.hidden.weight, deployed.hidden.weight)  # type: ignore[arg-type, union-attr]


def test_the_warm_up_learns_from_the_last_days_alone() -> None:
    online = OnlineGate(gate(), Online(learning_rate=1e-9, drift=FALLING, warm_up=200, warm_up_rate=1e-2), seed=0)
    for i in range(120):
        act = online.act(QUERY)
        good = act.bits[0].item() if i >= 38 else 1 - act.bits[0].item()  # turns round two days before the fall
        if online.learn(i / 10, QUERY, act, good, 0.5 if i < 60 else -0.5):
            break
    assert online.resets == 1
    assert keep_probability(online)[0] > 0.6


def test_a_gate_goes_on_bit_identically_from_its_state() -> None:
    settings = Online(learning_rate=1e-2, label_rate=1e-3, drift=FALLING)
    whole, first = OnlineGate(gate(), settings, seed=2), OnlineGate(gate(), settings, seed=2)
    serve(whole, 60)
    serve(first, 30)
    second = OnlineGate(gate(5), settings, seed=9)
    second.set_state(first.get_state())
    serve(second, 30, start=30)
    np.testing.assert_array_equal(keep_probability(second), keep_probability(whole))
    assert torch.equal(second.act(QUERY).bits, whole.act(QUERY).bits)


def test_rules_act_as_they_are_and_refuse_to_learn() -> None:
    still = Online(learning_rate=0)
    assert OnlineGate(KeepAll(**SHAPE), still, seed=0).act(QUERY).bits.all()
    draws = [OnlineGate(RandomGate(**SHAPE), still, seed=s).act(QUERY).bits.mean().item() for s in range(50)]
    assert 0.3 < np.mean(draws) < 0.8
    with pytest.raises(ValueError, match="only a gate with head=rank learns online, got KeepAll; use rates of 0"):
        OnlineGate(KeepAll(**SHAPE), Online(), seed=0)


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match=r"rates and passes of at least 0 and a uniform share in \[0, 1\)"):
        Online(uniform=1.0)
