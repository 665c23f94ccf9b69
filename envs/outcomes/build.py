"""Builds an outcome table: a plan, then every question under every set; a kill at any moment loses one question."""

import json
import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ...backends.corpora.apidocs import FAMILIES, load_apidocs
from ...backends.interventions.sets import reading_sets
from ...backends.readers.attention import attention_shares
from ...backends.readers.embedder import Embedder
from ...backends.readers.reader import Reader
from ...backends.text import exact_match, f1
from .plan import BuildConfig, Plan, make_plan, passage_indices, plan_meta
from .table import RELATIONS, SPLITS, OutcomeTable, TableError, load_table

Progress = Callable[[int, int, float], None]
STRATA = ("gold present", "gold absent", "contradicted", "stale", "duplicated", "answerable closed-book")


def build_table(
    config: BuildConfig,
    out: str | Path,
    *,
    workers: int = 1,
    progress: Progress | None = None,
    limit: int | None = None,
) -> OutcomeTable:
    """Builds a decision table over the documentation of the installed packages.

    Finished questions lie in ``<out>.work``; repeating the call after an interruption does the rest and gives the same
    table. Only seconds differ from run to run.

    Args:
        config: What to build.
        out: Directory of the table.
        workers: Processes that score, each on one thread (or the GPU of ``config.device``).
        progress: Called with (questions done, questions in all, seconds left by estimate).
        limit: Stop with a table of the first ``limit`` questions; None takes all.

    Raises:
        TableError: The work directory belongs to another plan.
    """
    out = Path(out)
    work = out.with_name(out.name + ".work")
    reader = _load_reader(config)
    corpus = load_apidocs(config.packages, max_chars=config.max_chars)
    plan = make_plan(config, corpus, Embedder(), lambda text: len(reader.encode(text)))
    _claim(work, plan)
    count = limit or len(plan.questions)
    waiting = [q for q in range(count) if not _file(work, q).exists()]
    if workers > 1 and len(waiting) > 1:
        _score_in_processes(config, plan, work, waiting, count, workers, progress)
    else:
        started = time.monotonic()
        for done, index in enumerate(waiting, 1):
            score_question(plan, reader, index, work)
            if progress:
                spent = time.monotonic() - started
                progress(count - len(waiting) + done, count, spent / done * (len(waiting) - done))
    _assemble(plan, work, count, reader).save(out)
    return load_table(out)


def score_question(plan: Plan, reader: Reader, index: int, work: Path) -> None:
    """Enumerates a question under all conditions and stores it atomically, so that a kill leaves whole questions."""
    question = plan.questions[index]
    conditions = len(plan.config.conditions)
    rows = range(index * conditions, (index + 1) * conditions)
    sets = reading_sets(plan.config.pool, plan.config.budget)
    started = time.perf_counter()
    outcomes = reader.score_pools(question.text, question.answer, [plan.texts(r) for r in rows], sets)
    seconds = (time.perf_counter() - started) / len(rows)
    scratch = _file(work, index).with_suffix(f".{os.getpid()}.tmp")
    with scratch.open("wb") as file:
        np.savez(
            file,
            u_ref=[o.u_ref for o in outcomes],
            u_self=[o.u_self for o in outcomes],
            entropy=[o.entropy for o in outcomes],
            tokens=[o.tokens for o in outcomes],
            answers=np.array([o.answers for o in outcomes], dtype=np.str_),
            seconds=np.full(len(rows), seconds, dtype=np.float32),
        )
    scratch.replace(_file(work, index))


def _score_in_processes(
    config: BuildConfig, plan: Plan, work: Path, waiting: list[int], total: int, workers: int, progress: Progress | None
) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=_worker, args=(config, plan, str(work), waiting[i::workers]), daemon=True)
        for i in range(workers)
    ]
    for process in processes:
        process.start()
    started = time.monotonic()
    while any(p.is_alive() for p in processes):
        time.sleep(1)
        if any(p.exitcode not in (None, 0) for p in processes):
            for process in processes:
                process.terminate()
            raise RuntimeError("a scoring process died; finished questions are kept, repeat the command to go on")
        left = sum(not _file(work, q).exists() for q in waiting)
        done = len(waiting) - left
        if progress:
            spent = time.monotonic() - started
            progress(total - left, total, spent / max(done, 1) * left)
    for process in processes:
        process.join()


def _worker(config: BuildConfig, plan: Plan, work: str, waiting: list[int]) -> None:
    torch.set_num_threads(1)
    reader = _load_reader(config)
    parent = multiprocessing.parent_process()
    for index in waiting:
        if parent is None or not parent.is_alive():
            return  # killed: nobody waits for the rest, and repeating the command would do it a second time
        score_question(plan, reader, index, Path(work))


