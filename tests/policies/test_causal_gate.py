"""The gate: what its heads, activations and inputs mean, and that nothing but its observation decides."""

import pytest
import torch
from hypothesis import given, settings, strategies as st

from recallgym.policies import CausalGate

POOL, BUDGET, FEATURES = 6, 3, 5
CONTEXT = (("query", 8), ("feedback", 2), ("budget", 2))
FULL = (*CONTEXT, ("ranks", 4 * POOL), ("content", FEATURES * POOL))
BANK = (*CONTEXT, ("memory", POOL))


def make(blocks=CONTEXT, **options) -> CausalGate:
    """A gate with weights large enough that its outputs differ."""
    gate = CausalGate(blocks=blocks, pool=POOL, budget=BUDGET, hidden=16, **options)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in gate.parameters():
            if parameter.ndim:
                parameter.add_(0.5 * torch.randn(parameter.shape, generator=generator))
    return gate


def observe(gate: CausalGate, batch: int = 5, seed: int = 0) -> torch.Tensor:
    x = torch.randn(batch, gate.observation_size, generator=torch.Generator().manual_seed(seed))
    if "memory" in gate._slices:
        x[:, gate._slices["memory"]] = torch.randint(
            0, gate.bank_size, (batch, POOL), generator=torch.Generator().manual_seed(seed)
        ).float()
    return x


def test_keep_probability_is_one_minus_exp_of_the_softplus_mask_and_the_sigmoid_mask_itself():
    soft, hard = make(), make(activation="sigmoid")
    x = observe(soft)
    torch.testing.assert_close(soft.propensity(x)[:, :POOL], 1 - torch.exp(-soft.mask(x)))
    torch.testing.assert_close(hard.propensity(x)[:, :POOL], hard.mask(x))
    torch.testing.assert_close(soft(x), hard(x))


def test_softmax_masks_sum_to_one_and_keep_with_k_times_the_mask_within_the_floor():
    gate = make(normalise="softmax")
    x = observe(gate)
    torch.testing.assert_close(gate.mask(x).sum(-1), torch.ones(len(x)))
    torch.testing.assert_close(gate.propensity(x)[:, :POOL], (BUDGET * gate.mask(x)).clamp(1e-3, 1 - 1e-3))


def test_boost_is_alpha_times_mask_and_doses_are_its_clip():
    gate = make(alpha=0.5)
    x = observe(gate)
    torch.testing.assert_close(gate.boost(x), 0.5 * gate.mask(x))
    torch.testing.assert_close(gate.dose(x)[:, :POOL], gate.boost(x).clamp(0, 1))
    torch.testing.assert_close(gate.dose(x)[:, POOL], gate.propensity(x)[:, POOL])


def test_alpha_learns_from_doses_and_not_from_bits():
    gate = make()
    gate.mean_dose(observe(gate)).sum().backward()
    assert gate.alpha.grad.abs() > 0
    gate.zero_grad()
    gate(observe(gate)).sum().backward()
    assert gate.alpha.grad is None


def test_the_published_thresholds_cut_at_nearly_the_same_pre_activation():
    z = torch.tensor([-4.70, -4.598, -4.50])
    soft, sigmoid = torch.nn.functional.softplus(z) >= 0.01, torch.sigmoid(z) >= 0.01
    assert soft.tolist() == [False, True, True]
    assert sigmoid.tolist() == [False, False, True]


def test_a_threshold_decides_by_the_mask_and_leaves_the_search_bit_alone():
    gate = make(threshold=0.3)
    x = observe(gate, 64)
    assert torch.equal(gate.decide(x)[:, :POOL].bool(), gate.mask(x) >= 0.3)
    assert torch.equal(gate.decide(x)[:, POOL].bool(), gate.propensity(x)[:, POOL] >= 0.5)


def test_the_bank_head_gives_what_the_full_linear_layer_would_give_at_the_retrieved_memories():
    gate = make(BANK, head="bank", bank_size=11)
    x = observe(gate)
    inputs = gate.normaliser(x)[:, :12] * gate.balance
    hidden = torch.nn.functional.gelu(gate.hidden(inputs))
    memory = x[:, -POOL:].long()
    torch.testing.assert_close(gate(x)[:, :POOL], gate.bank(hidden).gather(1, memory))


def test_a_content_free_bank_gate_masks_a_memory_alike_wherever_it_stands():
    gate = make(BANK, head="bank", bank_size=11)
    x = observe(gate)
    swapped = x.clone()
    swapped[:, -POOL:] = x[:, -POOL:].flip(1)
    assert torch.equal(gate(x)[:, :POOL].flip(1), gate(swapped)[:, :POOL])


def test_the_shared_scorer_follows_its_candidates_when_they_change_places():
    gate = make(FULL)
    gate.fit_normaliser(
        observe(gate, 256, seed=3),
        torch.full((gate.observation_size,), -9.0),
        torch.full((gate.observation_size,), 9.0),
    )
    x = observe(gate)
    order = torch.randperm(POOL, generator=torch.Generator().manual_seed(0))
    moved = x.clone()
    for name, width in (("ranks", 4), ("content", FEATURES)):
        part = gate._slices[name]
        moved[:, part] = x[:, part].unflatten(1, (POOL, width))[:, order].flatten(1)
    hidden = torch.nn.functional.gelu(gate.hidden(gate.normaliser(x)[:, :12] * gate.balance))
    placed = gate.output(hidden)
    torch.testing.assert_close((gate(moved) - placed)[:, :POOL], (gate(x) - placed)[:, order])
    torch.testing.assert_close(gate(moved)[:, POOL], gate(x)[:, POOL])


