"""An ablation: a published claim, the arms that test it, and how it is judged. One file of ``conf/ablation``."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from .compose import ConfigError, compose_config, located, malformed, option_files, resolved
from .instruments import INSTRUMENTS
from .metrics import MEASURES
from .names import nearest

DIRECTIONS = ("higher", "lower")
ROLES = ("arm", "floor", "ceiling", "control")


@dataclass
class Definition:
    """What a metric is a ratio of: both sums in words, and the label that says when a unit counts."""

    numerator: str = MISSING
    denominator: str = MISSING
    label: str = MISSING


@dataclass
class Metric:
    """A metric of the table.

    Attributes:
        name: Name in the table, of its own for each metric.
        measure: One of ``metrics.MEASURES``; the metric's name where empty.
        definition: What it is, in words.
        unit: Unit of its values.
        direction: ``higher`` or ``lower``: which values are better.
        evaluation: Changes to the evaluation that it is computed from (another split, for example).
        reported: Published value for each arm that has one.
        by_construction: Whether the arms differ in it by their definition, so that a test would prove nothing.
        at: Where the metric stands on the axis of a curve (reader calls): those of one measure are drawn as one.
    """

    name: str = MISSING
    measure: str = ""
    definition: Definition = field(default_factory=Definition)
    unit: str = MISSING
    direction: str = "higher"
    evaluation: dict[str, Any] = field(default_factory=dict)
    reported: dict[str, float] = field(default_factory=dict)
    by_construction: bool = False
    at: float | None = None


@dataclass
class Arm:
    """A variant.

    Attributes:
        overrides: Hydra overrides of the base configuration; they define what is trained.
        replay: Further overrides of ``env``: the trained policy decides in the environment it was trained in, and its
            masks are replayed here. Arms that differ in ``replay`` only share their fit and their masks.
        evaluation: Changes to the evaluation of this arm, such as the oracle's ``_target_``.
        role: ``arm``; ``floor`` or ``ceiling``, what doing nothing and knowing everything score; or ``control``, which
            an instrument check looks at.
        label: What tables and figures call it; its name where empty.
    """

    overrides: list[str] = field(default_factory=list)
    replay: list[str] = field(default_factory=list)
    evaluation: dict[str, Any] = field(default_factory=dict)
    role: str = "arm"
    label: str = ""


@dataclass
class Contrast:
    """Two arms; the claim is that a is better than b."""

    a: str = MISSING
    b: str = MISSING


@dataclass
class Quick:
    """What ``--quick`` does.

    Attributes:
        seeds: Number of seeds.
        overrides: Applied to every arm after its own.
        evaluation: Changes to the evaluation.
        cost: What is lost by it, in a sentence that is printed.
    """

    seeds: int = 3
    overrides: list[str] = field(default_factory=list)
    evaluation: dict[str, Any] = field(default_factory=dict)
    cost: str = MISSING


@dataclass
class Ablation:
    """Everything in ``conf/ablation/<name>.yaml``.

    Attributes:
        name: As the file is called; outputs are named by it.
        claim: Number of the published claim, or ``ours``.
        statement: The claim in a sentence.
        base: Overrides that all arms share.
        arms: The variants by name, in the order of the table.
        seeds: Number of training seeds.
        first_seed: The first of them. Not 0 where results of the first seeds were seen while the arms were chosen.
        evaluation: Changes to the evaluation of all arms; with a ``_target_``, the evaluation itself.
        metric: What the claim is judged by.
        secondary: Further metrics of the same arms.
        primary: The contrast that the verdict is about.
        comparisons: Further contrasts.
        delta: Smallest difference of interest, in the metric's unit.
        effect_reported: Published effect in this metric, positive as claimed; None where there is none.
        instrument: Positive controls, of ``instruments.INSTRUMENTS``, that must pass.
        control: Where the ``latent`` or the ``learnable`` check is used: its control arm (a) and what it must beat (b).
        notes: Printed under the table.
        quick: What ``--quick`` does.
    """

    name: str = MISSING
    claim: str = MISSING
    statement: str = MISSING
    base: list[str] = field(default_factory=list)
    arms: dict[str, Arm] = field(default_factory=dict)
    seeds: int = 10
    first_seed: int = 0
    evaluation: dict[str, Any] = field(default_factory=dict)
    metric: Metric = field(default_factory=Metric)
    secondary: list[Metric] = field(default_factory=list)
    primary: Contrast = field(default_factory=Contrast)
    comparisons: list[Contrast] = field(default_factory=list)
    delta: float = MISSING
    effect_reported: float | None = None
    instrument: list[str] = field(default_factory=list)
    control: Contrast | None = None
    notes: list[str] = field(default_factory=list)
    quick: Quick = field(default_factory=Quick)

    @property
    def metrics(self) -> list[Metric]:
        """The primary metric, then the secondary ones."""
        return [self.metric, *self.secondary]

    @property
    def contrasts(self) -> list[Contrast]:
        """The primary contrast, then the others."""
        return [self.primary, *self.comparisons]


def load_ablation(name: str, config_dir: str | Path | None = None) -> Ablation:
    """Loads and checks an ablation.

    Args:
        name: Its name, or its claim (``C4``), in any case.
        config_dir: A directory with further ablations under ``ablation/``.

    Raises:
        ConfigError: There is none of that name or claim, or its file is wrong; the message says where.
    """
    option = find_ablation(name, config_dir)
    config = compose_config([f"+ablation={option}"], config_dir)
    try:
        merged = OmegaConf.merge(OmegaConf.structured(Ablation), config.ablation)
        assert isinstance(merged, DictConfig)
        resolved(merged)  # raises where a value is missing
        ablation = OmegaConf.to_object(merged)
    except OmegaConfBaseException as error:
        raise ConfigError(f"ablation {option}: {located(error)}") from None
    except ConfigError as error:
        raise ConfigError(f"ablation {option}: {error}") from None
    assert isinstance(ablation, Ablation)
    _check(ablation, option)
    return ablation


def find_ablation(name: str, config_dir: str | Path | None = None) -> str:
    """Returns the option that a name or a claim denotes.

    Raises:
        ConfigError: Nothing has that name or claim, or several ablations test that claim.
    """
    claims = ablation_claims(config_dir)
    if name in claims:
        return name
    of_claim = [option for option, claim in claims.items() if claim.lower() == name.lower()]
    if len(of_claim) == 1:
        return of_claim[0]
    if of_claim:
        raise ConfigError(f"claim {name} is tested by several ablations, name one: {', '.join(of_claim)}")
    raise ConfigError(f"unknown ablation {name!r}; {nearest(name, [*claims, *claims.values()], shown=4)}")


def ablation_claims(config_dir: str | Path | None = None) -> dict[str, str]:
    """Returns the claim of every ablation by name."""
    claims: dict[str, str] = {}
    for file in option_files("ablation", config_dir):
        claims.setdefault(file.stem, str((_content(file) or {}).get("claim", "")))
    return dict(sorted(claims.items()))


def _content(file: Path) -> Any:
    with file.open(encoding="utf-8") as stream:  # a stream has a name, which an error in it says
        try:
            return yaml.safe_load(stream)
        except yaml.YAMLError as error:
            raise ConfigError(malformed(error)) from None


def _check(ablation: Ablation, option: str) -> None:
    """Raises ConfigError unless every name in the ablation leads somewhere."""

    def require(what: str, value: str, valid: Any) -> None:
        if value not in valid:
            raise ConfigError(f"ablation {option}: unknown {what} {value!r}; {nearest(value, valid)}")

    if ablation.name != option:
        raise ConfigError(f"ablation {option}: its name must be that of its file, got {ablation.name!r}")
    if ablation.seeds < 1 or ablation.quick.seeds < 1:
        raise ConfigError(f"ablation {option}: seeds must be at least 1, got {ablation.seeds}, {ablation.quick.seeds}")
    if ablation.first_seed < 0:
        raise ConfigError(f"ablation {option}: first_seed must be at least 0, got {ablation.first_seed}")
    if not ablation.delta >= 0:
        raise ConfigError(f"ablation {option}: delta must be at least 0, got {ablation.delta}")
    for arm in ablation.arms.values():
        require("role", arm.role, ROLES)
    for role in ("floor", "ceiling"):
        if not any(arm.role == role for arm in ablation.arms.values()):
            raise ConfigError(f"ablation {option}: every table needs an arm with the role {role}")
    for metric in ablation.metrics:
        metric.measure = metric.measure or metric.name
        require("measure", metric.measure, MEASURES)
        require("direction", metric.direction, DIRECTIONS)
        for name in metric.reported:
            require(f"arm under reported of {metric.name}:", name, ablation.arms)
    names = [metric.name for metric in ablation.metrics]
    if len(set(names)) < len(names):
        raise ConfigError(f"ablation {option}: metrics need names of their own, got {', '.join(names)}")
    for contrast in [*ablation.contrasts, *([ablation.control] if ablation.control else [])]:
        require("arm", contrast.a, ablation.arms)
        require("arm", contrast.b, ablation.arms)
    for check in ablation.instrument:
        require("instrument", check, INSTRUMENTS)
    for check in {"latent", "learnable"} & set(ablation.instrument):
        if ablation.control is None:
            raise ConfigError(f"ablation {option}: the {check} check needs `control: {{a: ..., b: ...}}`")