def _load_reader(config: BuildConfig) -> Reader:
    return Reader.load(config.reader, dtype=config.dtype, device=config.device)


def _file(work: Path, index: int) -> Path:
    return work / f"{index:06d}.npz"


def _claim(work: Path, plan: Plan) -> None:
    work.mkdir(parents=True, exist_ok=True)
    stamp = work / "plan.json"
    if not stamp.exists():
        scratch = stamp.with_suffix(f".{os.getpid()}.tmp")
        scratch.write_text(json.dumps({"fingerprint": plan.fingerprint}), encoding="utf-8")
        scratch.replace(stamp)
    found = json.loads(stamp.read_text(encoding="utf-8"))["fingerprint"]
    if found != plan.fingerprint:
        raise TableError(
            f"{work}: holds rows of another plan ({found[:12]}, not {plan.fingerprint[:12]}); the configuration or the "
            "installed packages changed. Remove the directory to start afresh, or name another output"
        )


def _attention(plan: Plan, texts: Sequence[Sequence[str]], reader: Reader) -> NDArray[np.float32] | None:
    """The attention of every row over its whole pool, where the table has the set that shows it: the last one."""
    if plan.config.budget < plan.config.pool:
        return None
    conditions = len(plan.config.conditions)
    return np.stack(
        [
            attention_shares(reader, plan.questions[row // conditions].text, answers[-1], plan.texts(row))
            for row, answers in enumerate(texts)
        ]
    )


def _assemble(plan: Plan, work: Path, questions: int, reader: Reader) -> OutcomeTable:
    """Joins the finished rows of the first ``questions`` questions into a table."""
    conditions = len(plan.config.conditions)
    rows = questions * conditions
    stored = [dict(np.load(_file(work, q))) for q in range(questions)]
    column = {name: np.concatenate([one[name] for one in stored]) for name in stored[0]}  # (R, S), seconds (R,)
    texts = [[str(a) for a in row] for row in column["answers"]]
    vocabulary = {text: i for i, text in enumerate(dict.fromkeys(a for row in texts for a in row))}
    references = [plan.questions[r // conditions].answer for r in range(rows)]
    graded = {
        (a, reference): (exact_match(a, reference), f1(a, reference))
        for row, reference in zip(texts, references, strict=True)
        for a in row
    }
    grades = np.array(
        [[graded[a, reference] for a in row] for row, reference in zip(texts, references, strict=True)]
    )  # (R, S, 2)
    by_question = {"query", "domain", "split", "family"}
    planned = {k: v[:questions] if k in by_question else v[:rows] for k, v in plan.arrays.items() if k != "noised"}
    planned["noised"] = plan.arrays["noised"][:, :questions]
    exact = grades[..., 0].astype(np.uint8)
    meta = plan_meta(plan) | {
        "strata": list(STRATA),
        "splits": list(SPLITS),
        "answers": list(vocabulary),
        "prompt": reader.prompt.to_dict(),
        "reader": {"name": plan.config.reader, "fingerprint": reader.fingerprint, "dtype": plan.config.dtype},
        "limits": {
            "passage_chars": plan.config.max_chars,
            "passage_tokens": reader.max_passage_tokens,
            "new_tokens": reader.max_new_tokens,
        },
        "fingerprints": plan.fingerprints | {"reader": reader.fingerprint, "plan": plan.fingerprint},
        "seed": plan.config.seed,
        "packages_read": list(plan.config.packages or [p for members in FAMILIES.values() for p in members]),
        "seconds": round(float(column["seconds"].sum()), 1),
        "reader_calls": rows * exact.shape[1],
    }
    meta["questions"] = meta["questions"][:questions]
    return OutcomeTable(
        **planned,
        u_ref=column["u_ref"],
        u_self=column["u_self"],
        entropy=column["entropy"],
        tokens=column["tokens"].astype(np.uint16),
        exact_match=exact,
        f1=grades[..., 1].astype(np.float32),
        answer=np.array([[vocabulary[a] for a in row] for row in texts], dtype=np.int32),
        seconds=column["seconds"],
        passage=passage_indices(plan)[:rows],
        strata=_strata(planned["relation"], exact),
        meta=meta,
        attention=_attention(plan, texts, reader),
    )


def _strata(relation: NDArray[np.uint8], exact_match: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Returns (R, T) bool by ``STRATA``. Column 0 of the outcomes is the empty set: the reader without passages."""
    has = {name: (relation == code) for code, name in enumerate(RELATIONS)}
    gold = has["gold"].any(1)
    return np.stack(
        [
            gold,
            ~gold,
            has["contradicting"].any(1),
            has["stale"].any(1),
            has["gold"].sum(1) > 1,
            exact_match[:, 0] > 0,
        ],
        axis=1,
    )
