"""The published rule day by day, the sequential test's guarantee and power by simulation, and states that go on."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recallgym.backends.estimation.drift import DriftMonitor, DriftReading, DriftRule

SHORT = DriftRule(low=-1, high=1, window=2, minimum=4)


def follow(monitor: DriftMonitor, values: np.ndarray, per_day: int, start: float = 0.0) -> list[DriftReading]:
    return [monitor.update(start + i / per_day, value) for i, value in enumerate(values)]


def noisy(seed: int, count: int, mean: float = 0.2, spread: float = 0.2) -> np.ndarray:
    return np.random.default_rng(seed).normal(mean, spread, count)


def same(one: list[DriftReading], other: list[DriftReading]) -> None:
    np.testing.assert_array_equal(np.array(one, dtype=float), np.array(other, dtype=float))


@pytest.mark.parametrize(("drop", "alarms"), [(0.1499, False), (0.1501, True)])
def test_the_published_rule_alarms_beyond_a_drop_of_015_over_seven_days(drop: float, alarms: bool) -> None:
    readings = follow(DriftMonitor(DriftRule(-1, 1)), np.repeat([0.5, 0.5 - drop], 7 * 10), per_day=10)
    assert any(r.alarm for r in readings) is alarms


def test_only_a_fall_is_drift() -> None:
    for trigger in ("window", "sequential"):
        monitor = DriftMonitor(DriftRule(-1, 1, trigger=trigger))
        assert not any(r.alarm for r in follow(monitor, np.repeat([-0.5, 0.5], 500), per_day=50))


@given(st.lists(st.floats(-1, 1), min_size=20, max_size=60), st.integers(1, 9))
@settings(deadline=None)
def test_the_window_holds_its_days_after_the_reference_and_no_others(values: list[float], per_day: int) -> None:
    monitor = DriftMonitor(DriftRule(-1, 1, window=2, minimum=4, drop=3.0))
    readings = follow(monitor, np.array(values), per_day)
    days = np.arange(len(values)) / per_day
    first = max(2 * per_day, 4)  # the first sample after the reference
    for i, reading in enumerate(readings):
        assert reading.warming == (i < first)
        if reading.warming:
            continue
        assert reading.reference == pytest.approx(np.mean(values[:first]), abs=1e-12)
        within = [values[j] for j in range(first, i + 1) if np.floor(days[j]) > np.floor(days[i]) - 2]
        expected = np.mean(within) if len(within) >= 4 else np.nan
        assert reading.mean == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_too_few_samples_prolong_the_reference_and_leave_the_window_without_a_mean() -> None:
    monitor = DriftMonitor(DriftRule(-1, 1, window=2, minimum=5))
    readings = [monitor.update(2.0 * i, 0.5 if i < 5 else -0.5) for i in range(30)]  # one sample a window
    assert [r.warming for r in readings[:7]] == [True] * 5 + [False] * 2
    assert all(np.isnan(r.mean) and not r.window_alarm for r in readings)


def test_after_an_alarm_a_new_reference_is_taken_and_nothing_alarms_until_it_is_complete() -> None:
    monitor = DriftMonitor(SHORT)
    values = np.array([0.5] * 20 + [-0.5] * 60)
    readings = follow(monitor, values, per_day=10)
    (alarm,) = [i for i, r in enumerate(readings) if r.alarm]  # the lower mean is then the new reference
    after = readings[alarm + 1 :]
    assert alarm == 23  # as soon as the window has its minimum
    assert [r.warming for r in after] == [i < 19 for i in range(len(after))]  # two days from the alarm on
    assert after[-1].reference == pytest.approx(-0.5)
    assert not any(r.window_alarm or r.sequential_alarm for r in after)


def test_the_other_rule_is_reported_and_resets_nothing() -> None:
    monitor = DriftMonitor(DriftRule(-1, 1, window=2, minimum=4, trigger="sequential", alpha=1e-9))
    readings = follow(monitor, np.array([0.5] * 20 + [-0.5] * 20), per_day=10)
    assert readings[30].window_alarm
    assert not readings[30].alarm
    assert not readings[31].warming


def test_the_sequential_test_seldom_alarms_on_a_long_stream_and_the_window_rule_does_in_the_end() -> None:
    """Utilities are noisy (sd 0.6) and ten a day; half a year without drift."""
    windows, sequential = [], []
    for seed in range(20):
        monitor = DriftMonitor(DriftRule(-2, 2, trigger="sequential", alpha=0.2))
        readings = follow(monitor, noisy(seed, 1800, spread=0.6), per_day=10)
        windows.append(any(r.window_alarm for r in readings))
        sequential.append(readings[-1].sequential_alarm)
    assert np.mean(windows) > 0.5
    assert np.mean(sequential) <= 0.2


def test_each_half_of_the_bound_holds_where_it_is_nearly_used_up() -> None:
    """Coins, with alpha = 0.8: the reference's floor, and bets against the mean itself, may each fail at 0.4."""
    rng = np.random.default_rng(0)
    too_high, crossed = [], []
    for _ in range(150):
        monitor = DriftMonitor(DriftRule(0, 1, window=1, minimum=1, alpha=0.8, trigger="sequential"))
        follow(monitor, (rng.random(41) < 0.5).astype(float), per_day=40)
        state = monitor.get_state()
        too_high.append(state["floor"] > 0.5)
        monitor.set_state(state | {"floor": 0.5})
        readings = follow(monitor, (rng.random(200) < 0.5).astype(float), per_day=40, start=2)
        crossed.append(any(r.sequential_alarm for r in readings))
    assert np.mean(too_high) <= 0.4
    assert 0.05 < np.mean(crossed) <= 0.4


