"""Tables from the installed packages with the real reader: resumed, rebuilt, checked and replayed live."""

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import psutil
import pytest

from recallgym.backends.readers.reader import Reader
from recallgym.envs.outcomes import OutcomeTable, TableError, load_table
from recallgym.envs.outcomes.build import build_table
from recallgym.envs.outcomes.check import check_table, passage_texts, recorded_reader
from recallgym.envs.outcomes.orders import audit_orders, score_orders
from recallgym.envs.outcomes.plan import BuildConfig
from recallgym.envs.outcomes.table import RELATIONS, array_names
from recallgym.envs.outcomes.toy import toy_table

pytestmark = [pytest.mark.xdist_group("reader"), pytest.mark.usefixtures("reader")]

CONFIG = BuildConfig(name="small", questions=4, pool=3, budget=2, packages=("joblib", "click"), max_same_answer=1.0)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("build") / "small"
    build_table(CONFIG, out)
    return out


def same_but_seconds(one: OutcomeTable, other: OutcomeTable) -> None:
    for name in set(array_names()) - {"seconds", "attention"}:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.meta["questions"] == other.meta["questions"]
    assert one.meta["fingerprints"] == other.meta["fingerprints"]


def test_a_built_table_loads_and_names_its_sources(built: Path) -> None:
    table = load_table(built)
    assert table.rows == 8
    assert set(table.meta["packages"]) <= {"joblib", "click"}
    assert table.meta["reader_calls"] == 8 * len(table.sets)
    assert (table.seconds > 0).all()


ATTRIBUTION = replace(CONFIG, name="attribution", questions=2, budget=3, conditions=("healthy",), max_chars=80)


def test_an_attribution_table_holds_every_subset_and_where_the_reader_looked(tmp_path: Path) -> None:
    table = build_table(ATTRIBUTION, tmp_path / "attribution")
    assert (table.rows, table.conditions, len(table.sets)) == (2, 1, 8)
    assert table.meta["limits"]["passage_chars"] == 80
    assert table.attention is not None
    assert (table.attention > 0).all()
    np.testing.assert_allclose(table.attention.sum(1), 1, rtol=1e-5)
    report = check_table(tmp_path / "attribution", sample=1)
    assert report.ok, report.lines()
    assert not report.unchecked


@pytest.mark.parametrize("conditions", [("degraded",), ("healthy", "healthy"), ()])
def test_unknown_retrieval_conditions_are_refused(conditions: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="conditions must be"):
        replace(CONFIG, conditions=conditions)


def test_orders_of_many_passages_are_refused() -> None:
    table = toy_table()
    wide = replace(table, meta={**table.meta, "budget": 6})
    with pytest.raises(TableError, match="orders are too many to score"):
        audit_orders(wide)


