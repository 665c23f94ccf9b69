"""A table is loaded whole and unaltered, or refused with the file and the reason."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from recallgym.envs.outcomes import TableError, load_table, shipped_table_path
from recallgym.envs.outcomes.table import SPLITS, array_names
from recallgym.envs.outcomes.toy import toy_table


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_table(questions=12).save(tmp_path_factory.mktemp("table") / "toy")


@pytest.fixture
def copy(stored: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stored, tmp_path / "copy"))


def test_a_saved_table_comes_back_equal_and_memory_mapped(stored: Path) -> None:
    table, original = load_table(stored), toy_table(questions=12)
    assert table.attention is None
    for name in set(array_names()) - {"attention"}:
        np.testing.assert_array_equal(getattr(table, name), getattr(original, name))
        assert isinstance(getattr(table, name), np.memmap)
    assert load_table(stored).fingerprint == table.fingerprint


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_a_flipped_byte_anywhere_is_refused(stored: Path, tmp_path: Path, data: st.DataObject) -> None:
    shutil.rmtree(tmp_path / "copy", ignore_errors=True)
    copy = Path(shutil.copytree(stored, tmp_path / "copy"))
    file = data.draw(st.sampled_from(sorted(copy.iterdir())))
    content = bytearray(file.read_bytes())
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= 1 << data.draw(st.integers(0, 7))
    file.write_bytes(bytes(content))
    with pytest.raises(TableError, match=file.name):
        load_table(copy)


@pytest.mark.parametrize("name", ["u_ref.npy", "table.json"])
def test_a_missing_file_is_named(copy: Path, name: str) -> None:
    (copy / name).unlink()
    with pytest.raises(TableError, match=name.replace(".", r"\.")):
        load_table(copy)


@pytest.mark.parametrize("name", ["u_ref.npy", "table.json"])
def test_a_truncated_file_is_named(copy: Path, name: str) -> None:
    (copy / name).write_bytes((copy / name).read_bytes()[:-20])
    with pytest.raises(TableError, match=name.replace(".", r"\.")):
        load_table(copy)


def test_a_foreign_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "table.json").write_text('{"format": "something else"}')
    with pytest.raises(TableError, match="not a recallgym-outcome-table of version 1"):
        load_table(tmp_path)


def test_an_edited_index_is_refused(copy: Path) -> None:
    meta = json.loads((copy / "table.json").read_text())
    meta["families"][0] = "renamed"
    (copy / "table.json").write_text(json.dumps(meta))
    with pytest.raises(TableError, match="does not match its fingerprint"):
        load_table(copy)


def test_rows_sets_and_lookup_agree() -> None:
    table = toy_table()
    assert table.rows == table.questions * table.conditions
    for column, bits in enumerate(table.sets):
        assert table.lookup[sum(1 << i for i in np.flatnonzero(bits))] == column
    assert (table.lookup >= 0).sum() == len(table.sets) == 42


def test_splits_share_no_family() -> None:
    table = toy_table()
    families = [set(table.family[table.question_ids(split)].tolist()) for split in SPLITS]
    assert all(not a & b for i, a in enumerate(families) for b in families[i + 1 :])


def test_an_unknown_split_and_an_unknown_shipped_table_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="split must be one of train, validation, test or all, got 'dev'"):
        toy_table().question_ids("dev")
    with pytest.raises(TableError, match="no shipped table is named 'nope'; there is apidocs"):
        shipped_table_path("nope")
