"""A computable table: additive effects, so the optimum of every row is known in closed form."""

import numpy as np

from ...backends.interventions.sets import reading_sets
from .table import RELATIONS, SPLITS, OutcomeTable


def toy_table(seed: int = 0, *, questions: int = 60, types: int = 4, pool: int = 6, budget: int = 3) -> OutcomeTable:
    """Builds a table in which the question's type says which candidates help.

    U_ref(S) = -3 + the sum over S of an effect: +0.6 for candidates that help the question's type, -0.5 for the
    others, so the best set of a row is exactly its helpful candidates (at most ``budget`` of them). In the degraded
    condition every effect is negative and nothing should be read. U_self follows U_ref, so that feedback reveals
    the condition.

    Args:
        seed: Seed of the draws.
        questions: Number of questions Q, in 6 families of which 3 train, 1 validates and 2 test.
        types: Number of query types; a type's embedding is one-hot with small noise.
        pool: Candidates N.
        budget: Reading budget k.

    Returns:
        A table with conditions ``healthy`` and ``degraded``.
    """
    rng = np.random.default_rng(seed)
    sets = reading_sets(pool, budget).astype(np.float32)  # (S, N)
    conditions = 2
    kind = np.arange(questions) % types  # (Q,)
    helpful = np.zeros((types, pool), dtype=bool)
    for t in range(types):
        helpful[t, rng.choice(pool, size=1 + t % budget, replace=False)] = True
    effects = np.where(helpful[kind], 0.6, -0.5).astype(np.float32)  # (Q, N)
    effects = np.repeat(effects[:, None], conditions, axis=1)
    effects[:, 1] = -0.4
    effects = effects.reshape(-1, pool)  # (R, N)
    rows = questions * conditions
    u_ref = (-3 + effects @ sets.T).astype(np.float32)  # (R, S)
    noise = rng.normal(0, 0.05, u_ref.shape)
    query = np.eye(types, 8)[kind] + rng.normal(0, 0.05, (questions, 8))
    scores = np.sort(rng.uniform(0, 1, (rows, pool, 2)), axis=1)[:, ::-1]
    family = np.arange(questions) // types % 6
    relation = np.where(effects > 0, RELATIONS.index("gold"), RELATIONS.index("contradicting"))
    content = np.stack([effects + rng.normal(0, 0.1, effects.shape), rng.uniform(0, 1, effects.shape)], axis=-1)
    f32, names = np.float32, [f"toy{i}" for i in range(6)]
    return OutcomeTable(
        u_ref=u_ref,
        u_self=np.minimum(0.5 * u_ref + noise, 0).astype(f32),
        entropy=np.maximum(-0.3 * u_ref + noise, 0).astype(f32),
        exact_match=(u_ref > -2.5).astype(np.uint8),
        f1=(u_ref > -2.5).astype(f32),
        answer=np.zeros(u_ref.shape, np.int32),
        tokens=np.tile(20 + 40 * sets.sum(1), (rows, 1)).astype(np.uint16),
        seconds=np.full(rows, 0.1, f32),
        query=query.astype(f32),
        noised=(query + rng.normal(0, 0.3, (4, *query.shape))).astype(np.float16),
        domain=np.eye(3, dtype=f32)[kind % 3],
        passage=np.arange(rows * pool, dtype=np.int32).reshape(rows, pool),
        ranks=np.tile(np.arange(pool, dtype=np.int16)[:, None], (rows, 1, 2)),
        scores=scores.astype(f32),
        content=content.astype(f32),
        relation=relation.astype(np.uint8),
        strata=np.stack([effects.max(1) > 0, effects.max(1) <= 0], axis=1),
        split=np.array([0, 0, 0, 1, 2, 2], np.uint8)[family],
        family=family.astype(np.uint8),
        meta={
            "name": "toy",
            "budget": budget,
            "conditions": ["healthy", "degraded"],
            "families": names,
            "splits": list(SPLITS),
            "relations": list(RELATIONS),
            "retrievers": ["dense", "sparse"],
            "strata": ["gold present", "gold absent"],
            "noises": ["typos", "paraphrase", "truncation", "prefix"],
            "domain_features": ["a", "b", "c"],
            "content_features": ["signal", "noise"],
            "questions": [{"id": f"toy/{i}", "kind": str(kind[i]), "text": "", "answer": ""} for i in range(questions)],
            "passages": [{"id": f"toy/{i}"} for i in range(rows * pool)],
            "answers": [""],
            "fingerprint": f"toy-{seed}-{questions}-{types}-{pool}-{budget}",
        },
    )
