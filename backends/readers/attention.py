"""Where a reader looks: the share of its attention that each shown passage gets while it answers."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from .reader import Reader


@torch.inference_mode()
def attention_shares(reader: Reader, question: str, answer: str, passages: Sequence[str]) -> NDArray[np.float32]:
    """Measures the attention from an answer to each passage, in one pass over the prompt that shows them all.

    Attention is averaged over layers and heads and over the positions that predict the answer's tokens (the prompt's
    last token predicts the first), and summed over a passage's tokens. What goes to the rest of the prompt, most of it
    to the first token, is left out.

    Args:
        reader: The reader; its model must offer the ``eager`` attention of transformers.
        question: The question.
        answer: What the reader answered. An empty answer is that of the prompt's last token alone.
        passages: The N shown passages in canonical order.

    Returns:
        (N,) float32, not negative, with sum 1 (0 where there is no passage).
    """
    head = reader.encode(reader.prompt.head.format(question=question), first=True)
    pieces = [reader.passage_tokens(text) for text in passages]
    tail = reader.encode(reader.prompt.tail.format(question=question))
    ids = [*head, *(token for piece in pieces for token in piece), *tail, *reader.encode(answer)[:-1]]
    owner = np.full(len(ids), len(pieces))  # which passage each token belongs to; N for none
    owner[len(head) : len(head) + sum(map(len, pieces))] = np.repeat(np.arange(len(pieces)), [len(p) for p in pieces])
    model = reader.trie.model
    usual = model.config._attn_implementation  # transformers has a setter for it and no public getter
    model.set_attn_implementation("eager")
    try:
        layers = model.base_model(
            input_ids=torch.tensor([ids], device=model.device), output_attentions=True, use_cache=False
        ).attentions
    finally:
        model.set_attn_implementation(usual)
    first = len(head) + sum(map(len, pieces)) + len(tail) - 1  # the position that predicts the answer's first token
    weights = sum(layer[0, :, first:].double().mean((0, 1)) for layer in layers)  # (L,)
    mass = np.bincount(owner, weights.cpu().numpy(), minlength=len(pieces) + 1)[:-1]
    return (mass / max(mass.sum(), np.finfo(np.float64).tiny)).astype(np.float32)
