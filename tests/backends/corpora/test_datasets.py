"""Fetching and checking data sets, against a host on this machine."""

import io
import json
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from recallgym.backends.corpora.catalogue import DATASETS
from recallgym.backends.corpora.datasets import Dataset, DatasetError, Source, check, count_rows, fetch

COMMIT = "0" * 40
SET = Dataset(
    name="small",
    summary="",
    licence="MIT",
    sources=(Source("owner/small", COMMIT, ("data/*.jsonl", "notes.csv")),),
    rows={"a.jsonl": 2, "notes.csv": 1},
)
FILES = {"data/a.jsonl": '{"x": 1}\n{"x": 2}\n', "notes.csv": "k,v\n1,2\n", "README.md": "not part of it"}


def archive(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        for name, text in files.items():
            packed.writestr(f"small-{COMMIT}/{name}", text)
    return buffer.getvalue()


@pytest.fixture
def host():
    answers = {f"/owner/small/archive/{COMMIT}.zip": archive(FILES)}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = answers.get(self.path)
            self.send_response(404 if body is None else 200)
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", answers
    server.shutdown()
    server.server_close()


def test_fetch_keeps_the_files_of_the_data_set_and_nothing_else(host, tmp_path):
    received = []
    files = fetch(SET, tmp_path, host=host[0], progress=received.append)
    assert [path.relative_to(tmp_path).as_posix() for path in files] == ["small/data/a.jsonl", "small/notes.csv"]
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == files
    assert received[-1] == len(host[1][f"/owner/small/archive/{COMMIT}.zip"])


def test_a_fetched_data_set_checks_out(host, tmp_path):
    fetch(SET, tmp_path, host=host[0])
    for directory in (tmp_path, tmp_path / "small"):
        assert [(f.problem, f.rows) for f in check(SET, directory)] == [("", 2), ("", 1)]


def test_a_source_that_lost_a_file_is_named(host, tmp_path):
    host[1][f"/owner/small/archive/{COMMIT}.zip"] = archive({"notes.csv": "k\n1\n"})
    with pytest.raises(DatasetError, match=r"owner/small.*holds no data/\*\.jsonl"):
        fetch(SET, tmp_path, host=host[0])


def test_an_answer_that_is_no_archive_is_refused(host, tmp_path):
    host[1][f"/owner/small/archive/{COMMIT}.zip"] = b"<html>"
    with pytest.raises(DatasetError, match="small"):
        fetch(SET, tmp_path, host=host[0])


def test_paths_cannot_leave_the_folder(host, tmp_path):
    evil = {**FILES, "data/../../../evil.jsonl": "{}"}
    host[1][f"/owner/small/archive/{COMMIT}.zip"] = archive(evil)
    files = fetch(SET, tmp_path / "data", host=host[0])
    assert all(path.is_relative_to(tmp_path / "data" / "small") for path in files)
    assert not list(tmp_path.rglob("evil.jsonl"))


def test_no_network_is_one_clear_error(tmp_path):
    with pytest.raises(DatasetError, match="cannot be fetched"):
        fetch(SET, tmp_path, host="http://127.0.0.1:9")
    assert not (tmp_path / "small").exists()


@pytest.mark.parametrize(
    ("text", "problem"),
    [("", "empty"), ('{"x": 1}\n', "1 rows, 2 published"), ('{"x": 1}\n{"x"', "unreadable")],
)
def test_check_finds_what_is_wrong_with_a_file(text, problem, tmp_path):
    (tmp_path / "a.jsonl").write_text(text)
    findings = {finding.pattern: finding for finding in check(SET, tmp_path)}
    assert problem in findings["data/*.jsonl"].problem
    assert findings["notes.csv"].problem == "missing"


def test_check_of_a_directory_that_does_not_exist_names_the_command(tmp_path):
    with pytest.raises(DatasetError, match="recallgym data fetch small"):
        check(SET, tmp_path / "nowhere")


def test_rows_are_counted_in_every_published_format(tmp_path):
    rows = [{"text": 'a "quoted"\nline'}, {"text": "b"}]
    lines = "\n".join(map(json.dumps, rows))
    for name, text in {
        "list.json": json.dumps(rows),
        "object.json": json.dumps({"a": 1, "b": 2}),
        "lines.json": lines,
        "lines.jsonl": f"{lines}\n\n",
        "table.csv": 'text\n"a ""quoted""\nline"\nb\n',
    }.items():
        (tmp_path / name).write_text(text)
        assert count_rows(tmp_path / name) == 2, name


def test_the_catalogue_is_complete():
    for name, entry in DATASETS.items():
        assert entry.name == name
        assert entry.summary
        assert entry.licence
        for source in entry.sources:
            assert source.repository.count("/") == 1
            assert len(source.commit) == 40
            assert source.files
