"""Deciding with a bundle: shapes, casts, bad observations, threads, and what it may import."""

import subprocess
import sys
import textwrap
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from recallgym.serving.bundle import ONNX, BundleError
from recallgym.serving.runtime import load

SIZE, POOL = 12, 6


@pytest.fixture(params=["onnx", "torch"])
def runtime(original, request):
    return load(original.path, backend=request.param)


@pytest.fixture
def rows(layout_of, observations_of):
    return observations_of(layout_of("query", "feedback", "budget"), 50, seed=7)


def same(left, right) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


def test_shapes_and_types(runtime, rows):
    decision = runtime.decide(rows)
    assert [(part.shape, part.dtype.name) for part in decision] == [
        ((50, POOL), "bool"),
        ((50,), "bool"),
        ((50, POOL), "float32"),
        ((50, POOL + 1), "float32"),
        ((50,), "bool"),
    ]
    assert not decision.fell_back.any()


def test_mask_of_a_bits_bundle_is_the_bit(runtime, rows):
    decision = runtime.decide(rows)
    np.testing.assert_array_equal(decision.mask, decision.keep)


def test_one_observation_has_no_batch_axis(runtime, rows):
    one = runtime.decide(rows[3])
    assert [np.shape(part) for part in one] == [(POOL,), (), (POOL,), (POOL + 1,), ()]
    assert same(one, [part[0] for part in runtime.decide(rows[3:4])])


@pytest.mark.parametrize("convert", [np.float64, np.float16, list])
def test_other_numbers_are_cast(runtime, rows, convert):
    rows = rows.astype(np.float16)  # exact in every type
    given = rows.tolist() if convert is list else rows.astype(convert)
    assert same(runtime.decide(given), runtime.decide(rows.astype(np.float32)))


def test_rows_need_not_be_contiguous(runtime, rows):
    wide = np.zeros((50, 2 * SIZE), np.float32)
    wide[:, ::2] = rows
    assert same(runtime.decide(wide[:, ::2]), runtime.decide(rows))
    assert same(runtime.decide(rows[::-1]), runtime.decide(rows[::-1].copy()))


@pytest.mark.parametrize("shape", [(11,), (13,), (4, 11), (0, SIZE), (2, 2, SIZE), ()])
def test_wrong_shape_names_the_blocks(runtime, shape):
    with pytest.raises(ValueError, match=r"expected observations of shape \(12,\).*query 8, feedback 2, budget 2"):
        runtime.decide(np.zeros(shape, np.float32))


def test_what_is_not_numbers_is_refused(runtime):
    with pytest.raises(ValueError, match="expected an observation of numbers"):
        runtime.decide(np.array(["a"] * SIZE))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 100.1, -100.1, 1e300])
def test_invalid_row_takes_the_declared_action_alone_and_is_counted(runtime, original, rows, value):
    spoilt = rows.astype(np.float64)
    spoilt[7, 2] = value
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        decision = runtime.decide(spoilt)
    assert np.flatnonzero(decision.fell_back).tolist() == [7]
    declared = original.manifest["invalid_input"]["action"]
    assert [*decision.keep[7], decision.search[7]] == [bool(bit) for bit in declared]
    assert decision.mask[7].tolist() == declared[:-1]
    assert decision.propensity[7].tolist() == declared
    rest = np.arange(50) != 7
    assert same([part[rest] for part in decision], [part[rest] for part in runtime.decide(rows)])
    finite = np.isfinite(np.float32(value)) if abs(value) < 1e38 else False
    assert runtime.counters == (100, int(not finite), int(finite))
    assert runtime.counters.fallbacks == 1


def test_bounds_are_valid_and_the_next_number_is_not(runtime, original):
    for bound, beyond in ((original.low, -np.inf), (original.high, np.inf)):
        assert not runtime.decide(bound).fell_back
        for index in range(SIZE):
            row = bound.copy()
            row[index] = np.nextafter(row[index], np.float32(beyond))
            assert runtime.decide(row).fell_back


def test_order_of_rows_does_not_matter(runtime, rows):
    order = np.random.default_rng(0).permutation(50)
    got, expected = runtime.decide(rows[order]), runtime.decide(rows)
    np.testing.assert_array_equal(got.keep, expected.keep[order])
    np.testing.assert_allclose(got.propensity, expected.propensity[order], atol=1e-6)


