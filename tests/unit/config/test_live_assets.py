"""The keys of live assets."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.config.live_assets import LiveAssetSettings, Partitions, check_live_assets, partition_key
from sluiceway.errors import ConfigError


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp() * 1000)


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        ("hour", "2026-03-29T01:00", "2026-03-29T02:00"),
        ("day", "2026-03-29T00:00", "2026-03-30T00:00"),
        ("*/15 * * * *", "2026-03-29T01:15", "2026-03-29T01:30"),
        ("30 6 * * 1", "2026-03-23T06:30", "2026-03-30T06:30"),
    ],
)
def test_partitions_last_from_one_boundary_to_the_next(text: str, before: str, after: str) -> None:
    partitions, time = Partitions.of(text), at("2026-03-29T01:29:59.999")
    assert (partitions.at_or_before(time), partitions.after(time)) == (at(before), at(after))


@given(st.sampled_from(["hour", "day", "*/7 * * * *"]), st.integers(0, 4_000_000_000_000))
def test_each_time_is_in_one_partition(text: str, time: int) -> None:
    partitions = Partitions.of(text)
    start = partitions.at_or_before(time)
    end = partitions.after(time)
    assert start <= time < end
    assert (partitions.at_or_before(start), partitions.after(start), partitions.at_or_before(end - 1)) == (start, end, start)


def test_a_partitions_key_is_its_start_as_airflow_writes_it() -> None:
    assert partition_key(at("2026-11-30T05:00")) == "2026-11-30T05:00:00"


def test_defaults() -> None:
    found = LiveAssetSettings.of({})
    assert (found.interval, found.partitions, found.begin) == (60_000, None, None)
    assert LiveAssetSettings.of({"airflow.start.date": "2026-01-01"}).begin == at("2026-01-01")


@pytest.mark.parametrize("text", ["hourly", "", "* * *", "0 0 31 2 *"])
def test_what_is_no_partition_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"airflow\.partition"):
        LiveAssetSettings.of({"airflow.partition": text})


def test_a_micro_batch_has_no_partitions() -> None:
    check_live_assets({"airflow.partition": "hour"})
    with pytest.raises(ConfigError, match="data interval"):
        check_live_assets({"airflow.partition": "hour", "airflow.mode": "micro-batch"})