@pytest.mark.parametrize("at", [100, 2000])
def test_a_fall_is_found_soon_however_late_it_comes(at: int) -> None:
    for seed in range(5):
        monitor = DriftMonitor(DriftRule(-1, 1, trigger="sequential"))
        stable = follow(monitor, noisy(seed, 350 + at), per_day=50)
        fallen = follow(monitor, noisy(seed + 100, 300, mean=-0.1), per_day=50, start=7 + at / 50)
        assert not any(r.alarm for r in stable)
        assert any(r.alarm for r in fallen)


def test_a_stream_that_depends_on_its_past_is_covered_too() -> None:
    """The spread doubles after each low sample, while the mean given the past stays."""
    alarms = []
    for seed in range(20):
        rng, monitor, spread = np.random.default_rng(seed), DriftMonitor(DriftRule(-1, 1, trigger="sequential")), 0.2
        for i in range(1000):
            value = 0.2 + spread * (1 if rng.random() < 0.5 else -1)
            spread = 0.4 if value < 0 else 0.2
            alarms.append(monitor.update(i / 40, value).alarm)
    assert not any(alarms)


@pytest.mark.parametrize("trigger", ["window", "sequential"])
@pytest.mark.parametrize("cut", [0, 5, 30, 45, 47])
def test_a_monitor_goes_on_from_a_state_bit_by_bit(trigger: str, cut: int) -> None:
    rule = DriftRule(-1, 1, window=2, minimum=4, trigger=trigger)  # type: ignore[arg-type]
    values = np.concatenate([noisy(0, 40, 0.5, 0.05), noisy(1, 60, -0.5, 0.05)])
    whole = follow(DriftMonitor(rule), values, per_day=10)
    first, second = DriftMonitor(rule), DriftMonitor(rule)
    head = follow(first, values[:cut], per_day=10)
    state = first.get_state()
    follow(first, values[cut:], per_day=10, start=cut / 10)  # what happens later does not reach into the state
    second.set_state(state)
    tail = [second.update(i / 10, values[i]) for i in range(cut, len(values))]
    assert any(r.alarm for r in whole)
    same(head + tail, whole)


def test_samples_outside_the_range_count_as_its_ends() -> None:
    values = noisy(0, 60, spread=1.0)
    same(
        follow(DriftMonitor(SHORT), values, per_day=10),
        follow(DriftMonitor(SHORT), np.clip(values, -1, 1), per_day=10),
    )


def test_shifting_and_scaling_values_and_range_changes_nothing_in_the_sequential_test() -> None:
    values = noisy(0, 200)
    one = follow(DriftMonitor(DriftRule(-1, 1, trigger="sequential")), values, per_day=10)
    other = follow(DriftMonitor(DriftRule(-7, 13, trigger="sequential")), 10 * values + 3, per_day=10)
    np.testing.assert_allclose([r.evidence for r in one], [r.evidence for r in other], atol=1e-9)


def test_wrong_samples_rules_and_states_are_refused() -> None:
    monitor = DriftMonitor(SHORT)
    monitor.update(3.0, 0.1)
    with pytest.raises(ValueError, match=r"day 2\.0 is before the latest sample's, 3\.0"):
        monitor.update(2.0, 0.1)
    for value in (np.nan, np.inf):
        with pytest.raises(ValueError, match="leave a step without one out"):
            monitor.update(4.0, value)
    with pytest.raises(ValueError, match="of the rule"):
        DriftMonitor(DriftRule(-1, 1)).set_state(monitor.get_state())
    for wrong in ({"low": 1.0}, {"window": 0}, {"drop": 0.0}, {"alpha": 1.0}, {"minimum": 0}, {"trigger": "both"}):
        with pytest.raises(ValueError, match="got DriftRule"):
            DriftRule(**{"low": -1.0, "high": 1.0, **wrong})  # type: ignore[arg-type]
