import json
import os
import time

import numpy as np
import pytest

from recallgym.experiments.store import Store, StoreError, new_run_dir, write_json

RECORDS = {"reward": np.arange(6, dtype=np.float32).reshape(2, 3)}


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "outputs")


def test_a_trial_comes_back_as_it_was_written(store):
    store.write_trial("abc", {"seconds": 1.5}, RECORDS)
    result, records = store.read_trial("abc")
    assert result["seconds"] == 1.5
    np.testing.assert_array_equal(records["reward"], RECORDS["reward"])
    assert [trial["hash"] for trial in store.trials()] == ["abc"]
    assert store.problems() == []


def test_an_interrupted_write_leaves_nothing(store):
    def interrupted():
        with store.staged(store.trial_dir("abc")) as staging:
            (staging / "half").write_text("done")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not store.trial_dir("abc").exists()
    assert list((store.root / "staging").iterdir()) == []


def test_of_two_writers_the_first_to_finish_wins_and_neither_sees_the_other(store):
    final = store.trial_dir("abc")
    with store.staged(final) as first:
        (first / "x").write_text("first")
        with store.staged(final) as second:
            assert second != first
            (second / "x").write_text("second")
    assert (final / "x").read_text() == "second"
    assert list((store.root / "staging").iterdir()) == []


@pytest.mark.parametrize("name", ["result.json", "records.npz"])
@pytest.mark.parametrize("damage", ["flip", "truncate", "remove"])
def test_damage_is_found_and_names_the_file(store, name, damage):
    store.write_trial("abc", {}, RECORDS)
    path = store.trial_dir("abc") / name
    content = bytearray(path.read_bytes())
    if damage == "remove":
        path.unlink()
    else:
        content[len(content) // 2] ^= 0xFF
        path.write_bytes(content if damage == "flip" else content[: len(content) // 2])
    with pytest.raises(StoreError, match=str(path.name)):
        store.read_trial("abc")
    assert len(store.problems()) == 1


def test_a_directory_renamed_to_another_trial_is_refused(store):
    store.write_trial("abc", {}, RECORDS)
    store.trial_dir("abc").rename(store.trial_dir("xyz"))
    with pytest.raises(StoreError, match="belongs to trial 'abc'"):
        store.read_trial("xyz")


def test_only_old_leftovers_are_cleared(store):
    old, new = store.root / "staging" / "old", store.root / "staging" / "new"
    for path in (old, new):
        path.mkdir()
    os.utime(old, (time.time() - 1e6,) * 2)
    store.clear_stale()
    assert new.exists()
    assert not old.exists()


def test_runs_started_in_the_same_second_do_not_share_a_directory(tmp_path):
    assert len({new_run_dir(tmp_path, "sweep") for _ in range(20)}) == 20


def test_json_holds_no_nan(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "x.json", {"a": float("nan")})
    write_json(tmp_path / "x.json", {"a": "α"})
    assert json.loads((tmp_path / "x.json").read_text(encoding="utf-8")) == {"a": "α"}
