"""The task of the Iceberg and the Delta source with real tables in a folder."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from sluiceway.api import SourceColumns, SourceRecord
from sluiceway.columns.rows import column_values
from sluiceway.connectors.tables.source.position import TABLE
from sluiceway.connectors.tables.store import UnreachableError
from sluiceway.data import Type
from sluiceway.data.logical import TIMESTAMP
from sluiceway.errors import ConfigError, ConnectError
from sluiceway.testing import MemoryOffsets
from support.table_source import AT, Reading, SourceLake, numbers


@pytest.fixture(params=["iceberg", "delta"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> SourceLake:
    return SourceLake(request.param, tmp_path)


@pytest.fixture
def delta(tmp_path: Path) -> SourceLake:
    return SourceLake("delta", tmp_path)


def changes(records: list[SourceRecord]) -> Iterator[tuple[Any, ...]]:
    for record in records:
        yield (
            *(header.value for header in record.headers),
            record.key["id"],
            None if record.value is None else record.value["name"],
        )


def test_a_snapshot_is_read_as_a_whole_then_what_is_appended(lake: SourceLake) -> None:
    lake.append(numbers(0, 100))
    lake.append(numbers(100, 150))
    reading = Reading(lake, lake.config(batch_max_rows="60"))
    assert sorted(reading.ids()) == list(range(150))
    assert reading.ids() == []
    lake.append(numbers(150, 170))
    lake.append(numbers(170, 180))
    assert reading.ids() == list(range(150, 180))
    assert reading.offsets.offset({TABLE: "db.t"})["snapshot"] == lake.current()  # type: ignore[index]


def test_records_have_the_types_of_the_table(lake: SourceLake) -> None:
    lake.append(numbers(0, 100))
    reading = Reading(lake, lake.config(topic_prefix="p-", **lake.ids()))
    reading.poll()
    [batch] = reading.batches
    assert isinstance(batch, SourceColumns)
    record = batch.records()[1]
    assert (record.topic, record.source_partition) == ("p-db.t", {"table": "db.t"})
    assert record.key.values_ == [1]
    assert record.value.values_[:3] == [1, "n1", AT]
    assert record.value["tags"].values_ == [1]
    schema = record.value_schema
    assert schema is not None
    fields = {field.name: field.schema for field in schema.fields}
    assert (schema.name, fields["at"].name, fields["id"].type) == ("t", TIMESTAMP, Type.INT64)
    assert [each.value for each in batch.records()] == column_values(batch.batch.value, batch.batch.count)
    assert [each.key for each in batch.records()] == column_values(batch.batch.key, batch.batch.count)
    assert batch.source_offset == batch.records()[-1].source_offset


@pytest.mark.parametrize("columns", [True, False])
def test_a_task_continues_after_any_row(lake: SourceLake, columns: bool) -> None:
    lake.append(numbers(0, 40))
    lake.append(numbers(40, 70))
    config = lake.config(batch_max_rows="33")
    reading = Reading(lake, config)
    records = reading.all(columns=columns)
    lake.append(numbers(70, 90))
    records += reading.all(columns=columns)
    wanted = [record.value["id"] for record in records]
    assert sorted(wanted) == list(range(90))
    for count in (1, 32, 33, 34, 39, 40, 41, 69, 70, 71, 89, 90):
        offsets = MemoryOffsets()
        offsets.store_all(records[:count])
        assert Reading(lake, config, offsets).ids() == wanted[count:], count


def test_a_column_that_is_added_is_in_the_records_from_then_on(lake: SourceLake) -> None:
    lake.append(numbers(0, 3))
    reading = Reading(lake, lake.config())
    assert reading.ids() == [0, 1, 2]
    lake.append(numbers(3, 5))
    lake.append(numbers(5, 6, extra=pa.array(["e"], pa.string())))
    records = reading.all()
    assert [len(record.value_schema.fields) for record in records] == [4, 4, 5]  # type: ignore[union-attr]
    assert records[-1].value["extra"] == "e"
    again = Reading(lake, lake.config(start_position="earliest"))
    assert [record.value["extra"] for record in again.all()].count(None) == 5


def test_columns_and_rows_are_selected(lake: SourceLake) -> None:
    lake.append(numbers(0, 100))
    config = lake.config(columns="id,name", row_filter="id >= 40 and id != 41 and name in ('n40', 'n41', 'n99')")
    records = Reading(lake, config).all()
    assert [record.value.values_ for record in records] == [[40, "n40"], [99, "n99"]]
    moment = Reading(lake, lake.config(row_filter="at > '2027-01-01T00:00:00+00:00' and name is not null"))
    assert moment.all() == []


@pytest.mark.parametrize("text", ["id >", "id ~ 3", "nothing = 1"])
def test_a_condition_that_is_none_is_refused(lake: SourceLake, text: str) -> None:
    lake.append(numbers(0, 1))
    with pytest.raises(ConfigError, match=r"row\.filter"):
        Reading(lake, lake.config(row_filter=text)).poll()
    assert "row.filter" in str(lake.connector.validate(lake.config(row_filter=text)))


def test_reading_starts_where_the_config_says(lake: SourceLake) -> None:
    lake.append(numbers(0, 10))
    first = lake.current()
    time.sleep(0.01)  # commits are told apart by milliseconds
    moment = dt.datetime.now(dt.timezone.utc)
    time.sleep(0.01)
    lake.append(numbers(10, 20))
    latest = Reading(lake, lake.config(start_position="latest"))
    assert latest.ids() == []
    by_id = Reading(lake, lake.config(start_position=str(first)))
    by_time = Reading(lake, lake.config(start_position=moment.isoformat()))
    assert by_id.ids() == by_time.ids() == list(range(10, 20))
    before = Reading(lake, lake.config(start_position="2020-01-01T00:00:00Z"))
    assert before.ids() == list(range(20))
    lake.append(numbers(20, 22))
    assert latest.ids() == by_id.ids() == [20, 21]
    whole = MemoryOffsets()
    whole.store({TABLE: "db.t"}, {"snapshot": first, "initial": True})
    assert Reading(lake, lake.config(), whole).ids() == list(range(22))


def test_a_commit_that_deletes_rows_fails_or_is_skipped(lake: SourceLake) -> None:
    lake.append(numbers(0, 10))
    failing, skipping = Reading(lake, lake.config()), Reading(lake, lake.config(changes_mode="skip"))
    assert failing.ids() == skipping.ids() == list(range(10))
    lake.delete("id = 3")
    lake.append(numbers(10, 12))
    with pytest.raises(ConnectError, match=r"changes or deletes rows.*changes\.mode=skip"):
        failing.poll()
    assert skipping.ids() == [10, 11]


@pytest.mark.parametrize("feed", [True, False])
def test_changes_become_tombstones_and_rows(lake: SourceLake, feed: bool) -> None:
    lake.append(numbers(0, 5), feed=feed)
    reading = Reading(lake, lake.config(changes_mode="tombstone", **lake.ids()))
    assert len(reading.all()) == 5
    lake.delete("id = 3")
    assert list(changes(reading.all())) == [(3, None)]
    lake.replace("id = 1", numbers(1, 2, name=pa.array(["new"], pa.string())))
    found = list(changes(reading.all()))
    assert found[-1] == (1, "new")
    assert {number for number, _ in found} == {1}, "PyIceberg replaces rows by two commits"
    assert reading.all() == []


@pytest.mark.parametrize("feed", [True, False])
def test_changes_become_rows_with_a_header(delta: SourceLake, feed: bool) -> None:
    delta.append(numbers(0, 4), feed=feed)
    config = delta.config(changes_mode="header", batch_max_rows="2", **delta.ids())
    reading = Reading(delta, config)
    first = reading.all()
    assert list(changes(first)) == [("insert", number, f"n{number}") for number in range(4)]
    DeltaTable(delta.location()).update(updates={"name": "'new'"}, predicate="id in (1, 2)")
    DeltaTable(delta.location()).delete("id = 0")
    DeltaTable(delta.location()).optimize.compact()
    records = reading.all()
    assert list(changes(records)) == [
        ("update_preimage", 1, "n1"),
        ("update_postimage", 1, "new"),
        ("update_preimage", 2, "n2"),
        ("update_postimage", 2, "new"),
        ("delete", 0, "n0"),
    ]
    for count in range(1, 5):
        offsets = MemoryOffsets()
        offsets.store_all([*first, *records[:count]])
        assert list(changes(Reading(delta, config, offsets).all())) == list(changes(records))[count:]


def test_a_column_to_identify_rows_is_needed_for_changes(lake: SourceLake) -> None:
    lake.append(numbers(0, 5))
    reading = Reading(lake, lake.config(changes_mode="tombstone"))
    reading.all()
    lake.delete("id = 3")
    with pytest.raises(ConnectError, match="default-id-columns"):
        reading.poll()


def test_a_dropped_or_replaced_table_is_an_error(lake: SourceLake) -> None:
    lake.append(numbers(0, 5))
    reading, other = Reading(lake, lake.config()), Reading(lake, lake.config())
    reading.all()
    other.all()
    lake.drop()
    with pytest.raises(ConnectError, match="was dropped"):
        reading.poll()
    lake.append(numbers(0, 5))
    with pytest.raises(ConnectError, match="was replaced"):
        other.poll()
    with pytest.raises(ConnectError, match=r"was replaced by another table.*DELETE"):
        Reading(lake, lake.config(), reading.offsets).poll()


def test_an_expired_snapshot_is_an_error_that_says_what_to_do(lake: SourceLake) -> None:
    lake.append(numbers(0, 5))
    reading = Reading(lake, lake.config(batch_max_rows="2"))
    half = reading.poll()
    offsets = MemoryOffsets()
    offsets.store_all(half)
    first = lake.current()
    lake.append(numbers(5, 10))
    lake.append(numbers(10, 15))
    if lake.format == "iceberg":
        table = lake.catalog().load_table("db.t")
        ids = [each.snapshot_id for each in table.snapshots()[:-1]]
        table.maintenance.expire_snapshots().by_ids(ids).commit()
    else:
        DeltaTable(lake.location()).create_checkpoint()
        for version in range(2):
            Path(lake.location(), "_delta_log", f"{version:020}.json").unlink()
    with pytest.raises(ConnectError, match=r"cannot be read on from snapshot.*PATCH"):
        Reading(lake, lake.config(), offsets).poll()
    offsets.store({TABLE: "db.t"}, {"snapshot": first})
    with pytest.raises(ConnectError, match=r"cannot be read on from snapshot.*PATCH"):
        Reading(lake, lake.config(), offsets).poll()
    offsets.store({TABLE: "db.t"}, {"snapshot": lake.current()})
    assert Reading(lake, lake.config(), offsets).ids() == []


def test_a_data_file_that_is_gone_is_an_error_that_says_what_to_do(lake: SourceLake) -> None:
    lake.append(numbers(0, 5))
    for file in lake.folder.rglob("*.parquet"):
        file.unlink()
    with pytest.raises(ConnectError, match=r"is gone.*DELETE"):
        Reading(lake, lake.config()).poll()


def test_a_table_that_does_not_exist_is_an_error(lake: SourceLake) -> None:
    with pytest.raises(ConnectError, match=r"db\.t does not exist"):
        Reading(lake, lake.config()).poll()


def test_a_storage_that_is_away_is_tried_again_at_the_same_row(lake: SourceLake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.append(numbers(0, 10))
    lake.append(numbers(10, 20))
    reading = Reading(lake, lake.config(batch_max_rows="4"))
    records = reading.poll()

    def fail(*_: Any, **__: Any) -> Any:
        raise OSError("connection reset")

    with monkeypatch.context() as patch:
        patch.setattr("pyarrow.dataset.ParquetFileFormat", fail)
        failures = 0
        while failures < 3:
            try:
                records += reading.poll()
            except UnreachableError:
                failures += 1
    records += reading.all()
    assert sorted(record.value["id"] for record in records) == list(range(20))
