"""Rules decide as their names say, with exact propensities."""

import pytest
import torch

from recallgym.policies import BestConstant, KeepAll, KeepNone, RandomGate, TopOne

ARGUMENTS = {"blocks": (("query", 4), ("budget", 2)), "pool": 4, "budget": 2, "bank_size": 9}
X = torch.randn(3, 6, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (KeepAll, [1, 1, 1, 1, 1]),
        (KeepNone, [0, 0, 0, 0, 0]),
        (TopOne, [1, 0, 0, 0, 1]),
        (BestConstant, [1, 1, 1, 1, 1]),
    ],
)
def test_deterministic_rules_have_propensities_of_exactly_zero_and_one(rule, expected):
    policy = rule(**ARGUMENTS)
    expected = torch.tensor([expected] * 3, dtype=torch.float32)
    assert torch.equal(policy.decide(X), expected)
    assert torch.equal(policy.propensity(X), expected)
    bits, log_prob = policy.sample(X, torch.Generator().manual_seed(0))
    assert torch.equal(bits, expected)
    torch.testing.assert_close(log_prob, torch.zeros(3))
    assert torch.isfinite(policy(X)).all()


def test_the_random_gate_draws_half_of_the_candidates_and_always_searches():
    policy = RandomGate(**ARGUMENTS)
    assert policy.stochastic
    assert torch.equal(policy.propensity(X)[0], torch.tensor([0.5, 0.5, 0.5, 0.5, 1.0]))
    bits, log_prob = policy.sample(X[:1].expand(10_000, -1), torch.Generator().manual_seed(0))
    torch.testing.assert_close(bits.mean(0), torch.tensor([0.5, 0.5, 0.5, 0.5, 1.0]), atol=0.02, rtol=0)
    torch.testing.assert_close(log_prob, torch.full((10_000,), 4 * torch.tensor(0.5).log().item()))


def test_the_best_constant_takes_found_bits_and_keeps_them_in_its_state():
    policy = BestConstant(**ARGUMENTS)
    bits = torch.tensor([0, 1, 0, 0, 1])
    policy.set_bits(bits)
    assert torch.equal(policy.decide(X[:1])[0], bits.float())
    copy = BestConstant(**ARGUMENTS)
    copy.load_state_dict(policy.state_dict())
    assert torch.equal(copy.decide(X), policy.decide(X))
    assert torch.equal(BestConstant([0, 1, 0, 0, 1], **ARGUMENTS).decide(X), policy.decide(X))


def test_a_mask_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match=r"expected 5 bits"):
        BestConstant([1, 1], **ARGUMENTS)
    with pytest.raises(ValueError, match="expected 5 bits"):
        BestConstant(**ARGUMENTS).set_bits(torch.ones(4))
