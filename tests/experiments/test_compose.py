import pytest

from recallgym.experiments.ablation import find_ablation
from recallgym.experiments.compose import ConfigError, build, compose_config, keys_of, options, resolved

ENV = "recallgym.envs.causal_memory.CausalMemoryConfig"


def test_the_default_configuration_composes_with_its_seed_in_every_part():
    config = compose_config(["seed=7"])
    data = resolved(config)
    assert data["seed"] == data["policy"]["seed"] == 7
    assert {"env", "policy", "agent", "run", "tracker", "evaluation"} <= set(data)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("policy=gte", "unknown policy 'gte'; did you mean gate"),
        ("agent=exact_grad", "did you mean exact_gradient"),
        ("env.alpa=0.3", "unknown override 'env.alpa'; did you mean env.alpha"),
        ("agnt=ppo", "unknown override 'agnt'; did you mean agent"),
        ("~evaluation.sesions", "did you mean evaluation.sessions"),
        ("env.alpha==", "env.alpha=="),
        ("seed", "seed"),
        ("+ablation=nothing", "unknown ablation 'nothing'"),
        ("zzz=1", "unknown override 'zzz'; valid: "),
    ],
)
def test_a_bad_override_is_one_line_that_names_what_is_near(override, said):
    with pytest.raises(ConfigError) as caught:
        compose_config([override])
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_misspelt_key_is_looked_up_in_the_group_that_was_chosen():
    with pytest.raises(ConfigError, match=r"did you mean agent\.learning_rate"):
        compose_config(["agent=reinforce", "agent.learnig_rate=1"])


def test_a_directory_of_the_users_own_adds_options(tmp_path):
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "mine.yaml").write_text("_target_: collections.OrderedDict\nx: 1\n")
    config = resolved(compose_config(["policy=mine"], tmp_path))
    assert build(config["policy"]) == {"x": 1}
    assert "mine" in options("policy", tmp_path)
    assert "gate" in options("policy", tmp_path)
    with pytest.raises(ConfigError, match="no such directory"):
        compose_config([], tmp_path / "absent")


def test_composing_leaves_nothing_behind():
    first = compose_config(["env.alpha=0.25"])
    assert compose_config().env.alpha != first.env.alpha


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            {"_target_": ENV, "alpa": 1},
            "no option 'alpa'; did you mean alpha",
        ),
        ({"_target_": "recallgym.nowhere.Thing"}, "no such target 'recallgym.nowhere.Thing'"),
        ({"_target_": ENV, "mode": "hart"}, "mode must be one of"),
        ({"alpha": 1}, "_target_"),
    ],
)
def test_what_cannot_be_built_is_said_in_one_line(config, said):
    with pytest.raises(ConfigError) as caught:
        build(config)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("group", ["agent", "ablation"])
def test_a_file_that_is_no_yaml_is_named_with_its_line(group, tmp_path):
    (tmp_path / group).mkdir()
    (tmp_path / group / "mine.yaml").write_text("name: [1\nclaim: {")
    with pytest.raises(ConfigError, match=r"mine\.yaml, line 2: not valid YAML") as caught:
        compose_config(["agent=mine"], tmp_path) if group == "agent" else find_ablation("mine", tmp_path)
    assert "\n" not in str(caught.value)


def test_missing_values_are_refused():
    config = compose_config(["env.table=???"])
    with pytest.raises(ConfigError, match="table"):
        resolved(config)


def test_keys_are_all_that_an_override_may_name():
    keys = keys_of(compose_config())
    assert {"agent", "agent.steps", "env.threshold.base", "seed"} <= keys
