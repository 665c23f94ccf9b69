from pathlib import Path

import pytest

from recallgym.envs.outcomes.toy import toy_table

TINY = """
name: tiny
claim: T1
statement: Hard beats soft.
base:
  - agent=exact_gradient
  - agent.steps=1024
  - agent.envs=64
  - agent.validate_every=1
  - agent.validation_sessions=16
  - env.early_exit=false
  - env.token_budget=null
  - policy.hidden=32
  - policy.keep=0.5
evaluation: {sessions: 24}
arms:
  hard: {}
  soft: {replay: [env.mode=soft]}
  keep_all: {role: floor, overrides: [policy=keep_all, agent=none]}
  oracle:
    role: ceiling
    overrides: [policy=keep_all, agent=none]
    evaluation: {_target_: recallgym.experiments.evaluators.OracleSessions}
metric:
  name: utility
  definition: {numerator: utility, denominator: steps, label: all steps}
  unit: nats a token
  direction: higher
secondary:
  - name: leakage
    definition: {numerator: leaked, denominator: rejected, label: all}
    unit: share
    direction: lower
    by_construction: true
    reported: {hard: 0.017, soft: 0.23}
primary: {a: hard, b: soft}
comparisons: [{a: hard, b: keep_all}]
delta: 0.03
instrument: [reader_gold, headroom]
notes: [A note.]
seeds: 3
quick: {seeds: 2, overrides: [agent.steps=512], cost: half the training}
"""


@pytest.fixture(scope="session")
def toy_path(tmp_path_factory) -> Path:
    """The toy table on disk."""
    return toy_table().save(tmp_path_factory.mktemp("table") / "toy")


@pytest.fixture(scope="session")
def config_dir(tmp_path_factory) -> Path:
    """A user's own configuration: the ablation ``tiny``."""
    folder = tmp_path_factory.mktemp("conf")
    (folder / "ablation").mkdir()
    (folder / "ablation" / "tiny.yaml").write_text(TINY)
    return folder
