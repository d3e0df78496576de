from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from sluiceway.connectors.files.rotation import Rotation, RotationLimits, next_scheduled

BERLIN = ZoneInfo("Europe/Berlin")
HOUR = 3_600_000
NOON = 1_700_000_000_000  # 2023-11-14T22:13:20Z


def test_records_end_files() -> None:
    rotation = Rotation(RotationLimits(10))
    assert not rotation.due(NOON, 0)
    rotation.wrote(7, NOON, None)
    assert (rotation.room, rotation.due(NOON, 0)) == (3, False)
    rotation.wrote(3, NOON, None)
    assert rotation.due(NOON, 0)
    rotation.reset()
    assert not rotation.due(NOON, 0)


def test_size_ends_files() -> None:
    rotation = Rotation(RotationLimits(10, size=100))
    rotation.wrote(1, NOON, None)
    assert [rotation.due(NOON, size) for size in (99, 100)] == [False, True]


def test_the_wall_clock_ends_files_without_record_times() -> None:
    rotation = Rotation(RotationLimits(10, interval=1000))
    rotation.wrote(1, NOON, None)
    rotation.wrote(1, NOON + 900, None)
    assert rotation.boundary is None
    assert [rotation.due(NOON + passed, 0) for passed in (999, 1000)] == [False, True]


def test_record_times_end_files_only_at_a_record() -> None:
    rotation = Rotation(RotationLimits(10, interval=1000, by_record_time=True))
    rotation.wrote(1, NOON, 5000)
    rotation.wrote(1, NOON, 5999)
    assert rotation.boundary == 6000
    assert not rotation.due(NOON + 10 * HOUR, 0)


def test_the_schedule_counts_from_midnight() -> None:
    rotation = Rotation(RotationLimits(10, schedule=HOUR, zone=BERLIN))
    rotation.wrote(1, NOON, None)
    following = 1_700_002_800_000  # 23:00Z
    assert [rotation.due(following + more, 0) for more in (-1, 0)] == [False, True]


@pytest.mark.parametrize(
    ("now", "interval", "expected"),
    [
        (0, HOUR, HOUR),
        (HOUR, HOUR, 2 * HOUR),
        (23 * HOUR + 1, 5 * HOUR, 24 * HOUR),  # a day ends an interval
        (5 * HOUR, 24 * HOUR, 24 * HOUR),
    ],
)
def test_schedules_of_utc(now: int, interval: int, expected: int) -> None:
    assert next_scheduled(now, interval, ZoneInfo("UTC")) == expected


def test_a_day_with_a_change_of_clocks_ends_at_midnight() -> None:
    day = 1_698_530_400_000  # 2023-10-29T00:00+02:00, a day of 25 hours
    assert next_scheduled(day + 24 * HOUR + 1, 24 * HOUR, BERLIN) == day + 25 * HOUR
