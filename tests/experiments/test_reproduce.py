import csv
import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from recallgym.experiments import reproduce as module
from recallgym.experiments.compose import ConfigError
from recallgym.experiments.report import ReportError, summary, write_report
from recallgym.experiments.reproduce import command_line, cost, describe, planned_ablation, reproduce
from recallgym.experiments.results import Evaluations
from recallgym.experiments.statistics import benjamini_hochberg, holm
from recallgym.experiments.store import Store
from recallgym.experiments.tables import latex, markdown, number, write_tables

KEYS = {  # the interface of a table's JSON
    *("name", "claim", "metric", "definition", "unit", "direction", "arms", "comparisons", "primary", "delta"),
    *("instrument", "verdict", "seeds", "fingerprints", "command", "duration_s"),
}


@pytest.fixture(scope="module")
def settings(toy_path, config_dir):
    return {"config_dir": config_dir, "progress": False, "seeds": 3}, [f"env.table={toy_path}"]


@pytest.fixture(scope="module")
def done(settings, tmp_path_factory):
    """The ablation ``tiny``, reproduced: what came back, where it lies, and its store."""
    folder = tmp_path_factory.mktemp("done")
    options, overrides = settings
    result = reproduce("T1", folder / "out", overrides=[*overrides, f"run.dir={folder / 'store'}"], **options)
    return result, folder


def strip(path):
    table = json.loads(path.read_text(encoding="utf-8"))
    table.pop("duration_s")
    for name in ("training_s", "evaluation_s"):
        table["cost"].pop(name)
    return table


def test_a_table_has_its_interface_and_stands_in_six_files(done):
    result, folder = done
    assert sorted(path.name for path in (folder / "out").iterdir()) == [
        f"tiny.{suffix}" for suffix in ("csv", "json", "md", "png", "svg", "tex")
    ]
    table = json.loads((folder / "out" / "tiny.json").read_text(encoding="utf-8"))
    assert table == result.table
    assert set(table) >= KEYS
    assert set(table["arms"][0]) >= {"name", "n", "iqm", "mean", "ci_low", "ci_high", "reported"}
    assert set(table["comparisons"][0]) >= {"a", "b", "difference", "ci_low", "ci_high", "p", "p_holm"}
    assert table["seeds"] == [0, 1, 2]
    assert [arm["role"] for arm in table["arms"]] == ["arm", "arm", "floor", "ceiling"]
    assert result.ran == 12


def test_the_numbers_of_a_table_are_consistent(done):
    table = done[0].table
    arms = {arm["name"]: arm for arm in table["arms"]}
    for arm in table["arms"]:
        assert arm["ci_low"] <= arm["iqm"] <= arm["ci_high"]
    primary = table["comparisons"][0]
    assert (primary["a"], primary["b"]) == ("hard", "soft")
    assert primary["difference"] == pytest.approx(arms["hard"]["iqm"] - arms["soft"]["iqm"], abs=1e-4)
    assert primary["ci_low"] <= primary["difference"] <= primary["ci_high"]
    assert [c["p_holm"] for c in table["comparisons"]] == pytest.approx(holm([c["p"] for c in table["comparisons"]]))
    assert arms["keep_all"]["iqm"] == 0
    assert arms["oracle"]["iqm"] >= max(arm["iqm"] for arm in table["arms"]) - 1e-6


def test_a_table_says_what_it_cost_and_counts_a_shared_fit_once(done):
    result, folder = done
    cost = result.table["cost"]
    assert cost["policies_trained"] == 3  # one a seed: soft replays the masks of hard
    assert cost["environment_steps"] == 3 * 1024
    assert cost["training_s"] > 0
    assert cost["reader_calls"] == 0  # outcomes are replayed
    assert cost["tokens_shown"] > 0
    assert "3 policies trained for 3,072 environment steps" in (folder / "out" / "tiny.md").read_text(encoding="utf-8")


