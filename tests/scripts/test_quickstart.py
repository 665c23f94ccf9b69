"""The quickstart, whole, on the toy table."""

import json

import pytest

from recallgym.scripts.cli import main


@pytest.mark.long
def test_quickstart_makes_every_thing_that_it_names(tmp_path, capsys):
    assert main(["quickstart", "--table", "toy", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "bundle: verified" in out
    for name in ("quickstart", "hard_soft_multiply"):
        for suffix in ("json", "md", "tex", "csv", "png", "svg"):
            assert (tmp_path / "results" / f"{name}.{suffix}").stat().st_size
    table = json.loads((tmp_path / "results" / "quickstart.json").read_text())
    regret = {arm["name"]: arm["iqm"] for arm in table["arms"]}
    assert list(regret) == ["gate", "keep_all", "best_constant", "random", "oracle"]
    assert regret["oracle"] < regret["gate"] < regret["keep_all"]
    assert main(["quickstart", "--table", "toy", "--out", str(tmp_path)]) == 0  # everything is stored: seconds
