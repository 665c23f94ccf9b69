"""The corpus of installed documentation: exact answers that stand in their gold passages, typed distractors."""

import pytest

from recallgym.backends.corpora import apidocs
from recallgym.backends.corpora.apidocs import FAMILIES, Corpus, load_apidocs

PACKAGES = ("joblib", "click", "numpy")


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return load_apidocs(PACKAGES, max_objects=60)


def test_every_answer_stands_literally_in_every_gold_passage(corpus: Corpus) -> None:
    assert len(corpus.questions) > 100
    for question in corpus.questions:
        assert question.gold
        assert all(question.answer in corpus.by_id[g].text for g in question.gold)


def test_three_question_families_are_asked(corpus: Corpus) -> None:
    assert {q.kind for q in corpus.questions} == {"default", "type", "version"}


def test_ids_are_unique_and_passages_short(corpus: Corpus) -> None:
    assert len(corpus.by_id) == len(corpus.documents)
    assert len({q.id for q in corpus.questions}) == len(corpus.questions)
    parameter = [d for d in corpus.documents if d.section == "parameter"]
    assert max(len(d.text) for d in parameter) <= apidocs.MAX_CHARS


def test_families_partition_the_packages_and_questions_carry_their_own(corpus: Corpus) -> None:
    members = [p for packages in FAMILIES.values() for p in packages]
    assert len(members) == len(set(members))
    for question in corpus.questions:
        assert {corpus.by_id[g].family for g in question.gold} == {question.family}


def test_extraction_is_repeatable_and_depends_on_the_packages_read(corpus: Corpus) -> None:
    assert load_apidocs(PACKAGES, max_objects=60).fingerprint == corpus.fingerprint
    assert load_apidocs(("joblib",), max_objects=60).fingerprint != corpus.fingerprint


def test_a_default_matches_the_running_function() -> None:
    import inspect

    import joblib

    defaults = {p.name: p.default for p in inspect.signature(joblib.Parallel.__init__).parameters.values()}
    asked = [q for q in load_apidocs(("joblib",)).questions if q.kind == "default" and q.object.endswith(".Parallel")]
    assert asked
    for question in asked:
        default = defaults[question.parameter]
        assert question.answer == (default if isinstance(default, str) else repr(default))


def test_relations_say_what_a_passage_states_about_the_answer(corpus: Corpus) -> None:
    seen = set()
    by_parameter: dict[tuple[str, str], list[str]] = {}
    for document_id, states in corpus.statements.items():
        for s in states:
            by_parameter.setdefault((s.kind, s.parameter), []).append(document_id)
    for question in corpus.questions[:400]:
        assert all(corpus.relation(question, g) == "gold" for g in question.gold)
        for other in by_parameter.get((question.kind, question.parameter), []):
            relation = corpus.relation(question, other)
            seen.add(relation)
            values = {s.value for s in corpus.statements[other] if s[:2] == (question.kind, question.parameter)}
            if relation == "equivalent":
                assert question.answer in values
            if relation == "contradicting":
                assert question.answer not in values
    assert {"gold", "equivalent", "contradicting"} <= seen


def test_nothing_is_imported(corpus: Corpus) -> None:
    import subprocess
    import sys

    code = (
        "import sys; from recallgym.backends.corpora.apidocs import load_apidocs; "
        "assert load_apidocs(('networkx',), max_objects=20).documents; print('networkx' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"


def test_an_unknown_package_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"unknown packages \['nunpy'\]; apidocs reads"):
        load_apidocs(("nunpy",))
