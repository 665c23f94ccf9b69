import subprocess

from recallgym.backends import provenance
from recallgym.backends.provenance import source_revision


def test_revision_is_that_of_the_package_itself(tmp_path, monkeypatch):
    git = ("git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run((*git, "init", "-q"), check=True)
    subprocess.run((*git, "commit", "-q", "--allow-empty", "-m", "first"), check=True)
    commit = subprocess.run((*git, "rev-parse", "HEAD"), check=True, capture_output=True, text=True).stdout.strip()
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "backends" / "provenance.py"))
    assert source_revision() == {"commit": commit, "dirty": False}
    (tmp_path / "new").touch()
    assert source_revision() == {"commit": commit, "dirty": True}
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "venv" / "recallgym" / "backends" / "provenance.py"))
    assert source_revision() == {"commit": None, "dirty": None}
