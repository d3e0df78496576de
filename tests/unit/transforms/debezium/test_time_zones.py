from __future__ import annotations

import pytest

from sluiceway.transforms.debezium.time_zones import OffsetTime, OffsetTimestamp, Zone, is_zone, offset_text


@pytest.mark.parametrize(
    ("text", "offset", "expected"),
    [
        ("2024-01-01T12:00:00.000000Z", 3600, "2024-01-01T13:00:00+01:00"),
        ("2024-12-31T23:30:00.120+00:00", 3600, "2025-01-01T00:30:00.12+01:00"),
        ("+292278993-12-31T00:00Z", -1, "+292278993-12-30T23:59:59-00:00:01"),
        ("-0001-03-01T00:00:00Z", 0, "-0001-03-01T00:00:00Z"),
    ],
)
def test_timestamps_with_another_offset(text: str, offset: int, expected: str) -> None:
    assert OffsetTimestamp.parse(text).text_at(offset) == expected


@pytest.mark.parametrize("text", ["2024-02-30T00:00:00Z", "2024-01-01T25:00:00Z", "2024-01-01T00:00:00", "+2024-01-01T00:00Z"])
def test_what_java_cannot_parse_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (the text differs by case)
        OffsetTimestamp.parse(text)


def test_times_of_day_need_minutes_in_the_offset() -> None:
    assert OffsetTime.parse("23:30:00.5+00:00").text_at(3600) == "00:30:00.5+01:00"
    with pytest.raises(ValueError, match="could not be parsed"):
        OffsetTime.parse("23:30:00+02")


def test_offsets_of_regions_and_fixed_offsets() -> None:
    warsaw = Zone("Europe/Warsaw")
    summer = 1_720_000_000
    assert (warsaw.offset_at_local(summer), warsaw.offset_at_instant(summer)) == (7200, 7200)
    assert Zone("-03:30:15").offset_at_local(0) == -12_615
    gap = 1_711_850_400 + 9000 - 7200  # 2024-03-31T02:30, which does not exist in Warsaw
    assert warsaw.offset_at_local(gap) == 3600
    assert warsaw.offset_at_local(10**13) in (3600, 7200)


def test_names_of_zones() -> None:
    assert all(map(is_zone, ("Europe/Warsaw", "UTC", "+08:00", "EST")))
    assert not any(map(is_zone, ("Europe/warsaw", "+8", "", "Nowhere", "localtime")))
    with pytest.raises(ValueError, match="Unknown time-zone ID: EST"):
        Zone("EST")
    with pytest.raises(ValueError, match="not in valid range"):
        Zone("+25:00")


def test_offsets_as_text() -> None:
    assert [offset_text(each) for each in (0, 3600, -5400, 5070)] == ["Z", "+01:00", "-01:30", "+01:24:30"]
