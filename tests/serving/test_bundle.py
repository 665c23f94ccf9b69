"""A bundle is intact or it is refused, with the file and the reason."""

import json
import os
import shutil

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recallgym.serving.bundle import (
    MANIFEST,
    PARITY,
    PAYLOADS,
    TORCH,
    BundleError,
    canonical,
    read_bundle,
    write_bundle,
)

FILES = (MANIFEST, *PAYLOADS)


def test_intact_bundle_is_read_whole(original):
    bundle = read_bundle(original.path)
    assert set(bundle.files) == set(PAYLOADS)
    assert bundle.pool == 6
    assert bundle.blocks == [("query", 8), ("feedback", 2), ("budget", 2)]
    assert bundle.low.tolist() == [-100] * 8 + [-20, 0, 0, 0]
    assert bundle.high.tolist() == [100] * 8 + [0, 20, 1, 1]
    assert set(bundle.parity()) == {"random", "edge", "recorded"}


def test_manifest_tells_what_the_policy_is(original):
    manifest = original.manifest
    assert manifest["policy"]["class"] == "recallgym.policies.causal_gate.CausalGate"
    assert manifest["identity"]["table"] == "toy-0-60-4-6-3"
    assert manifest["metrics"][0]["seeds"] == [0, 1, 2]
    assert manifest["intervention"]["fallback"] == "heterogeneous"
    assert manifest["code"]["version"]
    assert set(manifest["files"]) == set(PAYLOADS)


def test_every_flipped_byte_of_the_manifest_is_caught(damaged):
    intact = (damaged / MANIFEST).read_bytes()
    with (damaged / MANIFEST).open("r+b", buffering=0) as file:
        for offset, byte in enumerate(intact):
            os.pwrite(file.fileno(), bytes([byte ^ 1 << offset % 8]), offset)
            with pytest.raises(BundleError, match=MANIFEST):
                read_bundle(damaged)
            os.pwrite(file.fileno(), bytes([byte]), offset)
    assert read_bundle(damaged).manifest  # all of it was put back


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_flipped_byte_anywhere_is_caught(original, data, tmp_path_factory):
    name = data.draw(st.sampled_from(FILES))
    intact = (original.path / name).read_bytes()
    offset = data.draw(st.integers(0, len(intact) - 1))
    flipped = bytearray(intact)
    flipped[offset] ^= data.draw(st.integers(1, 255))
    copy = tmp_path_factory.mktemp("flip")
    for file in FILES:
        (copy / file).write_bytes(flipped if file == name else (original.path / file).read_bytes())
    with pytest.raises(BundleError, match=name):
        read_bundle(copy)


@pytest.mark.parametrize(
    "edit", [lambda t: t + "\n", lambda t: t.replace('": ', '":'), lambda t: " " + t, lambda t: t[:-1]]
)
def test_white_space_of_the_manifest_is_protected(damaged, edit):
    text = (damaged / MANIFEST).read_text()
    (damaged / MANIFEST).write_text(edit(text))
    with pytest.raises(BundleError, match="does not match its digest"):
        read_bundle(damaged)


def test_a_repeated_key_in_the_manifest_is_caught(damaged):
    text = (damaged / MANIFEST).read_text()
    (damaged / MANIFEST).write_text(text.replace('"max_batch": 4096,', '"max_batch": 9,\n "max_batch": 4096,'))
    with pytest.raises(BundleError, match="does not match its digest"):
        read_bundle(damaged)


@pytest.mark.parametrize("name", PAYLOADS)
def test_missing_file_is_named(damaged, name):
    (damaged / name).unlink()
    with pytest.raises(BundleError, match=f"{name}: missing"):
        read_bundle(damaged)


def test_directory_without_manifest_is_no_bundle(tmp_path):
    with pytest.raises(BundleError, match=r"no bundle here .*recallgym export"):
        read_bundle(tmp_path)


