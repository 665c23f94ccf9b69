"""Describes a table, and holds it against the packages and the reader that it was made from."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...backends.corpora.apidocs import MAX_CHARS, Corpus, installed_version, load_apidocs
from ...backends.corpora.outdated import outdate
from ...backends.corpora.records import Document, Question
from ...backends.estimation.walsh import spectrum
from ...backends.interventions.scores import top_k
from ...backends.interventions.sets import bit_codes
from ...backends.readers.prompt import Prompt
from ...backends.readers.reader import Reader
from .table import RELATIONS, SPLITS, OutcomeTable, TableError, load_table

SHOWN_ORDERS = 4  # of interaction, one by one; those above are added up
TOLERANCE = 1e-3  # nats a token; float32 on another processor


def describe(table: OutcomeTable) -> list[str]:
    """Returns what a table holds, a line each: size, splits, strata, and what choosing is worth."""
    meta = table.meta
    keep_all = keep_all_columns(table)
    rows = np.arange(table.rows)
    best = table.u_ref.max(1)
    unmasked = table.u_ref[rows, keep_all]
    gold = np.asarray(table.relation) == RELATIONS.index("gold")
    lines = [
        f"{meta['name']}: {table.questions} questions x {table.conditions} conditions "
        f"({', '.join(meta['conditions'])}), {len(table.sets)} reading sets of at most {table.budget} "
        f"of {table.pool} candidates",
        *_reader_lines(meta),
        f"fingerprint {table.fingerprint}",
    ]
    for code, split in enumerate(SPLITS):
        inside = np.asarray(table.split) == code
        families = sorted({meta["families"][f] for f in np.asarray(table.family)[inside]})
        lines.append(f"{split}: {int(inside.sum())} questions of {', '.join(families)}")
    for name, flags in zip(meta["strata"], np.asarray(table.strata).T, strict=True):
        if flags.any():
            lines.append(
                f"{name}: {int(flags.sum())} rows; U_ref keep-all {unmasked[flags].mean():+.2f}, best set "
                f"{best[flags].mean():+.2f}, nothing read {table.u_ref[flags, 0].mean():+.2f}"
            )
    single = [table.lookup[1 << int(g)] for g in gold.argmax(1)]
    with_gold = gold.any(1)
    lines.append(
        f"exact match: nothing read {table.exact_match[:, 0].mean():.2f}, keep-all "
        f"{table.exact_match[rows, keep_all].mean():.2f}, gold alone (where the pool has it) "
        f"{table.exact_match[rows, single][with_gold].mean():.2f}"
    )
    if table.budget == table.pool:
        lines += [_spectrum_line(table, "u_ref"), _spectrum_line(table, "u_self")]
    return lines


def _spectrum_line(table: OutcomeTable, outcome: str) -> str:
    """How much of an outcome's variance over all subsets interactions of each order hold, as a mean over rows."""
    energy = spectrum(getattr(table, outcome)[:, table.lookup])[:, 1:]  # (R, N)
    total = energy.sum(1)
    shares = (energy[total > 0] / total[total > 0, None]).mean(0)
    parts = ", ".join(f"{order} {share:.1%}" for order, share in enumerate(shares, 1) if order <= SHOWN_ORDERS)
    rest = f", above {shares[SHOWN_ORDERS:].sum():.1%}" if len(shares) > SHOWN_ORDERS else ""
    return (
        f"{outcome}: standard deviation over subsets {np.sqrt(total).mean():.2f}; by order of interaction {parts}{rest}"
    )


def keep_all_columns(table: OutcomeTable) -> np.ndarray:
    """Returns (R,) the column of the unmasked reading: the top k by the first retriever's score."""
    return table.lookup[bit_codes(top_k(table.scores[:, :, 0], table.budget))]


def _reader_lines(meta: dict[str, Any]) -> list[str]:
    """Who answered and what it cost; nothing for a toy table, whose outcomes are computed."""
    if "reader" not in meta:
        return []
    reader = meta["reader"]
    return [
        f"reader {reader['name']} ({reader['dtype']}, {reader['fingerprint'][:12]}), "
        f"{meta['reader_calls']} reading sets scored in {meta['seconds']:.0f} processor seconds"
    ]


@dataclass
class CheckReport:
    """Outcome of a check: what held, what failed, what could not be checked and why."""

    held: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return not self.failed

    def lines(self) -> list[str]:
        """Returns the report, a line each."""
        return [
            *(f"holds: {line}" for line in self.held),
            *(f"FAILED: {line}" for line in self.failed),
            *(f"could not check: {line}" for line in self.unchecked),
        ]


