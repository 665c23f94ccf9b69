"""Trie scoring against naive enumeration: the share of the speed-up that the token count allows.

    python benchmarks/trie.py --questions 4

Naive means: one prompt a reading set, batched with prompts of like length, logits at the answer alone, and no keys or
values reused. Greedy answers are switched off
(``max_new_tokens=0``): decoding would cost both the same.
"""

import argparse
import json
import time

import numpy as np
import torch

from recallgym.backends.corpora.apidocs import load_apidocs
from recallgym.backends.interventions.sets import reading_sets
from recallgym.backends.readers.reader import Reader


@torch.inference_mode()
def naive(reader: Reader, question: str, answer: str, pool: list[str], sets: np.ndarray, batch: int) -> np.ndarray:
    """Scores every set on its own prompt; returns (S,) mean log-probabilities of the reference."""
    head = reader.encode(reader.prompt.head.format(question=question), first=True)
    tail = reader.encode(reader.prompt.tail.format(question=question))
    pieces = [reader.passage_tokens(text) for text in pool]
    reference = reader.encode(answer)
    prompts = [head + [t for i in np.flatnonzero(row) for t in pieces[i]] + tail + reference for row in sets]
    order = np.argsort([len(p) for p in prompts], kind="stable")
    scores = np.empty(len(prompts), dtype=np.float32)
    target = torch.tensor(reference)
    for start in range(0, len(order), batch):
        chosen = order[start : start + batch]
        width = max(len(prompts[i]) for i in chosen)
        ids = torch.zeros(len(chosen), width, dtype=torch.long)  # (B, L), padded on the left: answers line up
        mask = torch.zeros_like(ids)
        for row, i in enumerate(chosen):
            ids[row, width - len(prompts[i]) :] = torch.tensor(prompts[i])
            mask[row, width - len(prompts[i]) :] = 1
        positions = (mask.cumsum(1) - 1).clamp(min=0)
        logits = reader.trie.model(
            input_ids=ids, attention_mask=mask, position_ids=positions, logits_to_keep=len(reference) + 1
        ).logits
        log_p = logits[:, :-1].log_softmax(-1).gather(-1, target.expand(len(chosen), -1)[..., None])[..., 0]
        scores[chosen] = log_p.mean(1).numpy()
    return scores


def main() -> None:
    """Prints the ratio, the bound and the share, as a readable line and as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=4, help="pools that are scored [4]")
    parser.add_argument("--batch", type=int, default=8, help="prompts in a naive batch [8]")
    parser.add_argument("--threads", type=int, default=1, help="torch threads [1]")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    reader = Reader.load(max_new_tokens=0)
    corpus = load_apidocs(("joblib", "click", "requests"))
    rng = np.random.default_rng(0)
    sets = reading_sets(6, 3)
    seconds = {"naive": 0.0, "trie": 0.0}
    naive_tokens = trie_tokens = 0
    worst = 0.0
    for index in rng.choice(len(corpus.questions), args.questions, replace=False):
        question = corpus.questions[index]
        pool = [corpus.by_id[question.gold[0]].text]
        pool += [corpus.documents[i].text for i in rng.choice(len(corpus.documents), 5, replace=False)]
        started = time.process_time()
        plain = naive(reader, question.text, question.answer, pool, sets, args.batch)
        seconds["naive"] += time.process_time() - started
        reader.trie.tokens_run = 0
        started = time.process_time()
        outcomes = reader.score(question.text, question.answer, pool, sets)
        seconds["trie"] += time.process_time() - started
        trie_tokens += reader.trie.tokens_run
        naive_tokens += int(outcomes.tokens.sum()) + len(sets) * len(reader.encode(question.answer))
        worst = max(worst, float(np.abs(plain - outcomes.u_ref).max()))
    ratio, bound = seconds["naive"] / seconds["trie"], naive_tokens / trie_tokens
    print(
        f"trie {ratio:.2f}x faster than naive; its token count allows {bound:.2f}x ({ratio / bound:.0%}); "
        f"largest difference {worst:.1e} nats"
    )
    print(
        json.dumps(
            {"ratio": ratio, "bound": bound, "share": ratio / bound, "largest_difference": worst, "seconds": seconds}
        )
    )


if __name__ == "__main__":
    main()
