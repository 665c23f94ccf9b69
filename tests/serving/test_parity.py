"""Parity inputs reach what they should, and ties are left out of them."""

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from recallgym.policies.base import Policy
from recallgym.serving.export import ExportError
from recallgym.serving.parity import drop_ties, edge_rows, random_rows
from recallgym.serving.runtime import Runtime

LOW = np.array([-100, -20, 0, 0], np.float32)
HIGH = np.array([100, 0, 20, 1], np.float32)


@given(st.integers(0, 2**32 - 1))
def test_random_inputs_are_valid(seed):
    rows = random_rows(LOW, HIGH, 16, np.random.default_rng(seed))
    assert rows.dtype == np.float32
    assert ((rows >= LOW) & (rows <= HIGH)).all()


def test_random_inputs_have_every_magnitude():
    size = np.abs(random_rows(LOW, HIGH, 2000, np.random.default_rng(0))[:, 0])
    assert (size < 1e-3).mean() > 0.1
    assert (size > 1).mean() > 0.1


def test_edge_inputs_hold_the_bounds_and_just_beyond():
    rows = edge_rows(LOW, HIGH)
    valid = ((rows >= LOW) & (rows <= HIGH)).all(axis=1)
    assert valid.sum() == 4
    assert (~valid).sum() == 8
    assert (rows == LOW).all(axis=1).any()
    assert (rows == HIGH).all(axis=1).any()
    assert (rows == 0).all(axis=1).any()
    assert np.isnan(rows).any()
    assert np.isinf(rows).any()
    finite = rows[~valid & np.isfinite(rows).all(axis=1)]
    assert len(finite) == 4
    assert (np.minimum(finite - LOW, HIGH - finite).min(axis=1) > -1e-4).all()


def test_rows_on_a_boundary_are_left_out():
    def graph(rows):
        bits = rows.sum(axis=1, keepdims=True) >= 1
        bits = np.repeat(bits, 3, axis=1)
        return bits, bits.astype(np.float32), bits.astype(np.float32), np.zeros(len(rows), bool)

    runtime = Runtime(graph, blocks=[("query", 4)], max_batch=64)
    low, high = np.full(4, -1, np.float32), np.full(4, 1, np.float32)
    rows = np.array([[1, 0, 0, 0], [0.5, 0, 0, 0], [1, 0.1, 0, 0]], np.float32)
    kept = drop_ties(runtime, rows, low, high, np.random.default_rng(0))
    np.testing.assert_array_equal(kept, rows[1:])


class Undecided(Policy):
    """Every decision is a tie that rounding breaks."""

    def forward(self, observation):
        digits = observation.abs().sum(-1, keepdim=True) * 1e9
        return torch.sin(digits * torch.arange(1, self.pool + 2))


def test_a_policy_of_nothing_but_ties_is_refused(tmp_path, layout_of, export):
    layout = layout_of("query", "budget")
    with pytest.raises(ExportError, match="input is a tie"):
        export(Undecided(blocks=layout.blocks, pool=6, budget=3), tmp_path / "bundle", layout)
