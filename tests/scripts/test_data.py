"""``recallgym data``."""

from recallgym.backends.corpora.catalogue import DATASETS
from recallgym.scripts.cli import main


def test_list_shows_name_licence_and_address_of_every_data_set(capsys):
    assert main(["data", "list"]) == 0
    out = capsys.readouterr().out
    for name, entry in DATASETS.items():
        assert f"{name}\n  {entry.summary}\n  licence: {entry.licence}\n" in out
        assert all(source.page in out for source in entry.sources)


def test_check_passes_on_published_files_and_fails_on_a_cut_one(tmp_path, capsys):
    folder = tmp_path / "ramdocs"
    folder.mkdir()
    rows = ['{"question": "q", "documents": []}'] * 500
    (folder / "RAMDocs_test.jsonl").write_text("\n".join(rows))
    assert main(["data", "check", str(tmp_path)]) == 0
    assert "ok, 500 rows" in capsys.readouterr().out
    (folder / "RAMDocs_test.jsonl").write_text("\n".join(rows[:-1]))
    assert main(["data", "check", str(folder)]) == 1
    assert "499 rows, 500 published" in capsys.readouterr().out


def test_check_of_a_folder_without_a_known_data_set_asks_for_names(tmp_path, capsys):
    assert main(["data", "check", str(tmp_path)]) == 2
    assert "name the ones to look for" in capsys.readouterr().err