def test_a_metric_that_holds_by_definition_is_not_tested_and_has_its_published_figures(done):
    leakage = done[0].table["secondary"][0]
    assert leakage["verdict"] == "holds by definition"
    assert {arm["name"]: arm["reported"] for arm in leakage["arms"]}["soft"] == 0.23
    assert all(comparison["p"] is None for comparison in leakage["comparisons"])
    assert next(arm for arm in leakage["arms"] if arm["name"] == "keep_all")["iqm"] is None  # it rejects nothing


def test_too_few_seeds_and_families_are_said(done):
    notes = " ".join(done[0].table["notes"])
    assert "With 3 seeds no test over seeds can reach 0.05: the smallest p is 0.25" in notes
    assert "With 2 families" in notes
    assert "A note." in notes


def test_repeating_runs_nothing_and_gives_the_same_bytes(done, settings, tmp_path):
    _, folder = done
    options, overrides = settings
    again = reproduce("tiny", tmp_path, overrides=[*overrides, f"run.dir={folder / 'store'}"], **options)
    assert again.ran == 0
    for path in (folder / "out").iterdir():
        if path.suffix == ".json":
            assert strip(path) == strip(tmp_path / path.name)
        else:
            assert path.read_bytes() == (tmp_path / path.name).read_bytes(), path.suffix


def test_an_interrupted_reproduction_is_finished_by_the_same_command_with_the_same_table(
    done, settings, tmp_path, monkeypatch
):
    _, folder = done
    options, overrides = settings
    own = [*overrides, f"run.dir={tmp_path / 'store'}"]
    group, begun = module.run_group, []

    def interrupted(root, trials):
        begun.append(trials)
        if len(begun) == 4:
            raise KeyboardInterrupt
        group(root, trials)

    monkeypatch.setattr(module, "run_group", interrupted)
    with pytest.raises(KeyboardInterrupt):
        reproduce("tiny", tmp_path / "out", overrides=own, **options)
    assert not (tmp_path / "out").exists()
    monkeypatch.undo()
    finished = reproduce("tiny", tmp_path / "out", overrides=own, **options)
    assert finished.ran == 12 - 3 * 2
    assert strip(tmp_path / "out" / "tiny.json") == strip(folder / "out" / "tiny.json")


def test_more_seeds_reuse_the_finished_ones(done, settings):
    _, folder = done
    options, overrides = settings
    planned = planned_ablation("tiny", overrides=overrides, config_dir=options["config_dir"], seeds=4)
    store = Store(folder / "store")
    assert len(planned.groups(store)) == 2
    said = describe(planned, store)
    assert said.count("to run") == 4
    assert said.count("stored  ") == 12
    assert "16 trials, 12 stored, 2 policies to train; time: about " in said.splitlines()[-1]


def test_what_shrinking_costs_is_said(settings):
    options, overrides = settings
    quick = planned_ablation("tiny", overrides=overrides, config_dir=options["config_dir"], quick=True)
    assert quick.ablation.seeds == 2
    assert "half the training" in cost(quick, None, quick=True)
    assert "smallest p over seeds is 0.5; no test over seeds can reach 0.05" in cost(quick, None, quick=True)
    assert cost(quick, None, quick=False) == ""
    with pytest.raises(ConfigError, match="--seeds must be at least 1, got 0"):
        planned_ablation("tiny", overrides=overrides, config_dir=options["config_dir"], seeds=0)


def test_the_command_says_what_makes_the_table_and_not_where_it_runs():
    overrides = ["run=ray", "run.dir=x", "tracker=wandb", "agent.steps=5"]
    assert command_line("tiny", overrides, 3, True) == "recallgym reproduce tiny --seeds 3 --quick agent.steps=5"


