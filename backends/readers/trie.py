"""Scores every reading set of a question over the trie of their prompts: a shared prefix is run once.

The sets of one size form a level. A level's new passages run in one batch on the keys and values of their parents;
the tail (question, reference answer) then runs on every node of the level in one batch, and the answer is decoded from
the same keys and values with the reference masked out. Padding sits between segments and is masked; positions count
real tokens only, so a node's numbers are those of its own unpadded prompt.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

Path = tuple[int, ...]


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
        batch: Most nodes in one forward pass; bounds memory.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        stops: Sequence[str] = ("\n",),
        batch: int = 64,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.batch = batch
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
            paths: Reading sets as increasing tuples of indices into ``pieces``.
            reference: Token ids of the reference answer.
            max_new_tokens: Longest greedy answer.

        Returns:
            Outcome of each path.
        """
        wanted = set(paths)
        needed = {p[:i] for p in wanted for i in range(len(p) + 1)}
        device = self.model.device
        ids = torch.tensor([list(head)], device=device)
        level = self._extend(_Level([()], DynamicCache(config=self.model.config), ids[:, :0]), ids, torch.ones_like(ids))
        leaves: dict[Path, Leaf] = {}
        for size in range(max(map(len, wanted), default=0) + 1):
            if size:
                level = self._children(level, sorted(p for p in needed if len(p) == size), pieces)
            rows = [i for i, p in enumerate(level.paths) if p in wanted]
            for start in range(0, len(rows), self.batch):
                chunk = _select(level, rows[start : start + self.batch])
                leaves |= self._leaves(chunk, tail, reference, max_new_tokens)
        return leaves

    def _children(self, level: _Level, paths: list[Path], pieces: Sequence[Sequence[int]]) -> _Level:
        parent = {p: i for i, p in enumerate(level.paths)}
        width = max(len(pieces[p[-1]]) for p in paths)
        ids = torch.zeros(len(paths), width, dtype=torch.long, device=self.model.device)  # (B, W)
        mask = torch.zeros_like(ids)
        for row, path in enumerate(paths):
            piece = pieces[path[-1]]
            ids[row, : len(piece)] = torch.tensor(list(piece))
            mask[row, : len(piece)] = 1
        child = _select(level, [parent[p[:-1]] for p in paths])
        return self._extend(child._replace(paths=paths), ids, mask)

    def _extend(self, level: _Level, ids: Tensor, mask: Tensor) -> _Level:
        joined = torch.cat([level.mask, mask], dim=1)
        self._forward(ids, joined, level.cache, keep=1)
        return level._replace(mask=joined)

    def _forward(self, ids: Tensor, mask: Tensor, cache: DynamicCache, keep: int) -> Tensor:
        """Runs ids (B, W) after a cache; ``mask`` (B, L + W) covers both. Returns the last ``keep`` logits (B, keep, V)."""
        positions = (mask.cumsum(1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        self.tokens_run += ids.numel()
        return self.model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            cache=cache,
            use_cache=True,
            logits_to_keep=keep,
        ).logits

    def _leaves(
        self, level: _Level, tail: Sequence[int], reference: Sequence[int], max_new_tokens: int
    ) -> dict[Path, Leaf]:
        count = len(level.paths)
        answer = torch.tensor(list(reference), device=self.model.device)  # (A,)
        ids = torch.tensor([*tail, *reference], device=self.model.device).expand(count, -1)  # (B, T + A)
        mask = torch.cat([level.mask, torch.ones_like(ids)], dim=1)
        log_p = self._forward(ids, mask, level.cache, keep=len(reference) + 1).float().log_softmax(-1)  # (B, A + 1, V)
        scores = log_p[:, :-1].gather(-1, answer.expand(count, -1)[..., None])[..., 0]  # (B, A)
        drafts = [_Draft() for _ in range(count)]
        # The reference pass already holds the distributions of every answer that begins as the reference does, so
        # those rows need no decoding step while they agree with it.
        going = list(range(count))
        for position in range(min(len(reference) + 1, max_new_tokens)):
            going = self._take(drafts, going, log_p[going, position])
            expected = reference[position] if position < len(reference) else None
            going = [row for row in going if drafts[row].tokens[-1] == expected]
        self._decode(level.cache, mask, len(reference), drafts, max_new_tokens)
        return {
            path: Leaf(score, draft.generated())
            for path, score, draft in zip(level.paths, scores.mean(1).tolist(), drafts, strict=True)
        }

    def _take(self, drafts: list["_Draft"], rows: list[int], log_p: Tensor) -> list[int]:
        """Appends the greedy token of each row's distribution (B', V); returns the rows whose answers go on."""
        best_log_p, best = log_p.max(-1)
        entropy = -(log_p.exp() * log_p).sum(-1)
        for row, token, score, spread in zip(rows, best.tolist(), best_log_p.tolist(), entropy.tolist(), strict=True):
            drafts[row].add(token, score, spread, stop=token in self._stops)
        return [row for row in rows if not drafts[row].ended]

    def _decode(self, cache: DynamicCache, mask: Tensor, drafted: int, drafts: list["_Draft"], limit: int) -> None:
        """Decodes the answers that left the reference; it is masked out from the first token that differs."""
        rows = [i for i, d in enumerate(drafts) if not d.ended and len(d.tokens) < limit]
        if not rows:
            return
        device = mask.device
        index = torch.tensor(rows, device=device)
        cache.batch_select_indices(index)
        agreed = torch.tensor([len(drafts[r].tokens) - 1 for r in rows], device=device)  # tokens shared with the reference
        mask = mask[index].clone()
        mask[:, -drafted:] = (torch.arange(drafted, device=device) < agreed[:, None]).long()
        while rows:
            last = torch.tensor([[drafts[r].tokens[-1]] for r in rows], device=device)  # (B', 1)
            mask = torch.cat([mask, torch.ones_like(last)], dim=1)
            log_p = self._forward(last, mask, cache, keep=1)[:, 0].float().log_softmax(-1)
            going = {r for r in self._take(drafts, rows, log_p) if len(drafts[r].tokens) < limit}
            kept = [i for i, r in enumerate(rows) if r in going]
            if kept and len(kept) < len(rows):
                index = torch.tensor(kept, device=device)
                cache.batch_select_indices(index)
                mask = mask[index]
            rows = [rows[i] for i in kept]

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
        """Returns the answer with its means."""
        count = len(self._log_probs)
        return Generated(self.tokens, sum(self._log_probs) / count, sum(self._entropies) / count)


def _select(level: _Level, rows: list[int]) -> _Level:
    """Copies some rows of a level into a cache of their own."""
    index = torch.tensor(rows, device=level.mask.device)
    cache = DynamicCache()
    for i, layer in enumerate(level.cache.layers):
        cache.update(layer.keys[index], layer.values[index], i)
    return _Level([level.paths[r] for r in rows], cache, level.mask[index])
