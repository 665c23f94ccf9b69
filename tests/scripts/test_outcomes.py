"""``recallgym outcomes`` on a saved table; building one is tested where tables are built."""

import pytest

from recallgym.envs.outcomes.toy import toy_table
from recallgym.scripts.cli import main


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return toy_table().save(tmp_path_factory.mktemp("tables") / "toy")


def test_check_says_what_holds_and_what_could_not_be_checked(saved, capsys):
    assert main(["outcomes", "check", str(saved)]) == 0
    out = capsys.readouterr().out
    assert "holds: every file has the checksum" in out
    assert "could not check: passages and outcomes" in out


def test_info_of_a_toy_table_speaks_of_no_reader(saved, capsys):
    assert main(["outcomes", "info", str(saved)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("toy: ")
    assert "reader" not in out


def test_info_of_the_table_that_comes_with_the_package(capsys):
    assert main(["outcomes", "info", "apidocs"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("apidocs: ")
    assert "fingerprint " in out


@pytest.mark.parametrize("command", ["info", "check"])
def test_an_edited_table_is_refused_with_the_file(command, saved, tmp_path, capsys):
    table = toy_table().save(tmp_path / "edited")
    content = bytearray((table / "u_ref.npy").read_bytes())
    content[-1] ^= 1
    (table / "u_ref.npy").write_bytes(content)
    assert main(["outcomes", command, str(table)]) == 2
    assert "u_ref.npy: checksum differs" in capsys.readouterr().err


def test_build_refuses_an_unknown_setting(tmp_path, capsys):
    assert main(["outcomes", "build", "--out", str(tmp_path / "table"), "outcomes.qestions=2"]) == 2
    assert "outcomes.questions" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
