"""Scores every reading set of a question over the trie of their prompts: a shared prefix is run once.

The sets of one size form a level, whose new passages run on the keys and values of their parents. The tail (question,
reference answer) then runs on the level's nodes, and their answers are decoded together from the same keys and values
with the reference masked out. Few wide passes are what saves time: each reads all weights once.
Padding sits between segments and is masked; positions count real tokens only, so a node's numbers are those of its own
unpadded prompt.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase
from transformers.cache_utils import DynamicLayer

Path = tuple[int, ...]
PASS_TOKENS = 48  # what a forward pass costs beyond its tokens, in tokens (measured for the default reader, one core)


class Generated(NamedTuple):
    """A greedy answer: its tokens (without the stop), mean log-probability and mean entropy in nats."""

    tokens: list[int]
    log_prob: float
    entropy: float


class Leaf(NamedTuple):
    """Outcome of one reading set: mean log-probability of the reference, and the greedy answer."""

    reference: float
    generated: Generated


class _Level(NamedTuple):
    """The keys and values of some nodes, with what tells their tokens from padding."""

    paths: list[Path]
    cache: DynamicCache
    mask: Tensor  # (B, L) int64, 1 where a real token stands


class PrefixTrie:
    """Runs a causal language model over the trie of a question's prompts.

    Args:
        model: Any causal language model of transformers, in evaluation mode.
        tokenizer: Its tokenizer.
        stops: A generated token that holds one of these texts ends the answer, as the end-of-sequence tokens do.
        batch: Most nodes in one forward pass; bounds memory. By default 16 on a CPU, where the work of wider passes no
            longer fits its caches, and 64 elsewhere.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        stops: Sequence[str] = ("\n",),
        batch: int | None = None,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.batch = batch or (16 if model.device.type == "cpu" else 64)
        self.tokens_run = 0
        self._stops = self._stop_tokens(stops)

    @torch.inference_mode()
    def run(
        self,
        head: Sequence[int],
        pieces: Sequence[Sequence[int]],
        tail: Sequence[int],
        paths: Sequence[Path],
        reference: Sequence[int],
        max_new_tokens: int,
    ) -> dict[Path, Leaf]:
        """Scores the prompts ``head + pieces[i] for i in path + tail`` of all paths.

        Args:
            head: Token ids that open every prompt; at least one.
            pieces: Token ids of each passage.
            tail: Token ids that close every prompt; at least one.
            paths: Reading sets as tuples of indices into ``pieces``, in the order shown.
            reference: Token ids of the reference answer.
            max_new_tokens: Longest greedy answer; 0 scores the reference alone.

        Returns:
            Outcome of each path.
        """
        wanted = set(paths)
        needed = {p[:i] for p in wanted for i in range(len(p) + 1)}
        device = self.model.device
        ids = torch.tensor([list(head)], device=device)
        level = self._extend(
            _Level([()], DynamicCache(config=self.model.config), ids[:, :0]), ids, torch.ones_like(ids)
        )
        references: dict[Path, float] = {}
        drafts = {path: _Draft() for path in wanted}
        for size in range(1, max(map(len, wanted), default=0) + 2):
            undecided: list[_Level] = []
            leaves = [row for row, path in enumerate(level.paths) if path in wanted]
            for start in range(0, len(leaves), self.batch):
                chosen = _select(level, leaves[start : start + self.batch])
                scores, rest = self._leaves(chosen, tail, reference, drafts, max_new_tokens)
                references |= scores
                undecided += [rest] if rest.paths else []
            if undecided:
                self._decode(_merge(undecided), drafts, max_new_tokens)
            below = sorted(p for p in needed if len(p) == size)
            if below:  # a level is let go once its leaves are scored and its children run: memory is that of two
                level = self._children(level, below, pieces)
        return {path: Leaf(references[path], drafts[path].generated()) for path in wanted}

    def _children(self, level: _Level, paths: list[Path], pieces: Sequence[Sequence[int]]) -> _Level:
        """Runs the last passage of each path after its parent, in passes of like length, since padding is run too."""
        parent = {p: i for i, p in enumerate(level.paths)}
        paths = sorted(paths, key=lambda p: (len(pieces[p[-1]]), p))
        chunks = []
        for start, end in _passes([len(pieces[p[-1]]) for p in paths], self.batch):
            chosen = paths[start:end]
            width = len(pieces[chosen[-1][-1]])
            ids = torch.zeros(len(chosen), width, dtype=torch.long, device=self.model.device)  # (B, W)
            mask = torch.zeros_like(ids)
            for row, path in enumerate(chosen):
                piece = pieces[path[-1]]
                ids[row, : len(piece)] = torch.tensor(list(piece))
                mask[row, : len(piece)] = 1
            child = _select(level, [parent[p[:-1]] for p in chosen])
            chunks.append(self._extend(child._replace(paths=chosen), ids, mask))
        return _merge(chunks)

    def _extend(self, level: _Level, ids: Tensor, mask: Tensor) -> _Level:
        joined = torch.cat([level.mask, mask], dim=1)
        self.model.base_model(**self._inputs(ids, joined, level.cache))  # for its keys and values: no logits wanted
        return level._replace(mask=joined)

    def _forward(self, ids: Tensor, mask: Tensor, cache: DynamicCache, keep: int) -> Tensor:
        """Runs ids (B, W) after a cache; ``mask`` (B, L + W) covers both. Returns logits (B, keep, V)."""
        return self.model(**self._inputs(ids, mask, cache), logits_to_keep=keep).logits

    def _inputs(self, ids: Tensor, mask: Tensor, cache: DynamicCache) -> dict[str, Any]:
        positions = (mask.cumsum(1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        self.tokens_run += int(mask[:, -ids.shape[1] :].sum())
        return {
            "input_ids": ids,
            "attention_mask": mask,
            "position_ids": positions,
            "cache": cache,
            "use_cache": True,
        }

    def _leaves(
        self, level: _Level, tail: Sequence[int], reference: Sequence[int], drafts: dict[Path, "_Draft"], limit: int
    ) -> tuple[dict[Path, float], _Level]:
        """Scores the reference under each node and begins the greedy answers.

        The reference pass already holds the distributions of every answer that begins as the reference does, so an
        answer needs no decoding while it agrees with it.

        Returns:
            The reference's score by path, and the nodes whose answers are to be decoded further.
        """
        paths = level.paths
        answer = torch.tensor(list(reference), device=self.model.device)  # (A,)
        ids = torch.tensor([*tail, *reference], device=self.model.device).expand(len(paths), -1)  # (B, T + A)
        mask = torch.cat([level.mask, torch.ones_like(ids)], dim=1)
        log_p = self._forward(ids, mask, level.cache, keep=len(reference) + 1).float().log_softmax(-1)  # (B, A + 1, V)
        scores = log_p[:, :-1].gather(-1, answer.expand(len(paths), -1)[..., None])[..., 0]  # (B, A)
        going = list(range(len(paths)))
        for position in range(min(len(reference) + 1, limit)):
            self._take([drafts[paths[i]] for i in going], log_p[going, position])
            expected = reference[position] if position < len(reference) else None
            going = [i for i in going if not drafts[paths[i]].ended and drafts[paths[i]].tokens[-1] == expected]
        rest = [i for i, p in enumerate(paths) if not drafts[p].ended and len(drafts[p].tokens) < limit]
        agreed = torch.tensor([[len(drafts[paths[i]].tokens) - 1] for i in rest], device=mask.device)  # (B', 1)
        level = _select(level._replace(mask=mask), rest)
        if rest:  # the reference is masked out from the first token that differs
            level.mask[:, -len(reference) :] = (torch.arange(len(reference), device=mask.device) < agreed).long()
        return dict(zip(paths, scores.mean(1).tolist(), strict=True)), level

    def _take(self, drafts: Sequence["_Draft"], log_p: Tensor) -> None:
        """Appends the greedy token of each row's distribution (B, V) to its answer."""
        best_log_p, best = log_p.max(-1)
        entropy = -(log_p.exp() * log_p).sum(-1)
        for draft, token, score, spread in zip(
            drafts, best.tolist(), best_log_p.tolist(), entropy.tolist(), strict=True
        ):
            draft.add(token, score, spread, stop=token in self._stops)

    def _decode(self, level: _Level, drafts: dict[Path, "_Draft"], limit: int) -> None:
        """Decodes the begun answers to their ends, in one batch that shrinks as they end."""
        while level.paths:
            last = torch.tensor([[drafts[p].tokens[-1]] for p in level.paths], device=level.mask.device)  # (B, 1)
            mask = torch.cat([level.mask, torch.ones_like(last)], dim=1)
            log_p = self._forward(last, mask, level.cache, keep=1)[:, 0].float().log_softmax(-1)
            self._take([drafts[p] for p in level.paths], log_p)
            level = level._replace(mask=mask)
            kept = [i for i, p in enumerate(level.paths) if not drafts[p].ended and len(drafts[p].tokens) < limit]
            if len(kept) < len(level.paths):
                level = _select(level, kept)

    def _stop_tokens(self, stops: Sequence[str]) -> frozenset[int]:
        ends = self.model.generation_config.eos_token_id
        ends = [] if ends is None else [ends] if isinstance(ends, int) else list(ends)
        texts = self.tokenizer.batch_decode([[i] for i in range(len(self.tokenizer))])
        return frozenset(ends) | {i for i, text in enumerate(texts) if any(stop in text for stop in stops)}


class _Draft:
    """An answer while it is generated."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.ended = False
        self._log_probs: list[float] = []
        self._entropies: list[float] = []

    def add(self, token: int, log_prob: float, entropy: float, *, stop: bool) -> None:
        """Appends a token, or ends the answer at a stop; an empty answer is scored by its stop."""
        self.ended = stop
        if not stop or not self.tokens:
            self._log_probs.append(log_prob)
            self._entropies.append(entropy)
        if not stop:
            self.tokens.append(token)

    def generated(self) -> Generated:
        """Returns the answer with its means (zero where nothing was asked to be generated)."""
        count = max(len(self._log_probs), 1)
        return Generated(self.tokens, sum(self._log_probs) / count, sum(self._entropies) / count)


def _passes(lengths: Sequence[int], most: int) -> list[tuple[int, int]]:
    """Cuts ascending lengths into passes of at most ``most`` rows, so that padding and the passes cost least together.

    Returns:
        Start and end of each pass.
    """
    best: list[tuple[int, int]] = [(0, 0)]  # of the first n rows: least cost, and where their last pass starts
    for end in range(1, len(lengths) + 1):
        starts = range(max(0, end - most), end)
        best.append(min((best[s][0] + PASS_TOKENS + (end - s) * lengths[end - 1], s) for s in starts))
    cuts, end = [], len(lengths)
    while end:
        cuts.append((best[end][1], end))
        end = best[end][1]
    return cuts[::-1]


def _merge(levels: list[_Level]) -> _Level:
    """Joins nodes, padded on the right to one length."""
    if len(levels) == 1:
        return levels[0]
    width = max(level.mask.shape[1] for level in levels)

    def padded(tensors: list[Tensor], dim: int) -> Tensor:
        ends = [(0, 0) * (t.ndim - 1 - dim) + (0, width - t.shape[dim]) for t in tensors]
        return torch.cat([torch.nn.functional.pad(t, end) for t, end in zip(tensors, ends, strict=True)])

    cache = _cache(
        (padded([x.keys for x in layers], 2), padded([x.values for x in layers], 2))
        for layers in zip(*(level.cache.layers for level in levels), strict=True)
    )
    return _Level([p for level in levels for p in level.paths], cache, padded([level.mask for level in levels], 1))


def _select(level: _Level, rows: list[int]) -> _Level:
    """Copies some rows of a level into a cache of their own."""
    index = torch.tensor(rows, dtype=torch.long, device=level.mask.device)
    cache = _cache((layer.keys[index], layer.values[index]) for layer in level.cache.layers)
    return _Level([level.paths[r] for r in rows], cache, level.mask[index])


def _cache(layers: Iterable[tuple[Tensor, Tensor]]) -> DynamicCache:
    """A cache that holds these keys and values; ``DynamicCache.update`` would copy each once more."""
    cache = DynamicCache()
    for keys, values in layers:
        layer = DynamicLayer()
        layer.lazy_initialization(keys, values)
        layer.keys, layer.values = keys, values
        cache.layers.append(layer)
    return cache
