"""Reading published files: what they are called does not tell how their rows stand in them."""

import json

import pytest
from hypothesis import example, given, strategies as st

from recallgym.backends.corpora.datasets import DatasetError, count_rows
from recallgym.backends.corpora.reading import find, read_rows, strings, take

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@example([{"问": "一\u2028二\x85三"}, {}])  # what str.splitlines would break a line at
@given(st.lists(st.dictionaries(TEXT, TEXT, max_size=3), min_size=1, max_size=5))
def test_rows_are_the_same_one_a_line_and_in_one_list_whatever_characters_they_hold(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("rows")
    for name, text in {
        "lines.json": "\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n\n",
        "lines.jsonl": "\ufeff" + "\r\n".join(json.dumps(row, ensure_ascii=False) for row in rows),
        "list.json": json.dumps(rows, ensure_ascii=False, indent=4),
    }.items():
        path = folder / name
        path.write_bytes(text.encode())
        assert [row for _, row in read_rows(path)] == rows, name
        if name != "lines.json":  # of a file that is one object, the entries are counted
            assert count_rows(path) == len(rows), name


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'{"a": 1}\n{oops\n', r"rows\.json:2: is no JSON"),
        (b'{"a": 1}\n3\n', r"rows\.json:2: expected a JSON object, got int"),
        (b'[{"a": 1}, 3]', r"rows\.json: row 2: expected a JSON object, got int"),
        (b'{"a": "\xff"}', r"rows\.json: is no UTF-8 text"),
        (b"\n", r"rows\.json: holds no rows; fetch it again"),
        (b"[]", r"rows\.json: holds no rows; fetch it again"),
    ],
)
def test_what_is_not_a_file_of_rows_is_named(tmp_path, content, says):
    path = tmp_path / "rows.json"
    path.write_bytes(content)
    with pytest.raises(DatasetError, match=says) as error:
        list(read_rows(path))
    assert "\n" not in str(error.value)


def test_a_file_is_found_in_its_folder_in_the_one_that_holds_it_and_by_itself(tmp_path):
    path = tmp_path / "small" / "data" / "a.json"
    path.parent.mkdir(parents=True)
    path.touch()
    path.with_name(".a.json.partial").touch()  # of a download which was interrupted
    for directory in (tmp_path, tmp_path / "small", path, str(tmp_path)):
        assert find(directory, "small", "*a.json*") == path


def test_of_several_files_with_such_a_name_none_is_taken_in_silence(tmp_path):
    for name in ("a_dev.json", "a_train.json"):
        (tmp_path / name).touch()
    with pytest.raises(DatasetError, match=r"expected one a\*\.json, got a_dev\.json, a_train\.json; name the file"):
        find(tmp_path, "small", "a*.json")


def test_values_are_taken_as_they_are_expected_or_not_at_all():
    assert take({"a": 1}, "a", int, "here") == 1
    assert take({}, "a", list, "here", []) == []
    for row, says in (({}, "expected 'a' .int."), ({"a": "1"}, "got str '1'"), ([], "with 'a', got list")):
        with pytest.raises(DatasetError, match=f"here: .*{says}"):
            take(row, "a", int, "here")


def test_texts_come_flat_without_copies_and_empty_ones():
    assert strings(["a", ["b", " a "], 3, "", []], "here") == ("a", "b", "3")
    with pytest.raises(DatasetError, match="here: expected text or a list of texts, got bool 'True'"):
        strings([True], "here")
