"""Proving a bundle: what ``recallgym verify`` prints, including what it could not check."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from ..backends.interventions.observation import ObservationLayout, encode
from .bundle import ONNX, PARITY_BATCHES, Bundle, BundleError, read_bundle
from .parity import ROWS, TOLERANCE, differences, random_rows
from .runtime import onnx_session, runtime_of
from .swap import swap_test

PASSED, FAILED, NOT_CHECKED = "passed", "FAILED", "not checked"


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: its name, ``passed``, ``FAILED`` or ``not checked``, and what was found."""

    name: str
    status: str
    detail: str


@dataclass(frozen=True)
class Report:
    """What a verification found."""

    path: Path
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """True where nothing failed."""
        return all(check.status != FAILED for check in self.checks)

    def lines(self) -> list[str]:
        """Returns the report for a terminal, one line a check and a verdict."""
        body = [f"{check.status:<11}  {check.name}: {check.detail}" for check in self.checks]
        return [*body, f"{self.path}: {'verified' if self.ok else 'REFUSED'}"]


def verify(path: str | Path, *, digest: str | None = None) -> Report:
    """Checks a bundle: every byte, the manifest, the graph, and that each runtime decides as the policy did.

    Args:
        path: Directory of the bundle.
        digest: The digest that the bundle must have, where a deployment pins it.

    Returns:
        The report; a damaged bundle gives a failed check, not an exception.
    """
    path = Path(path)
    try:
        bundle = read_bundle(path, digest=digest)
    except BundleError as error:
        return Report(path, (Check("files", FAILED, str(error)),))
    size = sum(map(len, bundle.files.values()))
    checks = [
        Check("files", PASSED, f"{len(bundle.files) + 1} files, {size / 1e6:.2f} MB, digest {bundle.digest}"),
        _attempt("graph", lambda: _check_ports(bundle)),
        _attempt("onnx checker", lambda: _check_onnx(bundle), needs="onnx"),
        _attempt("parity on onnx", lambda: _check_parity(bundle, "onnx")),
        _attempt("parity on torch", lambda: _check_parity(bundle, "torch"), needs="torch"),
    ]
    if bundle.manifest["policy"]["content_free"]:
        checks.append(_attempt("swap test", lambda: _check_swap(bundle)))
    else:
        checks.append(Check("swap test", NOT_CHECKED, "not claimed: this gate may look at what was retrieved"))
    return Report(path, (*checks, *_statements(bundle)))


def _check_ports(bundle: Bundle) -> Check:
    session = onnx_session(bundle)
    for kind, found in (("inputs", session.get_inputs()), ("outputs", session.get_outputs())):
        declared = [(port["name"], port["shape"]) for port in bundle.manifest[kind]]
        actual = [(port.name, list(port.shape)) for port in found]
        if declared != actual:
            return Check("graph", FAILED, f"{ONNX} has the {kind} {actual}, the manifest declares {declared}")
    return Check("graph", PASSED, "inputs and outputs are the declared ports")


def _check_onnx(bundle: Bundle) -> Check:
    import onnx

    onnx.checker.check_model(onnx.load_from_string(bundle.files[ONNX]), full_check=True)
    return Check("onnx checker", PASSED, f"onnx {onnx.__version__}")


def _check_parity(bundle: Bundle, backend: str) -> Check:
    name, worst, rows = f"parity on {backend}", 0.0, 0
    runtime = runtime_of(bundle, backend=backend)
    for kind, expected in bundle.parity().items():
        rows += len(expected["observation"])
        for size, difference in differences(runtime, expected):
            if not difference.ok:
                found = f"{difference.bits} bits differ, numbers by up to {difference.floats:.1e}"
                return Check(name, FAILED, f"{kind} inputs in batches of {size}: {found}")
            worst = max(worst, difference.floats)
    batches = ", ".join(map(str, PARITY_BATCHES))
    found = f"{rows} inputs in batches of {batches}: bits equal, numbers within {worst:.0e} (allowed {TOLERANCE:.0e})"
    return Check(name, PASSED, found)


def _check_swap(bundle: Bundle) -> Check:
    layout = ObservationLayout.from_dict(bundle.manifest["observation"])
    rng = np.random.default_rng(0)
    contexts = random_rows(bundle.low, bundle.high, ROWS, rng)
    test = swap_test(runtime_of(bundle), layout, contexts, pool=bundle.pool, encode=encode, rng=rng)
    found = f"{test.queries} queries x {test.pools} pools"
    if test.identical:
        return Check("swap test", PASSED, f"{found} gave bit-identical decisions, as a content-free gate must")
    return Check(
        "swap test",
        FAILED,
        f"the pool changed {test.changed.sum()} of {found}, yet the bundle claims to be content-free",
    )


def _statements(bundle: Bundle) -> list[Check]:
    """What the bundle says of its making and nothing here can recompute."""
    made_of = [name for name, value in bundle.manifest["identity"].items() if value is not None]
    rows = bundle.manifest["parity"]["rows"]
    statements = [
        Check(
            "identity",
            NOT_CHECKED,
            f"compare the stated {', '.join(made_of) or 'nothing'} with what you deploy beside it",
        ),
        Check(
            "metric card",
            NOT_CHECKED,
            f"{len(bundle.manifest['metrics'])} stated figures; recompute with `recallgym evaluate`",
        ),
    ]
    if not rows["recorded"]:
        statements.append(Check("recorded inputs", NOT_CHECKED, "the bundle was exported without any"))
    return statements


def _attempt(name: str, check: Callable[[], Check], needs: str = "onnxruntime") -> Check:
    """Runs a check on a foreign library, whose complaint about the file becomes the finding."""
    if not find_spec(needs):
        return Check(name, NOT_CHECKED, f"{needs} is not installed")
    try:
        return check()
    except Exception as error:  # onnx, onnxruntime and torch raise types of their own
        return Check(name, FAILED, f"{type(error).__name__}: {str(error).strip().splitlines()[0]}")
