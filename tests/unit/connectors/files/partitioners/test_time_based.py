from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.api.columns import Column, ColumnBatch, NotColumnar
from sluiceway.connectors.files.partitioners import TimeBasedPartitioner
from sluiceway.connectors.files.partitioners.time_based import TimestampExtractor
from sluiceway.data import INT64_SCHEMA, STRING_SCHEMA, Schema, Struct
from sluiceway.data.logical import timestamp_schema
from sluiceway.errors import DataError
from support.file_sinks import record

HOUR = 3_600_000
HOURLY = "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH"
BERLIN = ZoneInfo("Europe/Berlin")


def partitioner(
    zone: dt.tzinfo = dt.timezone.utc, duration: int = HOUR, pattern: str = HOURLY, **more: str
) -> TimeBasedPartitioner:
    return TimeBasedPartitioner(duration, pattern, zone, TimestampExtractor(more.get("by", "Record")), more.get("field", "at"))


def millis(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).timestamp() * 1000)


@pytest.mark.parametrize(
    ("time", "folder"),
    [
        ("2024-01-31T23:59:59+00:00", "year=2024/month=02/day=01/hour=00"),
        ("2024-03-31T00:59:59+00:00", "year=2024/month=03/day=31/hour=01"),  # clocks go forward after it
        ("2024-03-31T01:00:00+00:00", "year=2024/month=03/day=31/hour=03"),
        ("2024-10-27T00:30:00+00:00", "year=2024/month=10/day=27/hour=02"),
        ("2024-10-27T01:30:00+00:00", "year=2024/month=10/day=27/hour=02"),  # the hour that comes twice
    ],
)
def test_folders_are_in_the_time_zone(time: str, folder: str) -> None:
    assert partitioner(BERLIN).encode(record(0, "x", STRING_SCHEMA, timestamp=millis(time)), 0) == folder


def test_a_duration_rounds_down_in_the_time_zone() -> None:
    six_hours = partitioner(ZoneInfo("Asia/Kolkata"), 6 * HOUR, "YYYY-MM-dd_HH-mm")
    time = millis("2024-05-01T12:29:59+00:00")
    assert six_hours.encode(record(0, "x", STRING_SCHEMA, timestamp=time), 0) == "2024-05-01_12-00"
    assert six_hours.encode(record(0, "x", STRING_SCHEMA, timestamp=time + 1000), 0) == "2024-05-01_18-00"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (INT64_SCHEMA, 1_700_000_000_000),
        (timestamp_schema(), dt.datetime(2023, 11, 14, 22, 13, 20, tzinfo=dt.timezone.utc)),
        (STRING_SCHEMA, "2023-11-14T22:13:20Z"),
        (STRING_SCHEMA, "2023-11-14T23:13:20.000+01:00"),
    ],
)
def test_a_field_has_the_time(schema: Schema, value: object) -> None:
    struct = Schema.struct({"at": schema})
    by_field = partitioner(by="RecordField")
    assert by_field.encode(record(0, {"at": value}, struct), 0) == "year=2023/month=11/day=14/hour=22"
    assert by_field.encode(record(0, {"at": value}, None), 0) == "year=2023/month=11/day=14/hour=22"
    nested = Struct(Schema.struct({"a": struct}), {"a": Struct(struct, {"at": value})})
    assert partitioner(by="RecordField", field="a.at").encode(record(0, nested, nested.schema), 0).endswith("hour=22")


@pytest.mark.parametrize("value", [{"at": "soon"}, {"at": None}, {"at": True}, {}, "text"])
def test_values_without_a_time_are_refused(value: object) -> None:
    with pytest.raises(DataError):
        partitioner(by="RecordField").encode(record(0, value, None), 0)
    with pytest.raises(DataError, match="no timestamp"):
        partitioner().encode(record(0, value, None, timestamp=None), 0)


def test_the_wall_clock() -> None:
    assert partitioner(by="Wallclock").encode(record(0, "x", None, timestamp=5), 1_700_000_000_000).endswith("day=14/hour=22")


ZONES = st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kathmandu", "America/St_Johns", "Australia/Lord_Howe", "Africa/Monrovia"])


@given(
    ZONES,
    st.sampled_from([1, 60_000, 900_000, HOUR, 6 * HOUR, 24 * HOUR]),
    st.lists(st.integers(0, 4_000_000_000_000), min_size=1),
)
def test_columns_have_the_folders_of_rows(zone: str, duration: int, times: list[int]) -> None:
    made = partitioner(ZoneInfo(zone), duration, "YYYY-MM-dd_HH-mm-ss-SSS")
    batch = ColumnBatch(
        topic="t",
        partition=0,
        key=Column(None, None),
        value=Column(STRING_SCHEMA, pa.array(["x"] * len(times))),
        count=len(times),
        timestamps=pa.array(times, pa.int64()),
        offsets=pa.array(range(len(times)), pa.int64()),
    )
    encoded = made.encode_columns(batch, 0)
    indices = [0] * len(times) if encoded.indices is None else encoded.indices
    rows = [made.encode(record(0, "x", STRING_SCHEMA, timestamp=time), 0) for time in times]
    assert [encoded.names[index] for index in indices] == rows


def test_columns_without_timestamps_are_left_to_rows() -> None:
    batch = ColumnBatch(topic="t", partition=0, key=Column(None, None), value=Column(STRING_SCHEMA, pa.array(["x"])), count=1)
    with pytest.raises(NotColumnar):
        partitioner().encode_columns(batch, 0)
