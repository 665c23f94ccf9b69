from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from recallgym.experiments.ablation import ablation_claims, find_ablation, load_ablation
from recallgym.experiments.compose import ConfigError, options
from recallgym.experiments.plan import estimate, plan
from recallgym.experiments.store import Store
from recallgym.experiments.trial import load_table


@pytest.mark.parametrize("name", options("ablation"))
def test_every_ablation_composes_all_its_trials(name, toy_path):
    ablation = replace(load_ablation(name), seeds=2)
    planned = plan(ablation, overrides=[f"env.table={toy_path}"], quick=True)
    assert {(arm, seed) for _, arm, seed in planned.trials} == {(a, s) for a in ablation.arms for s in planned.seeds}
    assert planned.split in ("test", "all")  # all: what is learned is learned on other families, within the evaluation
    assert all(trial.env["split"] == "train" for trial in planned.distinct)


@pytest.mark.parametrize("name", options("ablation"))
def test_every_ablation_opens_with_its_command_and_names_its_claim(name):
    from recallgym import conf

    words = (Path(conf.__path__[0]) / "ablation" / f"{name}.yaml").read_text(encoding="utf-8").split()
    assert words[:2] == ["#", "recallgym"]
    assert words[2] == name or find_ablation(words[3]) == name


def test_claims_lead_to_ablations_in_any_case():
    assert find_ablation("C4") == find_ablation("c4") == "hard_soft_multiply"
    assert find_ablation("C3") == "softplus_vs_sigmoid"
    assert find_ablation("C14") == find_ablation("gate_inputs") == "gate_inputs"


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(ConfigError, match="unknown ablation 'hard_soft'; did you mean hard_soft_multiply"):
        find_ablation("hard_soft")


def test_a_users_ablation_is_found_beside_ours(config_dir):
    assert ablation_claims(config_dir)["tiny"] == "T1"
    assert load_ablation("T1", config_dir).arms["soft"].replay == ["env.mode=soft"]


def test_published_figures_that_several_ablations_test_must_be_named(tmp_path):
    (tmp_path / "ablation").mkdir()
    for name in ("one", "two"):
        (tmp_path / "ablation" / f"{name}.yaml").write_text(f"name: {name}\nclaim: Z9\n")
    with pytest.raises(ConfigError, match="several ablations, name one: one, two"):
        find_ablation("Z9", tmp_path)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("primary", "a"), "hrd", "unknown arm 'hrd'; did you mean hard"),
        (("metric", "name"), "utilty", "unknown measure 'utilty'; did you mean utility"),
        (("metric", "direction"), "up", "unknown direction 'up'"),
        (("metric", "reported"), {"hrd": 1.0}, "unknown arm under reported"),
        (("instrument",), ["headrom"], "unknown instrument 'headrom'; did you mean headroom"),
        (("instrument",), ["latent"], "needs `control:"),
        (("name",), "other", "name must be that of its file"),
        (("seeds",), 0, "seeds must be at least 1"),
        (("seeds",), "many", "seeds"),
        (("first_seed",), -1, "first_seed must be at least 0"),
        (("delta",), -1.0, "delta must be at least 0"),
        (("delta",), None, "delta"),
        (("arms", "hard"), {"role": "hero"}, "unknown role 'hero'"),
        (("arms", "oracle"), {}, "an arm with the role ceiling"),
        (("armz",), {}, "armz"),
        (("secondary",), [{"name": "utility", "definition": {}, "unit": "x"}], "definition"),
    ],
)
def test_a_wrong_ablation_is_refused_in_one_line_that_says_where(config_dir, tmp_path, path, value, said):
    content = yaml.safe_load((config_dir / "ablation" / "tiny.yaml").read_text())
    target = content
    for key in path[:-1]:
        target = target[key]
    if value is None:
        del target[path[-1]]
    else:
        target[path[-1]] = value
    (tmp_path / "ablation").mkdir()
    (tmp_path / "ablation" / "tiny.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(ConfigError) as caught:
        load_ablation("tiny", tmp_path)
    assert "ablation tiny" in str(caught.value)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_overrides_reach_the_arms_that_have_what_they_name(toy_path, config_dir):
    planned = plan(
        load_ablation("tiny", config_dir), overrides=[f"env.table={toy_path}", "agent.steps=99"], config_dir=config_dir
    )
    agents = {arm: trial.agent for (_, arm, _), trial in planned.trials.items()}
    assert agents["hard"]["steps"] == 99
    assert agents["hard"]["envs"] == 64
    assert "steps" not in agents["keep_all"]


def test_a_choice_of_the_user_is_the_arms_base(toy_path, config_dir):
    planned = plan(
        load_ablation("tiny", config_dir), overrides=[f"env.table={toy_path}", "agent=reinforce"], config_dir=config_dir
    )
    agents = {arm: trial.agent["_target_"] for (_, arm, _), trial in planned.trials.items()}
    assert agents["hard"].endswith(".Reinforce")
    assert agents["keep_all"] != agents["hard"]
    with pytest.raises(ConfigError, match="--seeds"):
        plan(load_ablation("tiny", config_dir), overrides=["seed=3"], config_dir=config_dir)


def test_an_ablation_may_start_at_another_seed_than_0(toy_path, config_dir):
    ablation = replace(load_ablation("tiny", config_dir), first_seed=7, seeds=2)
    planned = plan(ablation, overrides=[f"env.table={toy_path}"], config_dir=config_dir)
    assert planned.seeds == [7, 8]
    assert {trial.seed for trial in planned.distinct} == {7, 8}


@pytest.mark.parametrize("override", ["agent.stepz=99", "agent.gamma_typo=1"])
def test_an_override_that_reaches_no_arm_is_an_error(override, toy_path, config_dir):
    with pytest.raises(ConfigError, match=override.partition("=")[0]):
        plan(load_ablation("tiny", config_dir), overrides=[f"env.table={toy_path}", override], config_dir=config_dir)


def test_arms_that_are_replayed_share_a_fit_and_seeds_do_not(toy_path, config_dir, tmp_path):
    planned = plan(load_ablation("tiny", config_dir), overrides=[f"env.table={toy_path}"], config_dir=config_dir)
    fit = {(arm, seed): trial.fit_hash for (_, arm, seed), trial in planned.trials.items()}
    assert fit["hard", 0] == fit["soft", 0] != fit["hard", 1]
    assert len({trial.hash for trial in planned.trials.values()}) == 4 * 3
    groups = planned.groups(Store(tmp_path))
    assert sorted(map(len, groups)) == [2] * 6
    found = estimate(planned, Store(tmp_path))
    assert (found.trials, found.stored, found.fits, found.seconds) == (12, 0, 6, None)
    assert load_table(planned.env).meta["name"] == "toy"
