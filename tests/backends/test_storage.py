"""Directories that are written whole or not at all."""

import json
import threading

import pytest
from hypothesis import given, strategies as st

from recallgym.backends.storage import MANIFEST, StorageError, digest, sealed, unseal


def write(path, text="content", **fields):
    with sealed(path, fields) as staging:
        (staging / "data.txt").write_text(text)


def test_what_was_sealed_is_unsealed(tmp_path):
    write(tmp_path / "a" / "b", kind="x", count=3)
    manifest = unseal(tmp_path / "a" / "b", {"kind": "x"})
    assert manifest["count"] == 3
    assert list(manifest["files"]) == ["data.txt"]


def test_a_failing_writer_leaves_the_earlier_directory_and_nothing_else(tmp_path):
    write(tmp_path / "d", "old", kind="x")

    def interrupted():
        with sealed(tmp_path / "d", {"kind": "x"}) as staging:
            (staging / "data.txt").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    unseal(tmp_path / "d", {"kind": "x"})
    assert (tmp_path / "d" / "data.txt").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["d"]


def test_an_earlier_directory_is_replaced_whole(tmp_path):
    with sealed(tmp_path / "d", {"kind": "x"}) as staging:
        (staging / "other.txt").write_text("old")
    write(tmp_path / "d", "new", kind="y")
    assert list(unseal(tmp_path / "d", {"kind": "y"})["files"]) == ["data.txt"]
    assert not (tmp_path / "d" / "other.txt").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["d"]


def test_writers_of_the_same_place_at_the_same_time_leave_one_whole_directory(tmp_path):
    barrier, errors = threading.Barrier(8), []

    def writer(i):
        try:
            barrier.wait()
            for _ in range(10):
                write(tmp_path / "d", f"{i}" * 100, kind="x")
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=writer, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    unseal(tmp_path / "d", {"kind": "x"})
    assert len(set((tmp_path / "d" / "data.txt").read_text())) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["d"]


def test_a_directory_of_someone_else_is_never_replaced(tmp_path):
    (tmp_path / "thesis.txt").write_text("three years of work")
    with pytest.raises(FileExistsError, match="choose another path"):
        write(tmp_path, kind="x")
    assert (tmp_path / "thesis.txt").read_text() == "three years of work"


@pytest.mark.parametrize("name", ["data.txt", MANIFEST])
def test_missing_truncated_and_edited_files_are_refused_by_name(tmp_path, name):
    write(tmp_path / "d", kind="x")
    file = tmp_path / "d" / name
    whole = file.read_bytes()
    for damage in (whole[: len(whole) // 2], b"", whole[:-2] + b"T"):
        file.write_bytes(damage)
        with pytest.raises(StorageError, match=name):
            unseal(tmp_path / "d", {"kind": "x"})
    file.unlink()
    with pytest.raises(StorageError, match="missing"):
        unseal(tmp_path / "d", {"kind": "x"})


def test_another_kind_is_refused_naming_both(tmp_path):
    write(tmp_path / "d", kind="x")
    with pytest.raises(StorageError, match="kind is 'x', expected 'y'"):
        unseal(tmp_path / "d", {"kind": "y"})
    with pytest.raises(StorageError, match="missing"):
        unseal(tmp_path / "nowhere", {"kind": "y"})


@pytest.mark.parametrize("text", ["[]", "null", "{}", '{"kind": "x"}', "{"])
def test_a_foreign_manifest_is_refused(tmp_path, text):
    write(tmp_path / "d", kind="x")
    (tmp_path / "d" / MANIFEST).write_text(text)
    with pytest.raises(StorageError, match="build it again"):
        unseal(tmp_path / "d", {"kind": "x"})


def test_the_manifest_is_plain_json(tmp_path):
    write(tmp_path / "d", kind="类")
    assert json.loads((tmp_path / "d" / MANIFEST).read_text(encoding="utf-8"))["kind"] == "类"


PARTS = st.lists(st.text(st.characters(), max_size=4), max_size=4)


@given(PARTS, PARTS)
def test_digests_are_equal_only_for_equal_parts(a, b):
    assert (digest(*a) == digest(*b)) == (a == b)