def check_table(path: str | Path, *, sample: int = 5, seed: int = 0, device: str = "cpu") -> CheckReport:
    """Checks a table against its checksums, the installed packages and the reader.

    Args:
        path: Directory of the table.
        sample: Rows whose outcomes are computed again, drawn among those whose passages could be extracted.
        seed: Seed of that draw.
        device: Torch device of the reader.

    Raises:
        TableError: The files are truncated, edited or foreign.
    """
    table = load_table(path)
    report = CheckReport(held=["every file has the checksum that table.json states"])
    if table.meta["name"] == "toy":
        report.unchecked.append("passages and outcomes: a toy table has no source")
        return report
    texts = _texts(table, report)
    if sample:
        _rescore(table, texts, sample, seed, device, report)
    return report


def passage_texts(table: OutcomeTable) -> dict[int, str]:
    """Extracts a table's passages from the installed packages, by their place in ``meta["passages"]``.

    Those whose package has another version, or whose text has another digest, are left out.
    """
    return _texts(table, CheckReport())


def recorded_reader(table: OutcomeTable, device: str = "cpu") -> Reader:
    """Loads the reader that a table was made with, under the prompt and the limits that it records.

    Raises:
        TableError: What is installed under that name is another reader.
        FileNotFoundError: It is not installed.
    """
    settings, limits = table.meta["reader"], table.meta["limits"]
    reader = Reader.load(
        settings["name"],
        dtype=settings["dtype"],
        device=device,
        prompt=Prompt.from_dict(table.meta["prompt"]),
        max_passage_tokens=limits["passage_tokens"],
        max_new_tokens=limits["new_tokens"],
    )
    if reader.fingerprint != settings["fingerprint"]:
        recorded = settings["fingerprint"][:12]
        raise TableError(f"the installed reader is {reader.fingerprint[:12]}, the table was made with {recorded}")
    return reader


def _texts(table: OutcomeTable, report: CheckReport) -> dict[int, str]:
    packages = table.meta["packages"]
    for package, version in packages.items():
        found = installed_version(package)
        if found != version:
            report.unchecked.append(f"passages of {package}: made from {version}, installed is {found or 'none'}")
    same = [p for p, v in packages.items() if installed_version(p) == v]
    if not same:
        return {}
    corpus = load_apidocs(same, max_chars=table.meta["limits"].get("passage_chars", MAX_CHARS))
    questions = {q.id: q for q in corpus.questions}
    texts: dict[int, str] = {}
    altered = []
    for i, passage in enumerate(table.meta["passages"]):
        if passage["package"] not in same:
            continue
        document = _document(corpus, passage, questions)
        if document is not None and document.sha256 == passage["sha256"]:
            texts[i] = document.text
        else:
            altered.append(passage["id"])
    report.held.append(f"{len(texts)} of {len(table.meta['passages'])} passages extracted again with the same digest")
    if altered:
        report.failed.append(f"{len(altered)} passages differ from the recorded digest, first {altered[0]}")
    return texts


def _document(corpus: Corpus, passage: dict[str, Any], questions: dict[str, Question]) -> Document | None:
    original, _, _ = passage["id"].partition("@")
    document = corpus.by_id.get(original)
    for edit in passage.get("former", ()):
        if document is None:
            return None
        question = questions[edit["question"]]
        document = outdate(document, question, edit["value"])
    return document


def _rescore(
    table: OutcomeTable, texts: dict[int, str], sample: int, seed: int, device: str, report: CheckReport
) -> None:
    whole = np.flatnonzero(np.isin(table.passage, list(texts)).all(1))
    if not len(whole):
        report.unchecked.append("outcomes: no pool could be extracted whole")
        return
    try:
        reader = recorded_reader(table, device)
    except (TableError, OSError) as error:
        report.unchecked.append(f"outcomes: {error}")
        return
    rows = np.random.default_rng(seed).choice(whole, size=min(sample, len(whole)), replace=False)
    worst = 0.0
    for row in rows:
        question = table.meta["questions"][row // table.conditions]
        pool = [texts[i] for i in table.passage[row]]
        outcomes = reader.score(question["text"], question["answer"], pool, table.sets)
        for name in ("u_ref", "u_self", "entropy"):
            worst = max(worst, float(np.abs(getattr(outcomes, name) - getattr(table, name)[row]).max()))
    text = f"{len(rows)} rows scored again under {len(table.sets)} reading sets, largest difference {worst:.1e} nats"
    (report.held if worst <= TOLERANCE else report.failed).append(text)