def test_workers_of_a_killed_build_end_with_the_question_they_are_at(tmp_path: Path) -> None:
    out = tmp_path / "small"
    code = (
        "from recallgym.envs.outcomes.build import build_table; from recallgym.envs.outcomes.plan import BuildConfig\n"
        f"if __name__ == '__main__': build_table(BuildConfig(**{asdict(CONFIG)!r}), {str(out)!r}, workers=2)"
    )
    script = tmp_path / "build.py"
    script.write_text(code, encoding="utf-8")
    process = subprocess.Popen([sys.executable, str(script)], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 240
    while not list(tmp_path.glob("small.work/*.npz")) and time.monotonic() < deadline:
        time.sleep(0.05)
    workers = [p for p in psutil.Process(process.pid).children(recursive=True) if "spawn_main" in " ".join(p.cmdline())]
    assert len(workers) == 2
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    _, alive = psutil.wait_procs(workers, timeout=120)
    assert not alive, "workers went on without anyone to wait for them"


def test_a_build_killed_midway_is_finished_by_the_same_command_with_the_same_table(built: Path, tmp_path: Path) -> None:
    out = tmp_path / "small"
    code = (
        "from recallgym.envs.outcomes.build import build_table; from recallgym.envs.outcomes.plan import BuildConfig; "
        f"c = {asdict(CONFIG)!r}; build_table(BuildConfig(**c), {str(out)!r})"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 240
    while not list(tmp_path.glob("small.work/*.npz")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    finished = len(list(tmp_path.glob("small.work/*.npz")))
    assert 0 < finished < CONFIG.questions
    calls: list[tuple[int, int]] = []
    table = build_table(CONFIG, out, progress=lambda done, total, left: calls.append((done, total)))
    assert len(calls) == CONFIG.questions - finished
    same_but_seconds(table, load_table(built))


def test_rows_of_another_plan_are_refused(built: Path, tmp_path: Path) -> None:
    shutil.copytree(f"{built}.work", tmp_path / "small.work")
    with pytest.raises(TableError, match="holds rows of another plan"):
        build_table(replace(CONFIG, seed=1), tmp_path / "small")


def test_a_check_extracts_the_passages_and_scores_a_sample_again(built: Path) -> None:
    report = check_table(built, sample=2)
    assert report.ok, report.lines()
    assert any("passages extracted again" in line for line in report.held)
    assert any("2 rows scored again" in line for line in report.held)
    assert not report.unchecked


def test_a_check_says_what_it_could_not_check_when_versions_differ(built: Path, tmp_path: Path) -> None:
    table = load_table(built)
    packages = {**table.meta["packages"], "joblib": "0.0.1"}
    path = replace(table, meta={**table.meta, "packages": packages}).save(tmp_path / "other")
    report = check_table(path, sample=0)
    assert any("passages of joblib: made from 0.0.1" in line for line in report.unchecked)


def test_a_check_fails_on_outcomes_that_the_reader_does_not_give(built: Path, tmp_path: Path) -> None:
    table = load_table(built)
    path = replace(table, u_ref=table.u_ref - 0.5).save(tmp_path / "forged")
    report = check_table(path, sample=1)
    assert any("largest difference 5.0e-01" in line for line in report.failed)


def test_stale_passages_state_a_former_value_of_the_asked_question(built: Path) -> None:
    table = load_table(built)
    stale = np.argwhere(table.relation == RELATIONS.index("stale"))
    for row, candidate in stale:
        question = table.meta["questions"][row // 2]
        passage = table.meta["passages"][table.passage[row, candidate]]
        assert question["degraded"] == "outdated"
        assert question["id"] in {edit["question"] for edit in passage["former"]}


def test_too_many_questions_are_refused_with_the_number_there_is(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"yield \d+ questions, 5000 were asked for"):
        build_table(replace(CONFIG, questions=5000), tmp_path / "big")


def test_tabular_and_live_sessions_are_equal_on_real_reader_outputs(built: Path, reader: Reader) -> None:
    from recallgym.backends.text import exact_match, f1
    from recallgym.envs.causal_memory import CausalMemoryConfig
    from recallgym.envs.causal_memory.live import LiveOutcomes
    from recallgym.envs.outcomes.check import passage_texts

    table = load_table(built)
    texts = passage_texts(table)

    def score(row: int, bits: np.ndarray) -> dict[str, float]:
        question = table.meta["questions"][row // table.conditions]
        pool = [texts[i] for i in table.passage[row]]
        outcome = reader.score(question["text"], question["answer"], pool, bits[None])
        return {
            "u_ref": float(outcome.u_ref[0]),
            "u_self": float(outcome.u_self[0]),
            "entropy": float(outcome.entropy[0]),
            "tokens": int(outcome.tokens[0]),
            "exact_match": float(exact_match(outcome.answers[0], question["answer"])),
            "f1": f1(outcome.answers[0], question["answer"]),
        }

    config = CausalMemoryConfig(table=table, split="train", steps=4)
    tabular, live = config.make(), config.make(outcomes=LiveOutcomes(table, score))
    rng = np.random.default_rng(0)
    for seed in (0, 1):
        np.testing.assert_allclose(tabular.reset(seed=seed)[0], live.reset(seed=seed)[0], atol=1e-3)
        ended = False
        while not ended:
            action = rng.integers(0, 2, table.pool + 1).astype(np.int8)
            one, other = tabular.step(action), live.step(action)
            np.testing.assert_allclose(one[0], other[0], atol=1e-3)
            assert one[1] == pytest.approx(other[1], abs=1e-3)
            assert one[2:4] == other[2:4]
            assert one[4]["set"] == other[4]["set"]
            ended = one[2]


def test_every_order_of_a_set_is_scored_as_the_reader_scores_it_and_the_tables_own_comes_first(
    built: Path, reader: Reader
) -> None:
    table = load_table(built)
    row, question = 0, table.meta["questions"][0]
    texts = passage_texts(table)
    pool = [texts[i] for i in table.passage[row]]
    orders = score_orders(recorded_reader(table), question["text"], question["answer"], pool, table)
    assert sorted(orders.u_ref) == list(range(len(table.sets)))
    for column, values in orders.u_ref.items():
        assert values[0] == pytest.approx(table.u_ref[row, column], abs=1e-4)
        assert orders.exact_match[column][0] == table.exact_match[row, column]
    turned = reader.score(question["text"], question["answer"], [pool[2], pool[0]], np.ones((1, 2), dtype=bool))
    assert orders.u_ref[int(table.lookup[0b101])][1] == pytest.approx(float(turned.u_ref[0]), abs=1e-4)


def test_the_audit_of_orders_counts_its_questions(built: Path) -> None:
    calls: list[tuple[int, int]] = []
    audit = audit_orders(load_table(built), questions=2, progress=lambda done, total: calls.append((done, total)))
    assert audit.questions == 2
    assert calls == [(1, 2), (2, 2)]
    assert audit.order_sd > 0
    assert audit.set_sd > 0


def test_a_table_of_another_reader_is_not_scored_again(built: Path) -> None:
    table = load_table(built)
    table.meta["reader"] |= {"fingerprint": "0" * 64}
    with pytest.raises(TableError, match="the table was made with 000000000000"):
        recorded_reader(table)
