"""Tests of the last hour of a connector."""

from __future__ import annotations

import pytest

from sluiceway.api import TopicPartition
from sluiceway.provider.ui.series import Series

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
START = 600_000.0  # a full minute


def _filled(seconds: int, step: int, rate: float, spread: float = 0.0) -> Series:
    series = Series(spread)
    for second in range(0, seconds + 1, step):
        series.add(START + second, {A: int(second * rate)}, lag=second)
    return series


def test_a_single_sample_has_no_rate() -> None:
    series = _filled(0, 5, 10)
    assert series.rate() is None
    assert series.rates(START) == [None] * 60


@pytest.mark.parametrize("step", [5, 60])
def test_a_steady_source_has_the_same_rate_however_often_it_is_sampled(step: int) -> None:
    series = _filled(1200, step, 10)
    assert series.rate() == pytest.approx(10)
    assert series.rates(START + 1200)[-20:-1] == pytest.approx([10] * 19)


def test_a_sink_that_commits_once_a_minute_has_a_steady_rate() -> None:
    series = Series(spread=75)
    for second in range(0, 1201, 5):
        series.add(START + second, {A: (second + 17) // 60 * 60 * 10}, lag=0)
    assert series.rate() == pytest.approx(10)
    assert series.rates(START + 1200)[-15:-2] == pytest.approx([10] * 13, rel=0.2)


def test_a_sink_that_no_longer_commits_has_rate_zero() -> None:
    series = _filled(300, 5, 10, spread=75)
    for second in range(305, 390, 5):
        series.add(START + second, {A: 3000}, lag=0)
    assert series.rate() == 0


def test_a_burst_after_an_idle_time_is_not_spread_over_the_idle_time() -> None:
    series = Series(spread=75)
    for minute in range(31):
        series.add(START + 60 * minute, {A: 6000 if minute == 30 else 0}, lag=0)
    rates = series.rates(START + 60 * 30)
    assert rates[-10:-3] == [0] * 7
    assert sum(rate or 0 for rate in rates[-3:]) == pytest.approx(100, rel=0.3)


def test_offsets_that_decrease_and_new_partitions_count_no_records() -> None:
    series = Series()
    series.add(START, {A: 1000}, 0)
    series.add(START + 30, {A: 0, B: 5000}, 0)
    assert series.rate() == 0
    series.add(START + 60, {A: 30, B: 5030}, 0)
    assert series.rates(START + 60)[-2] == pytest.approx(1)


def test_minutes_without_samples_are_gaps() -> None:
    series = _filled(120, 60, 10)
    rates = series.rates(START + 600)
    assert rates[-11:-9] == pytest.approx([10, 10])
    assert rates[-8:] == [None] * 8
    assert series.lags(START + 600)[-7:] == [None] * 7


def test_lags_are_those_at_the_end_of_each_minute() -> None:
    assert _filled(290, 5, 1).lags(START + 290)[-3:] == [180, 240, 290]


def test_a_series_stays_small_however_often_it_is_sampled() -> None:
    series = _filled(3 * 3600, 1, 1)
    assert len(series) < 250
    assert series.rates(START + 3 * 3600)[0] == pytest.approx(1)


def test_a_copy_does_not_change_with_the_original() -> None:
    series = _filled(60, 5, 10)
    copied = series.copy()
    series.add(START + 65, {A: 100_000}, 0)
    assert copied.rate() == pytest.approx(10)


def test_each_topic_has_a_rate_while_there_are_several_but_not_too_many() -> None:
    series = Series()
    assert series.topic_rates() == {}
    for second in range(0, 121, 5):
        series.add(START + second, {A: second * 10, B: second * 2}, lag=None)
    assert series.topic_rates() == {"a": pytest.approx(10), "b": pytest.approx(2)}
    assert series.rate() == pytest.approx(12)
    series.add(START + 125, {A: 1250}, lag=None)
    assert series.topic_rates() == {}, "the rate of one topic is that of the connector"
    series.add(START + 130, {TopicPartition(f"t{number}", 0): 0 for number in range(51)}, lag=None)
    assert series.topic_rates() == {}
