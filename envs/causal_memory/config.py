"""Configuration of ``recallgym/CausalMemory-v0``: one frozen dataclass, checked when it is made."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from ...backends.interventions.intervene import FALLBACKS, Fallback
from ...backends.interventions.observation import BLOCKS, ObservationLayout, make_layout
from ...backends.interventions.scores import MODES, THRESHOLD_KINDS, Mode, ThresholdKind
from ..outcomes.table import SPLITS, OutcomeTable, load_table
from ..outcomes.toy import toy_table

if TYPE_CHECKING:
    from .live import Outcomes
    from .single import CausalMemoryEnv
    from .vector import CausalMemoryVectorEnv

ActionKind = Literal["bits", "weights"]
ACTION_KINDS: tuple[str, ...] = get_args(ActionKind)


@dataclass(frozen=True)
class Threshold:
    """When a weight counts as a rejection.

    Attributes:
        kind: ``fixed``; ``norm_scaled`` (base x reference norm / query norm, as published) or ``norm_scaled_inverse``
            (the other sign). The reference is the mean query norm over the table's training split.
        base: The threshold, or that of a query of the reference norm; 0.01 is published.
    """

    kind: ThresholdKind = "fixed"
    base: float = 0.01

    def __post_init__(self) -> None:
        """Raises ValueError for an unknown kind or a base outside [0, 1]."""
        _one_of("threshold.kind", self.kind, THRESHOLD_KINDS)
        _within("threshold.base", self.base, 0, 1)


@dataclass(frozen=True)
class CausalMemoryConfig:
    """Everything that defines the environment; equal configurations and seeds give equal sessions.

    Attributes:
        table: An outcome table, the path of one, the name of a shipped one, or ``toy`` (a computable one).
        split: Questions that sessions draw from: ``train``, ``validation`` or ``test``.
        observe: Observation blocks, in order. The default is content-free, as published.
        noise: Name of a noised variant of the queries to observe instead of the clean ones; None for clean.
        action: ``bits`` (keep-bits and a search bit) or ``weights`` (boosts in [0, 1] and a search weight).
        mode: How the mask acts on scores: ``hard``, ``soft`` or ``multiply``.
        alpha: Boost of a kept candidate under ``bits``; weights carry their own.
        threshold: When a weight counts as a rejection; bits need none.
        fallback: What is read when an intervention leaves nothing: ``none``, ``same`` or ``heterogeneous``. The
            default is the published final design: falling back on the same retriever brings back what was rejected.
        backfill: Whether a rejected candidate's place is taken by the next in rank.
        early_exit: Whether the agent may skip the search: by its search bit, or by rejecting everything (as
            published). Without, every step searches and the search bit is ignored.
        steps: Steps in a session.
        token_budget: Context tokens (prompt tokens above the empty prompt) that a session may read; None for no
            limit. The default is about half of what keep-all reads in a default session, so that it binds.
        token_price: Nats for 100 context tokens.
        search_price: Nats for a search.
        switch: Probability that the latent retrieval condition changes between two steps.
        seed: Seed of the first session where ``reset`` is given none; sub-environment i adds i.
    """

    table: str | Path | OutcomeTable = "apidocs"
    split: str = "train"
    observe: tuple[str, ...] = ("query", "feedback", "budget")
    noise: str | None = None
    action: ActionKind = "bits"
    mode: Mode = "hard"
    alpha: float = 0.5
    threshold: Threshold = field(default_factory=Threshold)
    fallback: Fallback = "heterogeneous"
    backfill: bool = True
    early_exit: bool = True
    steps: int = 8
    token_budget: int | None = 800
    token_price: float = 0.02
    search_price: float = 0.01
    switch: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        """Takes plain lists and mappings (as Hydra gives them) and raises ValueError for a value out of its domain."""
        object.__setattr__(self, "observe", tuple(self.observe))
        if isinstance(self.threshold, Mapping):
            object.__setattr__(self, "threshold", Threshold(**self.threshold))
        _one_of("split", self.split, SPLITS)
        for name in self.observe:
            _one_of("observe", name, BLOCKS)
        if not self.observe or len(set(self.observe)) < len(self.observe):
            raise ValueError(f"observe must name different blocks, at least one; got {list(self.observe)}")
        _one_of("action", self.action, ACTION_KINDS)
        _one_of("mode", self.mode, MODES)
        _one_of("fallback", self.fallback, FALLBACKS)
        _within("alpha", self.alpha, 0, 100)
        _within("steps", self.steps, 1, 100_000)
        if self.token_budget is not None:
            _within("token_budget", self.token_budget, 1, 2**31 - 1)
        _within("token_price", self.token_price, 0, 100)
        _within("search_price", self.search_price, 0, 100)
        _within("switch", self.switch, 0, 1)

    def load_table(self) -> OutcomeTable:
        """Returns the outcome table that ``table`` denotes.

        Raises:
            TableError: There is none, or it cannot be trusted.
        """
        if isinstance(self.table, OutcomeTable):
            return self.table
        if self.table == "toy":
            return toy_table()
        path = Path(self.table)
        if path.is_dir() or len(path.parts) > 1:
            return load_table(path)
        from ..outcomes import shipped_table_path

        return load_table(shipped_table_path(str(self.table)))

    def layout(self, table: OutcomeTable | None = None) -> ObservationLayout:
        """Returns the layout of an observation; pass the table where it is loaded already."""
        table = table or self.load_table()
        return make_layout(
            self.observe,
            query=table.query.shape[1],
            domain=table.domain.shape[1],
            pool=table.pool,
            content=table.content.shape[2],
            conditions=table.conditions,
        )

    def make(self, *, outcomes: "Outcomes | None" = None, render_mode: str | None = None) -> "CausalMemoryEnv":
        """Makes a single environment; ``outcomes`` replaces the table's outcomes by a live reader's."""
        from .single import CausalMemoryEnv

        return CausalMemoryEnv(self, outcomes=outcomes, render_mode=render_mode)

    def make_vector(self, num_envs: int, *, outcomes: "Outcomes | None" = None) -> "CausalMemoryVectorEnv":
        """Makes ``num_envs`` environments in one; ``outcomes`` replaces the table's outcomes by a live reader's."""
        from .vector import CausalMemoryVectorEnv

        return CausalMemoryVectorEnv(num_envs, self, outcomes=outcomes)


def _one_of(name: str, value: Any, valid: tuple[str, ...]) -> None:
    if value not in valid:
        raise ValueError(f"{name} must be one of {', '.join(valid)}; got {value!r}")


def _within(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise ValueError(f"{name} must lie in [{low}, {high}]; got {value!r}")
