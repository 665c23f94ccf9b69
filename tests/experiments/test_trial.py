import numpy as np
import pytest
import torch

from recallgym.experiments import trial as stages
from recallgym.experiments.compose import compose_config, resolved
from recallgym.experiments.store import Store
from recallgym.experiments.trial import identity, load_fit, make_policy, make_trial, run_trials

SMALL = ["agent=exact_gradient", "agent.steps=512", "agent.envs=32", "agent.validation_sessions=8", "policy.hidden=16"]
SESSIONS = ["evaluation.sessions=12"]


@pytest.fixture
def trial(toy_path):
    """Makes a trial from overrides."""

    def make(*overrides: str, replay: tuple[str, ...] = ()):
        own = [*SMALL, *SESSIONS, f"env.table={toy_path}", *overrides]
        env = resolved(compose_config([*own, *replay]))["env"] if replay else None
        return make_trial(resolved(compose_config(own)), replay=env, label="test")

    return make


def test_identity_does_not_depend_on_the_order_of_keys_but_on_every_value():
    assert identity({"a": 1, "b": [1, 2]}) == identity({"b": [1, 2], "a": 1})
    assert len({identity({"a": value}) for value in (1, 1.5, "1", None, True, [1])}) == 6


@pytest.mark.parametrize("override", ["seed=1", "agent.learning_rate=0.5", "policy.hidden=17", "env.mode=soft"])
def test_what_training_depends_on_changes_both_identities(trial, override):
    base, other = trial(), trial(override)
    assert base.fit_hash != other.fit_hash
    assert base.hash != other.hash


@pytest.mark.parametrize("override", ["evaluation.sessions=13", "evaluation.split=validation"])
def test_what_only_evaluation_depends_on_shares_the_fit(trial, override):
    base, other = trial(), trial(override)
    assert base.fit_hash == other.fit_hash
    assert base.hash != other.hash


@pytest.mark.parametrize("override", ["run=ray", "run.dir=elsewhere", "run.workers=7"])
def test_where_a_trial_runs_is_no_part_of_it(trial, override):
    assert trial(override).hash == trial().hash


def test_a_table_is_known_by_its_content_not_by_its_path(trial, toy_path, tmp_path):
    from recallgym.envs.outcomes.toy import toy_table

    copy = toy_table().save(tmp_path / "copy")
    other = toy_table(seed=1).save(tmp_path / "other")
    assert trial(f"env.table={copy}").hash == trial().hash
    assert trial(f"env.table={other}").hash != trial().hash


def test_replaying_where_the_masks_are_made_is_no_replay(trial):
    assert trial(replay=("env.mode=hard",)).hash == trial().hash
    assert trial(replay=("env.mode=soft",)).fit_hash == trial().fit_hash


def test_a_finished_trial_is_not_run_again_and_a_fit_is_shared(trial, tmp_path, monkeypatch):
    store = Store(tmp_path)
    fits = []
    fit = stages.fit
    monkeypatch.setattr(stages, "fit", lambda *a, **k: fits.append(1) or fit(*a, **k))
    arms = [trial(), trial(replay=("env.mode=soft",)), trial(replay=("env.mode=multiply",))]
    run_trials(store, arms)
    assert len(fits) == 1
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    run_trials(store, arms)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()} == before


def test_replayed_arms_carry_identical_masks_and_answer_the_same_questions(trial, tmp_path):
    store = Store(tmp_path)
    # Rejects about half, and is never taught otherwise.
    unsure = ("policy.keep=0.5", "agent.learning_rate=0", "env.early_exit=false", "env.fallback=none")
    arms = [trial(*unsure), trial(*unsure, replay=("env.mode=soft",))]
    run_trials(store, arms)
    hard, soft = (store.read_trial(arm.hash).records for arm in arms)
    np.testing.assert_array_equal(hard["row"], soft["row"])
    np.testing.assert_array_equal(hard["rejected"], soft["rejected"])
    assert hard["leaked"].sum() == 0 < soft["leaked"].sum()


def test_repeating_a_trial_elsewhere_gives_the_same_bits(trial, tmp_path):
    records = []
    for name in ("a", "b"):
        store = Store(tmp_path / name)
        run_trials(store, [trial()])
        records.append(store.read_trial(trial().hash).records)
    assert records[0].keys() == records[1].keys()
    for name, values in records[0].items():
        np.testing.assert_array_equal(values, records[1][name])


def test_a_stored_policy_decides_as_it_did_when_it_was_trained(trial, tmp_path):
    store = Store(tmp_path)
    planned = trial()
    policy = stages.ensure_fit(store, planned)
    again, entry = load_fit(store, planned.fit_hash)
    observations = torch.randn(9, policy.observation_size, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(policy(observations), again(observations), rtol=0, atol=0)
    assert entry["steps"] == 512
    assert entry["config"]["seed"] == 0
    assert not torch.equal(make_policy(planned)(observations), again(observations))


def test_a_result_says_what_was_run_and_what_it_cost(trial, tmp_path):
    store = Store(tmp_path)
    run_trials(store, [trial()])
    result = store.read_result(trial().hash)
    assert result["config"]["evaluation"]["sessions"] == 12
    assert result["reader_calls"] == 0
    assert result["tokens_shown"] > 0
    assert set(result["seconds"]) == {"fit", "evaluate"}
    assert {"commit", "dirty"} == set(result["git"])


def test_training_is_done_on_one_thread_and_leaves_the_caller_as_it_was(trial, tmp_path):
    before = torch.get_num_threads()
    with stages.one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_a_damaged_fit_is_refused_by_name(trial, tmp_path):
    from recallgym.experiments.store import StoreError

    store = Store(tmp_path)
    planned = trial()
    stages.ensure_fit(store, planned)
    file = store.fit_dir(planned.fit_hash) / "policy.pt"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(StoreError, match=r"policy\.pt: missing or damaged"):
        load_fit(store, planned.fit_hash)