def test_arms_that_were_asked_other_questions_cannot_be_compared(done, settings):
    _, folder = done
    options, overrides = settings
    planned = planned_ablation("tiny", overrides=overrides, config_dir=options["config_dir"], seeds=3)
    evaluations = Evaluations(planned, Store(folder / "store"))
    trial = planned.trials["utility", "soft", 1]
    evaluations._records[trial.hash]["row"] = evaluations._records[trial.hash]["row"][::-1]
    with pytest.raises(ValueError, match="soft, seed 1, was asked other questions"):
        evaluations.scores(planned.ablation.metric, "soft")


def test_strata_partition_the_units(done):
    strata = {entry["name"]: entry for entry in done[0].table["strata"]}
    assert strata["condition: healthy"]["share"] + strata["condition: degraded"]["share"] == pytest.approx(1, abs=1e-5)
    families = done[0].table["families"]
    assert [family["name"] for family in families] == ["toy4", "toy5"]


def test_every_form_of_a_table_tells_the_same(done, tmp_path):
    table = done[0].table
    page = markdown(table)
    assert f"**Verdict: {table['verdict']}.**" in page
    assert "recallgym reproduce tiny --seeds 3" in page
    assert "(tiny.svg)" in page
    assert "oracle (ceiling)" in page
    assert "published 0.230" in page
    assert "**Holds by definition.**" in page
    tex = latex({**table, "claim": "C4 & 5%", "name": "a_b"})
    assert r"C4 \& 5\%" in tex
    assert r"\bottomrule" in tex
    write_tables(table, tmp_path)
    with open(tmp_path / "tiny.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * (4 + 2)
    assert float(rows[0]["iqm"]) == table["arms"][0]["iqm"]
    assert rows[4]["name"] == "hard - soft"


def test_numbers_show_the_digits_that_a_reader_can_use():
    assert [number(x) for x in (None, 0.12345, -0.5, 12.34, 1234.5)] == ["–", "0.123", "-0.500", "12.3", "1234"]


def test_the_figure_shows_every_arm_and_the_published_figures_hollow(done):
    _, folder = done
    root = ET.fromstring((folder / "out" / "tiny.svg").read_text(encoding="utf-8"))
    text = " ".join("".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text"))
    for said in ("hard", "soft", "keep all", "oracle", "nats a token", "share", "published", "T1: tiny"):
        assert said in text
    assert (folder / "out" / "tiny.png").read_bytes().startswith(b"\x89PNG")


def test_a_report_corrects_over_its_primary_contrasts_and_brings_its_figures(done, tmp_path):
    _, folder = done
    tables = []
    for i, p in enumerate((0.01, 0.04, 0.03)):
        table = json.loads((folder / "out" / "tiny.json").read_text(encoding="utf-8"))
        table["name"] = f"t{i}"
        table["comparisons"][0]["p"] = p
        tables.append(tmp_path / f"t{i}.json")
        tables[-1].write_text(json.dumps(table), encoding="utf-8")
    rows = summary([json.loads(path.read_text(encoding="utf-8")) for path in tables])
    np.testing.assert_allclose([row["p_bh"] for row in rows], benjamini_hochberg([0.01, 0.04, 0.03]))
    pages = write_report(tables, tmp_path / "report", title="Results <1>")
    assert [page.name for page in pages] == ["report.md", "report.html"]
    for page in pages:
        content = page.read_text(encoding="utf-8")
        for i in range(3):
            assert f"t{i}.svg" in content
            assert (tmp_path / "report" / f"t{i}.svg").is_file()
    assert "Results &lt;1&gt;" in pages[1].read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"name": "x"}', "not the JSON of a table; it has no claim"),
        ("[1]", "not the JSON of a table; it has no name"),
        ("name: x", "not the JSON of a table"),
        (None, "no such file"),
    ],
)
def test_a_file_that_is_no_table_is_refused_and_nobody_is_told_to_delete_it(content, said, tmp_path):
    path = tmp_path / "x.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(ReportError, match=rf"x\.json: {said}") as caught:
        write_report([path], tmp_path)
    assert "delete" not in str(caught.value)