def test_every_block_enters_the_hidden_layer_with_the_same_weight_whatever_its_width():
    gate = CausalGate(blocks=(("query", 400), ("feedback", 2), ("budget", 2)), pool=POOL, budget=BUDGET)
    squares = (gate.balance**2).split([400, 2, 2])
    torch.testing.assert_close(torch.stack([part.sum() for part in squares]), torch.ones(3))


def test_the_rank_head_ignores_the_memory_block():
    gate = make(BANK, bank_size=11)
    x = observe(gate)
    other = x.clone()
    other[:, -POOL:] = 0
    assert torch.equal(gate(x), gate(other))


def test_the_untrained_gate_decides_to_keep_everything_and_draws_with_the_stated_probabilities():
    for blocks, options in ((CONTEXT, {}), (FULL, {}), (BANK, {"head": "bank", "bank_size": 9})):
        gate = CausalGate(blocks=blocks, pool=POOL, budget=BUDGET, **options)
        x = observe(gate, 256)
        assert (gate.propensity(x)[:, :POOL] - 0.55).abs().max() < 0.05
        assert (gate.propensity(x)[:, POOL] - 0.97).abs().max() < 0.01
        assert gate.decide(x).all()


def test_initial_weights_depend_on_the_seed_alone_and_leave_the_global_generator_as_it_was():
    state = torch.get_rng_state()
    first, same, other = (CausalGate(blocks=CONTEXT, pool=POOL, budget=BUDGET, seed=s) for s in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(first.hidden.weight, same.hidden.weight)
    assert not torch.equal(first.hidden.weight, other.hidden.weight)


def test_the_normaliser_standardises_clips_to_the_bounds_and_travels_in_the_state():
    gate = make(FULL)
    sample = 3 + 2 * observe(gate, 512, seed=5)
    low, high = torch.full((gate.observation_size,), -4.0), torch.full((gate.observation_size,), 9.0)
    gate.fit_normaliser(sample, low, high)
    x = gate.normaliser(sample)
    assert x.mean(0).abs().max() < 0.3
    torch.testing.assert_close(x.mean(), torch.tensor(0.0), atol=1e-3, rtol=0)
    assert torch.equal(
        gate(torch.full((1, gate.observation_size), 9.0)), gate(torch.full((1, gate.observation_size), 1e6))
    )
    port = gate.inputs[0]
    assert (port.low, port.high) == (tuple(low.tolist()), tuple(high.tolist()))
    ranks = gate.normaliser.mean[gate._slices["ranks"]].unflatten(0, (POOL, 4))
    assert torch.equal(ranks, ranks[:1].expand_as(ranks))
    copy = make(FULL)
    copy.load_state_dict(gate.state_dict())
    assert torch.equal(copy(sample), gate(sample))


def test_a_constant_feature_is_centred_and_never_divides_by_zero():
    gate = make()
    sample = torch.ones(16, gate.observation_size)
    gate.fit_normaliser(sample, torch.full((12,), -9.0), torch.full((12,), 9.0))
    assert torch.equal(gate.normaliser(sample), torch.zeros_like(sample))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31), batch=st.integers(1, 9))
def test_a_row_never_depends_on_the_rest_of_its_batch(seed, batch):
    gate = make(FULL)
    x = observe(gate, batch, seed)
    torch.testing.assert_close(gate(x), torch.cat([gate(row[None]) for row in x]))


def test_samples_follow_the_propensity_and_report_their_probability():
    gate = make()
    x = observe(gate, 1).expand(20_000, -1)
    bits, log_prob = gate.sample(x, torch.Generator().manual_seed(0))
    torch.testing.assert_close(bits.mean(0), gate.propensity(x[:1])[0], atol=0.015, rtol=0)
    p = gate.propensity(x)
    torch.testing.assert_close(log_prob, torch.where(bits > 0, p, 1 - p).log().sum(-1), atol=1e-4, rtol=1e-4)
    again, _ = gate.sample(x, torch.Generator().manual_seed(0))
    assert torch.equal(bits, again)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"head": "list"}, "head must be one of rank, bank, got 'list'"),
        ({"activation": "relu"}, "activation must be one of softplus, sigmoid"),
        ({"normalise": "max"}, "normalise must be one of none, softmax"),
        ({"head": "bank"}, "needs a memory block and bank_size > 0"),
        ({"keep": 1.0}, "keep must lie strictly between 0 and 1"),
        ({"blocks": (("query", 8), ("content", 7))}, "the same features for each of 6 candidates"),
        ({"blocks": (("content", 12),)}, "at least one block about the query or the session"),
        ({"budget": 7}, "budget must lie in 1..pool"),
    ],
)
def test_bad_options_name_what_was_expected(options, message):
    with pytest.raises(ValueError, match=message):
        CausalGate(**({"blocks": CONTEXT, "pool": POOL, "budget": BUDGET} | options))
