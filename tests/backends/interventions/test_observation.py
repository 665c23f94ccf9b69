"""The layout and encoding of observations."""

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st

from recallgym.backends.interventions.observation import (
    BLOCKS,
    CONTENT_BLOCKS,
    ObservationLayout,
    encode,
    make_layout,
    rank_features,
)

SIZES = {"query": 5, "domain": 3, "pool": 4, "content": 2, "conditions": 2}
SHAPES = {
    "query": (5,),
    "domain": (3,),
    "feedback": (2,),
    "budget": (2,),
    "ranks": (4, 4),
    "content": (4, 2),
    "memory": (4,),
    "latent": (2,),
}
observes = st.permutations(BLOCKS).flatmap(lambda names: st.integers(1, len(names)).map(lambda n: names[:n]))


@given(observes, st.integers(0, 2**32 - 1))
def test_each_block_is_found_where_the_layout_says(observe: list[str], seed: int) -> None:
    rng = np.random.default_rng(seed)
    layout = make_layout(observe, **SIZES)
    parts = {name: rng.uniform(0, 1, (3, *shape)).astype(np.float32) for name, shape in SHAPES.items()}
    parts["feedback"][:, 0] *= -1
    observation = encode(layout, parts)
    assert observation.shape == (3, layout.size) == (3, sum(np.prod(SHAPES[name]) for name in observe))
    assert observation.dtype == np.float32
    for name in observe:
        np.testing.assert_array_equal(observation[:, layout.slice(name)], parts[name].reshape(3, -1))


@given(observes)
def test_a_layout_survives_json(observe: list[str]) -> None:
    layout = make_layout(observe, **SIZES)
    assert ObservationLayout.from_dict(json.loads(json.dumps(layout.to_dict()))) == layout


@given(observes)
def test_bounds_are_finite_ordered_and_enforced(observe: list[str]) -> None:
    layout = make_layout(observe, **SIZES)
    assert np.isfinite([layout.low, layout.high]).all()
    assert (layout.low < layout.high).all()
    for extreme in (-1e9, 1e9):
        observation = encode(layout, {name: np.full((1, *shape), extreme) for name, shape in SHAPES.items()})
        np.testing.assert_array_equal(observation[0], layout.low if extreme < 0 else layout.high)


def test_the_bounds_of_ranks_repeat_for_each_candidate() -> None:
    layout = make_layout(["ranks"], **SIZES)
    assert layout.low.reshape(4, 4).tolist() == [[-1000, -1000, -1, -1]] * 4


@pytest.mark.parametrize("block", BLOCKS)
def test_only_blocks_about_candidates_make_an_observation_content_aware(block: str) -> None:
    assert make_layout([block], **SIZES).content_free == (block not in CONTENT_BLOCKS)


def test_rank_features_are_grouped_by_candidate() -> None:
    scores, ranks = np.array([[[0.5, 7.0], [0.25, 9.0]]]), np.array([[[0, 1], [1, 0]]])
    layout = make_layout(["ranks"], query=1, domain=1, pool=2, content=1, conditions=1)
    assert encode(layout, {"ranks": rank_features(scores, ranks)}).tolist() == [[0.5, 7, 0, 1, 0.25, 9, 1, 0]]


def test_nan_is_passed_on_for_the_bundle_to_judge() -> None:
    assert np.isnan(encode(make_layout(["budget"], **SIZES), {"budget": np.array([[np.nan, 0.5]])})).tolist() == [
        [True, False]
    ]


def test_bad_layouts_and_parts_are_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match="unknown observation block 'gold'; expected some of query"):
        make_layout(["gold"], **SIZES)
    with pytest.raises(ValueError, match="must differ"):
        make_layout(["query", "query"], **SIZES)
    with pytest.raises(ValueError, match="at least one block"):
        make_layout([], **SIZES)
    with pytest.raises(ValueError, match="'domain' must have a positive multiple of 1"):
        make_layout(["domain"], **SIZES | {"domain": 0})
    layout = make_layout(["query", "budget"], **SIZES)
    with pytest.raises(ValueError, match="missing observation blocks: budget"):
        encode(layout, {"query": np.zeros((1, 5))})
    with pytest.raises(ValueError, match=r"'query' must have 5 entries a row, got an array of shape \(1, 4\)"):
        encode(layout, {"query": np.zeros((1, 4)), "budget": np.zeros((1, 2))})
    with pytest.raises(KeyError, match="no block 'ranks'"):
        layout.slice("ranks")