@pytest.mark.parametrize("name", [".DS_Store", "policy.onnx.data", "notes.txt"])
def test_extra_file_is_refused(damaged, name):
    (damaged / name).write_bytes(b"")
    with pytest.raises(BundleError, match=f"{name}: does not belong"):
        read_bundle(damaged)


def test_extra_directory_is_refused(damaged):
    (damaged / "old").mkdir()
    with pytest.raises(BundleError, match="old: does not belong"):
        read_bundle(damaged)


@pytest.mark.parametrize("name", PAYLOADS)
def test_truncated_file_is_named_with_its_sizes(damaged, name):
    data = (damaged / name).read_bytes()
    (damaged / name).write_bytes(data[:-1])
    with pytest.raises(BundleError, match=f"{name}: holds {len(data) - 1} bytes where {MANIFEST} lists {len(data)}"):
        read_bundle(damaged)


@pytest.mark.parametrize("size", [0, 1, 100])
def test_truncated_manifest_is_refused(damaged, size):
    (damaged / MANIFEST).write_bytes((damaged / MANIFEST).read_bytes()[:size])
    with pytest.raises(BundleError, match="truncated or edited"):
        read_bundle(damaged)


@pytest.mark.parametrize(
    "content", ["[]", '{"format": "other"}', "null", "[" * 100_000, '{"format": "recallgym-outcome-table"}']
)
def test_foreign_manifest_is_refused(damaged, content):
    (damaged / MANIFEST).write_text(content)
    with pytest.raises(BundleError, match=MANIFEST):
        read_bundle(damaged)


@pytest.mark.parametrize("name", PAYLOADS)
def test_file_of_another_bundle_is_refused(damaged, seeing, name):
    shutil.copy(seeing.path / name, damaged / name)
    with pytest.raises(BundleError, match=name):
        read_bundle(damaged)


def test_other_format_version_names_the_way_out(damaged):
    manifest = json.loads((damaged / MANIFEST).read_text())
    (damaged / MANIFEST).write_bytes(canonical(manifest | {"format_version": 2}))
    with pytest.raises(BundleError, match="format version 2, but this release reads 1"):
        read_bundle(damaged)


def test_rewritten_digests_are_caught_by_a_pin(damaged, original):
    manifest = {k: v for k, v in original.manifest.items() if k != "digest"}
    files = {**original.files, PARITY: original.files[PARITY] + b"\0"}
    write_bundle(damaged, manifest, files)
    assert read_bundle(damaged).digest != original.digest  # consistent, so only the pin tells
    with pytest.raises(BundleError, match="not the pinned"):
        read_bundle(damaged, digest=original.digest)
    assert read_bundle(original.path, digest=original.digest).digest == original.digest


@pytest.mark.parametrize(
    ("section", "value", "message"),
    [
        ("identity", {"embedder": "x"}, "identity.tokenizer is missing"),
        ("intervention", {"mode": 3}, "intervention.mode must be str, got 3"),
        ("metrics", [{"name": "regret", "value": "low"}], r"metrics\[0\].value must be int or float"),
        ("configuration", {"rate": float("nan")}, "plain finite JSON"),
        ("configuration", {"rate": np.float32(1)}, "plain finite JSON"),
        ("configuration", [], "configuration must be dict"),
    ],
)
def test_incomplete_manifest_is_refused(tmp_path, original, section, value, message):
    manifest = {k: v for k, v in original.manifest.items() if k != "digest"} | {section: value}
    with pytest.raises(BundleError, match=message):
        write_bundle(tmp_path, manifest, original.files)
    assert not list(tmp_path.iterdir())


def test_canonical_form_survives_a_round_trip():
    content = {
        "b": [1, 2.5, "[\n]", "ü"],
        "a": {"nested": [[1, 2], ["x, y"]], "empty": [], "none": None},
        "t": [{"k": [1]}],
    }
    assert json.loads(canonical(content)) == content
    assert canonical(json.loads(canonical(content))) == canonical(content)


def test_the_graph_of_torch_is_part_of_the_bundle(original):
    assert original.files[TORCH][:2] == b"PK"
