"""Former snapshots: an edited passage states the former value, elsewhere nothing changes."""

import re

import numpy as np
import pytest

from recallgym.backends.corpora.apidocs import load_apidocs
from recallgym.backends.corpora.outdated import former_value, outdate
from recallgym.backends.corpora.records import Document, Question


def question(kind: str, answer: str, parameter: str = "n") -> Question:
    return Question(f"{kind}/a.f/{parameter}", kind, "?", answer, (), "a", "a.f", parameter)


def document(section: str, text: str) -> Document:
    return Document(f"a.f#{section}/0", "a", "a", "1", "a.f", section, "n", text)


def test_a_signature_changes_the_asked_parameter_alone() -> None:
    edited = outdate(document("signature", "a.f(m=0, n=0, other_n=0)"), question("default", "0"), "7")
    assert edited is not None
    assert edited.text == "a.f(m=0, n=7, other_n=0)"
    assert edited.id == "a.f#signature/0@default/a.f/n"


def test_a_quoted_default_keeps_its_quotes() -> None:
    edited = outdate(document("signature", "a.f(n='auto')"), question("default", "auto"), "warn")
    assert edited is not None
    assert edited.text == "a.f(n='warn')"


def test_a_number_inside_another_is_left_alone() -> None:
    edited = outdate(document("parameter", "a.f, parameter n: 10 or 1.0; default 1."), question("default", "1"), "2")
    assert edited is not None
    assert edited.text == "a.f, parameter n: 10 or 1.0; default 2."


def test_nothing_to_edit_gives_none() -> None:
    assert outdate(document("parameter", "a.f, parameter n: 10"), question("default", "1"), "2") is None


@pytest.mark.parametrize(("answer", "former"), [("True", "False"), ("False", "True"), ("None", "False")])
def test_flags_flip(answer: str, former: str) -> None:
    assert former_value(question("default", answer), [], np.random.default_rng(0)) == former


def test_numbers_become_numbers_and_never_the_answer() -> None:
    others = [question("default", a) for a in ("1", "2", "-1e-3", "auto", "None")]
    drawn = {former_value(others[0], others, np.random.default_rng(s)) for s in range(20)}
    assert drawn == {"2", "-1e-3"}


def test_most_real_gold_passages_can_be_outdated_and_then_lack_the_answer_as_stated() -> None:
    corpus = load_apidocs(("joblib",))
    asked = [q for q in corpus.questions if q.kind == "default"]
    edited = [
        (q, outdate(corpus.by_id[g], q, former_value(q, asked, np.random.default_rng(0))))
        for q in asked
        for g in q.gold
    ]
    assert np.mean([d is not None for _, d in edited]) > 0.9
    for q, d in edited:
        if d is not None and d.section == "signature":
            assert not re.search(rf"\b{re.escape(f'{q.parameter}={q.answer}')}[,)]", d.text)
