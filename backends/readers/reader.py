"""A frozen causal language model as a reader: what it says, and how sure it is, under every reading set."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from .loading import load_causal_lm
from .prompt import Prompt
from .trie import Generated, PrefixTrie

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class Outcomes(NamedTuple):
    """What the reader did under each of S reading sets.

    Attributes:
        u_ref: (S,) float32, nats a token: mean log-probability of the reference answer.
        u_self: (S,) float32, nats a token: mean log-probability of the generated answer.
        entropy: (S,) float32, nats: mean entropy of the distributions that the answer was generated from.
        answers: The S generated answers.
        tokens: (S,) int64: prompt tokens.
    """

    u_ref: NDArray[np.float32]
    u_self: NDArray[np.float32]
    entropy: NDArray[np.float32]
    answers: list[str]
    tokens: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Reader:
    """A causal language model with its prompt.

    Build one with :meth:`load`. ``calls`` are counted in reading sets scored, ``processed`` in tokens run through
    the model; results show both.
    """

    trie: PrefixTrie
    prompt: Prompt
    fingerprint: str
    name: str
    max_passage_tokens: int
    max_new_tokens: int

    @classmethod
    def load(
        cls,
        name: str = "smollm2",
        *,
        dtype: str = "float32",
        device: str = "cpu",
        prompt: Prompt | None = None,
        max_passage_tokens: int = 64,
        max_new_tokens: int = 6,
        allow_download: bool = False,
    ) -> "Reader":
        """Loads a reader.

        Args:
            name: ``smollm2`` (packaged default), a local path or a Hugging Face id of any causal language model.
            dtype: float32, bfloat16 or float16.
            device: Torch device, e.g. ``cpu`` or ``cuda``.
            prompt: Template; the default asks for a short answer after a list of passages.
            max_passage_tokens: Longer passages are cut here.
            max_new_tokens: Longest generated answer.
            allow_download: Whether a Hugging Face id may be fetched.
        """
        if dtype not in _DTYPES:
            raise ValueError(f"dtype must be one of {', '.join(_DTYPES)}, got {dtype!r}")
        model, tokenizer, fingerprint = load_causal_lm(
            name, dtype=_DTYPES[dtype], device=device, allow_download=allow_download
        )
        prompt = prompt or Prompt()
        trie = PrefixTrie(model, tokenizer, stops=prompt.stops)
        return cls(trie, prompt, fingerprint, name, max_passage_tokens, max_new_tokens)

    def encode(self, text: str, *, first: bool = False) -> list[int]:
        """Tokenises one piece of a prompt; the first piece carries the beginning-of-sequence token, if there is one."""
        tokenizer = self.trie.tokenizer
        ids = list(tokenizer(text, add_special_tokens=False).input_ids)
        if first and tokenizer.bos_token_id is not None:
            ids = [tokenizer.bos_token_id, *ids]
        return ids

    def passage_tokens(self, text: str) -> list[int]:
        """Tokenises a passage within its template, cut so that the passage itself has at most 64 tokens."""
        body = self.encode(text)
        if len(body) > self.max_passage_tokens:
            text = self.trie.tokenizer.decode(body[: self.max_passage_tokens])
        return self.encode(self.prompt.passage.format(passage=text))

    def score(self, question: str, answer: str, passages: Sequence[str], sets: NDArray[np.bool_]) -> Outcomes:
        """Enumerates the outcomes of one question over one pool: :meth:`score_pools` with one."""
        return self.score_pools(question, answer, [passages], sets)[0]

    def score_pools(
        self, question: str, answer: str, pools: Sequence[Sequence[str]], sets: NDArray[np.bool_]
    ) -> list[Outcomes]:
        """Enumerates the outcomes of one question over several pools at once; prompts that they share run once.

        Args:
            question: The question.
            answer: The reference answer; it decides ``u_ref`` and nothing else.
            pools: The N candidates' texts of each pool, in canonical order.
            sets: (S, N) bool, the reading sets; row i shows the passages whose bit is set, in canonical order.

        Returns:
            The outcomes of each pool, one entry a set, in the order of ``sets``.
        """
        head = self.encode(self.prompt.head.format(question=question), first=True)
        tail = self.encode(self.prompt.tail.format(question=question))
        texts = list(dict.fromkeys(text for pool in pools for text in pool))
        pieces = [self.passage_tokens(text) for text in texts]
        place = {text: i for i, text in enumerate(texts)}
        chosen = [np.flatnonzero(row).tolist() for row in np.asarray(sets, dtype=bool)]
        paths = [[tuple(place[pool[i]] for i in row) for row in chosen] for pool in pools]
        every = list(dict.fromkeys(path for pool in paths for path in pool))
        leaves = self.trie.run(head, pieces, tail, every, self.encode(answer), self.max_new_tokens)
        fixed = len(head) + len(tail)
        return [
            Outcomes(
                np.array([leaves[p].reference for p in pool], dtype=np.float32),
                np.array([leaves[p].generated.log_prob for p in pool], dtype=np.float32),
                np.array([leaves[p].generated.entropy for p in pool], dtype=np.float32),
                [self._text(leaves[p].generated) for p in pool],
                np.array([fixed + sum(len(pieces[i]) for i in p) for p in pool], dtype=np.int64),
            )
            for pool in paths
        ]

    def _text(self, generated: Generated) -> str:
        return str(self.trie.tokenizer.decode(generated.tokens, skip_special_tokens=True)).strip()
