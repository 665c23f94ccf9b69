"""Has a stream of utilities fallen? The published rule on window means, and beside it a test that bounds false alarms.

Both hold the samples since the reference against the reference: the first ``window`` days after the start or after an
alarm, during which no alarm is raised. Days are simulated and given with each sample. Positive utility is good, so only
a fall is drift. Axes: G means on a grid, K bets, W days of the window.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from .effects import Floats

Trigger = Literal["window", "sequential"]
TRIGGERS: tuple[str, ...] = get_args(Trigger)
GRID = np.arange(1, 200) / 200  # (G,) means, where 0 is the lowest possible sample and 1 the highest
BETS = 0.9 * 0.5 ** np.arange(7)  # (K,) shares of the wealth that are staked: large ones for large falls


@dataclass(frozen=True)
class DriftRule:
    """When a stream is said to have drifted.

    Attributes:
        low: Lowest value; samples are clipped to [low, high]. The sequential test is the sharper, the closer they are.
        high: Highest value.
        window: Days of the window, today's included, and of the reference; 7 is published (causal memory, section 4.3).
        drop: The window rule alarms when its mean lies more than this below the reference's; 0.15 is published, there
            of a correlation.
        minimum: Samples that either mean needs; not published. At a standard deviation of 0.4, 30 give a standard
            error of 0.07, half the drop. A reference with fewer goes on beyond its days.
        alpha: Bound on the chance that the sequential test ever alarms between two resets, if the mean does not fall.
        trigger: Which of the two resets the monitor. The other is only reported.
    """

    low: float
    high: float
    window: int = 7
    drop: float = 0.15
    minimum: int = 30
    alpha: float = 0.05
    trigger: Trigger = "window"

    def __post_init__(self) -> None:
        if not self.low < self.high or self.window < 1 or self.minimum < 1 or not self.drop > 0:
            raise ValueError(
                f"expected low < high, a window and a minimum of at least 1, and a drop over 0; got {self}"
            )
        if not 0 < self.alpha < 1 or self.trigger not in TRIGGERS:
            raise ValueError(f"expected alpha in (0, 1) and a trigger of {', '.join(TRIGGERS)}; got {self}")


class DriftReading(NamedTuple):
    """What the monitor says after a sample.

    Attributes:
        warming: The reference is not complete.
        reference: Mean of the reference; NaN while warming.
        mean: Mean of the window's samples after the reference; NaN below the minimum.
        evidence: Logarithm of the e-value against "the mean did not fall".
        window_alarm: The window's mean lies more than ``drop`` below the reference.
        sequential_alarm: The evidence has been log(2 / alpha) or more since the reset.
        alarm: That of the trigger; the next sample begins a new reference.
    """

    warming: bool
    reference: float
    mean: float
    evidence: float
    window_alarm: bool
    sequential_alarm: bool
    alarm: bool


@dataclass
class _State:
    """All that the future depends on: its size does not grow with the stream."""

    today: float  # day of the latest sample
    since: float  # day on which the reference began
    gains: Floats  # (G, K) log-wealth of bets that the reference's mean is over a mean of the grid
    losses: Floats  # (K,) log-wealth of bets on a fall
    days: NDArray[np.int64]  # (W,) which day each place of the ring holds
    sums: Floats  # (W,) of that day's samples
    counts: NDArray[np.int64]  # (W,)
    total: float = 0.0  # of the reference's samples
    count: int = 0
    floor: float = np.nan  # lower bound of the reference's mean, on the grid's scale; NaN while warming
    tested: int = 0  # samples after the reference
    peak: float = 0.0  # greatest evidence


class DriftMonitor:
    """Follows one stream.

    The sequential test bets against the mean. With y in [0, 1], the wealth 1 - c + c (1 - y) / (1 - m) of each step is
    at most 1 in expectation while the mean is m or more, whatever the past, so that by Ville's inequality their product
    ever reaches 2 / alpha with probability at most alpha / 2. The product is averaged over stakes c, and over when
    betting begins: with weight 1 / n(n + 1) at sample n, which costs a late fall 2 log n nats and keeps the bound for
    a stream of any length. m is a lower bound of the reference's mean from bets the other way, wrong with probability
    at most alpha / 2. Neither needs equal distributions or independence: a constant mean given the past will do.

    Source: Waudby-Smith & Ramdas 2024 (arXiv:2010.09686) for means by betting; Shin, Ramdas & Rinaldo 2024
    (arXiv:2203.03532) for sums over starts, there with a bound on the run length, here with weights that sum to 1.

    Args:
        rule: What counts as drift.
    """

    def __init__(self, rule: DriftRule) -> None:
        self.rule = rule
        self._state = self._fresh(-np.inf, np.nan)

    def update(self, day: float, value: float) -> DriftReading:
        """Takes one sample and says whether the stream has drifted.

        Args:
            day: Simulated time in days, not before the previous sample's.
            value: Utility, finite.

        Raises:
            ValueError: Time runs backwards, or a number is not finite.
        """
        rule, state = self.rule, self._state
        if not (np.isfinite(day) and np.isfinite(value)):
            raise ValueError(f"expected a finite day and value, got {day} and {value}; leave a step without one out")
        if day < state.today:
            raise ValueError(f"day {day} is before the latest sample's, {state.today}; give samples in order of time")
        state.today = float(day)
        if np.isnan(state.since):
            state.since = state.today
        x = float(np.clip(value, rule.low, rule.high))
        y = (x - rule.low) / (rule.high - rule.low)
        if np.isnan(state.floor):
            if state.today < state.since + rule.window or state.count < rule.minimum:
                state.total, state.count = state.total + x, state.count + 1
                state.gains += np.log1p(BETS * (y / GRID - 1)[:, None])
                return DriftReading(True, np.nan, np.nan, 0.0, False, False, False)
            refuted = _log_mean(state.gains) >= np.log(2 / rule.alpha)  # the lower a mean, the sooner it is refuted
            state.floor = float(GRID[refuted].max(initial=0.0))
        reading = self._judge(x, y)
        if reading.alarm:
            self._state = self._fresh(state.today, state.today)
        return reading

    def get_state(self) -> dict[str, Any]:
        """Returns the rule and all that the future depends on, as plain numbers and arrays."""
        return {"rule": asdict(self.rule), **asdict(self._state)}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continues from a state of a monitor of the same rule, bit-identically.

        Raises:
            ValueError: The state is of another rule.
        """
        if state["rule"] != asdict(self.rule):
            raise ValueError(f"the state is of the rule {state['rule']}, this monitor has {asdict(self.rule)}")
        self._state = _State(**deepcopy({name: part for name, part in state.items() if name != "rule"}))

    def _fresh(self, today: float, since: float) -> _State:
        gains, losses = np.zeros((len(GRID), len(BETS))), np.full(len(BETS), -np.inf)
        days, sums = np.full(self.rule.window, np.iinfo(np.int64).min), np.zeros(self.rule.window)
        return _State(today, since, gains, losses, days, sums, counts=np.zeros(self.rule.window, dtype=np.int64))

    def _judge(self, x: float, y: float) -> DriftReading:
        """Takes a sample after the reference; ``y`` is ``x`` on the scale of the grid."""
        rule, state = self.rule, self._state
        day = int(np.floor(state.today))
        place = day % rule.window
        if state.days[place] != day:
            state.days[place], state.sums[place], state.counts[place] = day, 0.0, 0
        state.sums[place] += x
        state.counts[place] += 1
        recent = state.days > day - rule.window
        count = state.counts[recent].sum()
        mean = float(state.sums[recent].sum() / count) if count >= rule.minimum else np.nan
        state.tested += 1
        begun = np.logaddexp(state.losses, -np.log(state.tested * (state.tested + 1)))
        state.losses = begun + np.log1p(BETS * ((1 - y) / (1 - state.floor) - 1))
        evidence = float(np.logaddexp(_log_mean(state.losses), -np.log(state.tested + 1)))  # with those yet to begin
        state.peak = max(state.peak, evidence)
        reference = state.total / state.count
        window = reference - mean > rule.drop
        sequential = bool(state.peak >= np.log(2 / rule.alpha))
        alarm = {"window": window, "sequential": sequential}[rule.trigger]
        return DriftReading(False, reference, mean, evidence, window, sequential, alarm)


def _log_mean(wealth: Floats) -> Any:
    """Logarithm of the mean over the K bets of wealth (..., K) given by its logarithm."""
    return np.logaddexp.reduce(wealth, axis=-1) - np.log(len(BETS))
