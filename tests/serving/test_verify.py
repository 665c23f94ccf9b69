"""The report says what was checked, what failed, and what nobody checked."""

import numpy as np
import pytest

from recallgym.serving.bundle import ONNX, PARITY, TORCH, write_bundle
from recallgym.serving.export import _to_npz
from recallgym.serving.verify import FAILED, NOT_CHECKED, PASSED, verify


@pytest.fixture
def forge(original, tmp_path):
    """Writes a consistent bundle with other content: its digests are right, only what it holds is not."""

    def run(files=(), **sections):
        manifest = {k: v for k, v in original.manifest.items() if k != "digest"} | sections
        (tmp_path / "forged").mkdir()
        write_bundle(tmp_path / "forged", manifest, {**original.files, **dict(files)})
        return verify(tmp_path / "forged")

    return run


def status(report) -> dict[str, str]:
    return {check.name: check.status for check in report.checks}


def test_an_intact_bundle_is_verified(original):
    report = verify(original.path, digest=original.digest)
    assert report.ok
    assert status(report) == {
        "files": PASSED,
        "graph": PASSED,
        "onnx checker": PASSED,
        "parity on onnx": PASSED,
        "parity on torch": PASSED,
        "swap test": PASSED,
        "identity": NOT_CHECKED,
        "metric card": NOT_CHECKED,
    }
    assert report.lines()[-1] == f"{original.path}: verified"
    assert any(original.digest in line for line in report.lines())


def test_a_damaged_bundle_gives_a_report_not_an_exception(damaged):
    (damaged / ONNX).unlink()
    report = verify(damaged)
    assert not report.ok
    assert report.lines()[0].startswith("FAILED")
    assert "policy.onnx: missing" in report.lines()[0]
    assert report.lines()[-1].endswith("REFUSED")


def test_another_digest_than_the_pinned_is_refused(original):
    assert not verify(original.path, digest="0" * 64).ok


def test_parity_finds_one_wrong_bit(original, forge):
    vectors = original.parity()
    vectors["edge"]["keep"][5, 2] ^= True
    report = forge({PARITY: _to_npz(vectors)})
    assert status(report)["parity on onnx"] == FAILED
    assert status(report)["parity on torch"] == FAILED
    assert "edge inputs in batches of 1: 1 bits differ" in "\n".join(report.lines())


@pytest.mark.parametrize("value", [2e-5, np.nan])
def test_parity_finds_one_wrong_number(original, forge, value):
    vectors = original.parity()
    vectors["recorded"]["propensity"][0, 0] += value
    report = forge({PARITY: _to_npz(vectors)})
    assert status(report)["parity on onnx"] == FAILED
    assert "recorded inputs" in "\n".join(report.lines())


@pytest.mark.parametrize(
    ("file", "name"), [(ONNX, "parity on onnx"), (TORCH, "parity on torch"), (PARITY, "parity on onnx")]
)
def test_a_file_that_its_library_cannot_read_is_a_finding(forge, file, name):
    report = forge({file: b"not what it should be"})
    assert status(report)[name] == FAILED


def test_graph_of_another_policy_is_found(forge, seeing):
    report = forge({ONNX: seeing.files[ONNX]})
    assert status(report)["graph"] == FAILED
    assert "the manifest declares [('observation', ['batch', 12])]" in "\n".join(report.lines())


def test_what_was_not_recorded_is_said(seeing):
    lines = "\n".join(verify(seeing.path).lines())
    assert "not checked  recorded inputs" in lines
    assert "0 stated figures" in lines