def test_batches_beyond_the_greatest_are_cut(runtime, rows, original):
    many = np.resize(rows, (original.manifest["max_batch"] + 5, SIZE))
    decision = runtime.decide(many)
    assert len(decision.keep) == len(many)
    np.testing.assert_array_equal(decision.keep, np.resize(runtime.decide(rows).keep, (len(many), POOL)))


def test_threads_share_a_runtime(runtime, rows):
    expected = [runtime.decide(row) for row in rows]
    spoilt = rows.copy()
    spoilt[0] = np.nan

    def work(_: int) -> bool:
        return all(same(runtime.decide(row), one) for row, one in zip(rows, expected, strict=True)) and bool(
            runtime.decide(spoilt).fell_back[0]
        )

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))
    assert runtime.counters == (50 + 8 * 100, 8, 0)


def test_unknown_backend_or_device_is_refused(original):
    with pytest.raises(ValueError, match="backend of onnx, torch"):
        load(original.path, backend="tensorrt")
    with pytest.raises(ValueError, match="device of cpu, cuda"):
        load(original.path, device="tpu")


def test_a_device_that_is_not_there_is_named(original):
    import onnxruntime

    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        pytest.skip("this onnxruntime runs on CUDA")
    with pytest.raises(ValueError, match="onnxruntime-gpu, or load with device='cpu'"):
        load(original.path, device="cuda")


def test_damaged_bundle_is_not_loaded(damaged):
    data = bytearray((damaged / ONNX).read_bytes())
    data[100] ^= 1
    (damaged / ONNX).write_bytes(data)
    with pytest.raises(BundleError, match=ONNX):
        load(damaged)


def test_pinned_digest_is_checked(original):
    assert load(original.path, digest=original.digest)
    with pytest.raises(BundleError, match="not the pinned"):
        load(original.path, digest="0" * 64)


ONLY_BASE = """
    import importlib.metadata, re, sys

    def closure(name, seen):
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            return seen
        if name not in seen:
            seen.add(name)
            for requirement in distribution.requires or []:
                if "extra ==" not in requirement:
                    closure(re.match(r"[A-Za-z0-9_.-]+", requirement)[0].lower(), seen)
        return seen

    base = closure("numpy", closure("onnxruntime", set()))
    owners = importlib.metadata.packages_distributions()

    class OnlyBase:
        '''Hides every package that numpy and onnxruntime do not bring.'''
        def __init__(self, finders):
            self.finders = finders
        def find_spec(self, name, path=None, target=None):
            top = name.partition(".")[0]
            owned = {owner.lower() for owner in owners.get(top, [])}
            if top != "recallgym" and owned and not owned & base:
                return None
            return next((s for f in self.finders if (s := f.find_spec(name, path, target))), None)

    sys.meta_path[:] = [OnlyBase(list(sys.meta_path))]
    for name in ("torch", "gymnasium", "onnx", "scipy", "transformers"):
        try:
            __import__(name)
        except ModuleNotFoundError:
            continue
        raise SystemExit(f"{name} should be hidden")
"""


def run_python(body: str, *arguments) -> str:
    command = [sys.executable, "-c", textwrap.dedent(body), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_loading_imports_nothing_else_of_ours_and_no_training_stack(original):
    body = """
        import sys
        import numpy as np
        from recallgym.serving.runtime import load
        runtime = load(sys.argv[1])
        assert runtime.decide(np.zeros(12)).keep.shape == (6,)
        ours = {name for name in sys.modules if name.partition(".")[0] == "recallgym"}
        assert ours == {"recallgym", "recallgym.serving", "recallgym.serving.bundle", "recallgym.serving.runtime"}, ours
        heavy = {"torch", "gymnasium", "transformers", "onnx", "scipy", "stable_baselines3"} & set(sys.modules)
        assert not heavy, heavy
    """
    run_python(body, original.path)


def test_base_dependencies_are_enough_to_load_and_to_verify(original):
    body = textwrap.dedent(ONLY_BASE) + textwrap.dedent("""
        import numpy as np
        from recallgym.serving.runtime import load
        from recallgym.serving.verify import verify
        assert load(sys.argv[1]).decide(np.zeros((2, 12))).keep.shape == (2, 6)
        report = verify(sys.argv[1])
        assert report.ok
        print("\\n".join(report.lines()))
    """)
    printed = run_python(body, original.path)
    assert "not checked  parity on torch: torch is not installed" in printed
    assert "not checked  onnx checker: onnx is not installed" in printed
    assert "passed       parity on onnx" in printed
