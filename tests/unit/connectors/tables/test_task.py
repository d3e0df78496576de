"""The task of the Iceberg and the Delta sink with real tables in a folder."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sluiceway.api import SinkRecord, TopicPartition
from sluiceway.connectors.tables.store import ConflictingCommitError, FencedOffsetsError, UnknownOutcomeError, UnreachableError
from sluiceway.data import (
    INT64_SCHEMA,
    OPTIONAL_INT8_SCHEMA,
    OPTIONAL_INT32_SCHEMA,
    OPTIONAL_INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    Schema,
    Struct,
    Type,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
)
from sluiceway.errors import ConnectError, DataError, FencedError
from support.jdbc_sink import person, record, tombstone
from support.table_sink import Lake, Task

PEOPLE = TopicPartition("people", 0)
UPSERT = {"tables_upsert-mode-enabled": "true", "tables_default-id-columns": "id"}


@pytest.fixture(params=["iceberg", "delta"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake(request.param, tmp_path)


@pytest.fixture
def started(lake: Lake) -> Iterator[Any]:
    """A function that starts a task, which is stopped at the end."""
    tasks: list[Task] = []

    def start(reports: bool = False, partitions: int = 1, **more: str) -> Task:
        places = [TopicPartition("people", number) for number in range(partitions)]
        tasks.append(Task(lake, lake.config(**more), places, reports=reports))
        return tasks[-1]

    yield start
    for task in tasks:
        task.task.stop()


def people(first: int, end: int) -> list[SinkRecord]:
    return [person(number, number, f"n{number}") for number in range(first, end)]


def ids(task: Task, name: str = "db.t") -> list[int]:
    return sorted(row["id"] for row in task.rows(name))


def test_rows_and_offsets_are_committed_together(started: Any, lake: Lake) -> None:
    task = started()
    task.put(*people(0, 3))
    assert lake.table(task.config).offset(PEOPLE) is None
    assert task.commit(3) == {PEOPLE: 3}
    assert lake.table(task.config).offset(PEOPLE) == 3
    assert task.rows() == [{"id": number, "name": f"n{number}"} for number in range(3)]
    assert started().context.rewinds == {PEOPLE: 3}


def test_records_that_are_filtered_out_move_the_groups_offset_only(started: Any) -> None:
    task = started()
    task.put(person(0, 1, "a"), tombstone(1, 1))
    assert task.commit(2) == {PEOPLE: 2}
    task.put(tombstone(2, 1))
    assert task.commit(3) == {PEOPLE: 3}
    assert ids(task) == [1]


def test_only_one_of_two_tasks_with_the_same_records_commits(started: Any, lake: Lake) -> None:
    first = started()
    first.put(*people(0, 3))
    first.commit(3)
    zombie, owner = started(), started()
    zombie.put(*people(3, 5))
    owner.put(*people(3, 4))
    owner.commit(4)
    assert zombie.commit(5) == {}  # it must read the table's offset again
    zombie.put(*people(5, 6))
    assert zombie.context.rewinds == {PEOPLE: 4}
    zombie.put(*people(4, 6))
    assert zombie.commit(6) == {PEOPLE: 6}
    assert ids(zombie) == list(range(6))
    owner.put(*people(4, 5))
    owner.commit(5)
    assert ids(owner) == list(range(6))
    assert len(lake.files()) == 3  # those of fenced commits were deleted


def test_a_task_that_is_fenced_again_and_again_fails(started: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    task = started()
    task.put(*people(0, 1))
    task.commit(1)
    table = type(task.lake.table(task.config))

    def fenced(self: Any, *args: Any) -> None:
        raise FencedOffsetsError("Another task has committed.")

    monkeypatch.setattr(table, "append", fenced)
    for _ in range(5):
        task.put(*people(1, 2))
        task.put(*people(1, 2))  # after the rewind
        task.commit(2)
    with pytest.raises(FencedError, match="5 times in a row"):
        task.put()


def test_a_commit_that_loses_a_race_is_repeated_on_the_newer_table(started: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    task, other = started(partitions=2), started(partitions=2)
    task.put(*people(0, 2))
    task.commit(2, 0)
    other.put(*(person(number, 100 + number, "x", partition=1) for number in range(2)))
    table = type(task.lake.table(task.config))
    append, lost = table._append, list[Any]()

    def late(self: Any, *args: Any) -> None:
        if not lost:
            lost.append(self)
            other.commit(0, 2)
        append(self, *args)

    task.put(*people(2, 4))
    monkeypatch.setattr(table, "_append", late)
    assert task.commit(4, 0)[PEOPLE] == 4
    assert ids(task) == [0, 1, 2, 3, 100, 101]


def test_an_unknown_outcome_leads_to_the_tables_offset(started: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    task = started()
    task.put(*people(0, 2))
    task.commit(2)
    table = type(task.lake.table(task.config))
    append = table.append

    def landed(self: Any, *args: Any) -> None:
        append(self, *args)
        raise UnknownOutcomeError("no answer")

    task.put(*people(2, 4))
    with monkeypatch.context() as patch:
        patch.setattr(table, "append", landed)
        assert task.commit(4) == {}
    task.put(*people(4, 5))
    assert task.context.rewinds == {PEOPLE: 4}
    task.put(*people(4, 6))
    assert task.commit(6) == {PEOPLE: 6}
    assert ids(task) == list(range(6))


def test_commits_whose_outcome_is_never_known_fail_the_task(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task(lake, {**lake.config(), "sluiceway.unreachable.timeout.ms": "0"}, [PEOPLE])
    task.put(*people(0, 2))
    task.commit(2)

    def unanswered(self: Any, *args: Any) -> None:
        raise UnknownOutcomeError("no answer")

    monkeypatch.setattr(type(lake.table(task.config)), "append", unanswered)
    task.put(*people(2, 4))
    assert task.commit(4) == {}
    with pytest.raises(ConnectError, match=r"more than sluiceway\.unreachable\.timeout\.ms allows"):
        task.put(*people(2, 4))


def test_a_table_that_is_away_after_an_unknown_outcome_gets_no_record_twice(
    started: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = started()
    task.put(*people(0, 2))
    task.commit(2)
    table = type(task.lake.table(task.config))
    append = table.append

    def away(self: Any, *args: Any) -> None:
        raise UnreachableError("the storage does not answer")

    def landed(self: Any, *args: Any) -> None:
        append(self, *args)
        raise UnknownOutcomeError("no answer")

    task.put(*people(2, 4))
    with monkeypatch.context() as patch:
        patch.setattr(table, "append", away)
        assert task.commit(4) == {PEOPLE: 2}
        patch.setattr(table, "append", landed)
        task.put(*people(4, 5))
    assert task.context.rewinds == {PEOPLE: 2}
    with monkeypatch.context() as patch:
        patch.setattr(task.task._session._store, "table", _away)
        with pytest.raises(UnreachableError):
            task.put(*people(2, 4))
    task.put(*people(2, 4))  # the runtime repeats the call
    assert task.context.rewinds == {PEOPLE: 4}
    task.put(*people(4, 6))
    assert task.commit(6) == {PEOPLE: 6}
    assert ids(task) == list(range(6))


def test_a_storage_that_is_away_keeps_the_records_until_it_is_back(started: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    task = started()
    task.put(*people(0, 2))
    table = type(
        task.lake.table(task.config) or task.task._session._store.create("db.t", pa.schema([("id", pa.int64())]), (), ())
    )

    def away(self: Any, *args: Any) -> None:
        raise UnreachableError("the storage does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(table, "append", away)
        assert task.commit(2) == {PEOPLE: 0}
        with pytest.raises(UnreachableError):
            task.put(*people(2, 3))
    task.put(*people(2, 3))
    assert task.commit(3) == {PEOPLE: 3}
    assert ids(task) == [0, 1, 2]


def test_a_storage_that_stays_away_fails_the_task(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    config = {**lake.config(), "sluiceway.unreachable.timeout.ms": "0"}
    task = Task(lake, config, [PEOPLE])
    assert task.task._session is not None
    monkeypatch.setattr(task.task._session._store, "table", _away)
    with pytest.raises(ConnectError, match=r"more than sluiceway\.unreachable\.timeout\.ms allows"):
        task.put(*people(0, 1))


def _away(_name: str) -> None:
    raise UnreachableError("the catalog does not answer")


def test_offsets_that_a_user_sets_are_where_tasks_start(started: Any, lake: Lake) -> None:
    task = started()
    task.put(*people(0, 5))
    task.commit(5)
    connector = lake.connector()
    assert connector.alter_offsets(task.config, {PEOPLE: 2})
    task.put(*people(5, 6))
    task.commit(6)  # of a task that was not stopped
    assert ids(task) == list(range(5))
    assert started().context.rewinds == {PEOPLE: 2}
    connector.alter_offsets(task.config, {PEOPLE: None})
    assert started().context.rewinds == {}
    with pytest.raises(ConnectError, match="must not be negative"):
        connector.alter_offsets(task.config, {PEOPLE: -1})


def test_a_topic_that_was_created_again(started: Any, caplog: pytest.LogCaptureFixture) -> None:
    task = started()
    task.put(*people(10, 13))
    task.commit(13)
    again = started()
    again.put(person(0, 100, "new"))
    assert again.commit(1) == {PEOPLE: 1}
    assert "was created again" in caplog.text
    assert ids(again) == [10, 11, 12, 100]


def test_schemas_evolve_within_a_commit(started: Any, lake: Lake) -> None:
    wider = OPTIONAL_INT64_SCHEMA if lake.format == "iceberg" else OPTIONAL_INT32_SCHEMA
    inner = Schema.struct({"q r": OPTIONAL_INT8_SCHEMA}, optional=True)
    old = Schema.struct({"id": INT64_SCHEMA, "n": OPTIONAL_INT32_SCHEMA})
    new = Schema.struct({"id": INT64_SCHEMA, "n": wider, "select": OPTIONAL_STRING_SCHEMA, "ключ a.b": inner})
    task = started()
    task.put(record(0, value={"id": 0, "n": 1}, schema=old))
    number = 2**40 if lake.format == "iceberg" else 2
    values = {"id": 1, "n": number, "select": "x", "ключ a.b": Struct(inner, {"q r": 5})}
    task.put(record(1, value=values, schema=new))
    task.put(record(2, value={"id": 2, "n": 3}, schema=old))
    assert task.commit(3) == {PEOPLE: 3}
    assert sorted(task.rows(), key=lambda row: int(row["id"])) == [
        {"id": 0, "n": 1, "select": None, "ключ a.b": None},
        {"id": 1, "n": number, "select": "x", "ключ a.b": {"q r": 5}},
        {"id": 2, "n": 3, "select": None, "ключ a.b": None},
    ]


def test_without_evolution_fields_without_a_column_are_not_written(started: Any) -> None:
    task = started()
    task.put(*people(0, 1))
    task.commit(1)
    task = started(**{"tables_evolve-schema-enabled": "false"})
    schema = Schema.struct({"id": INT64_SCHEMA, "more": OPTIONAL_STRING_SCHEMA})
    task.put(record(1, value={"id": 1, "more": "x"}, schema=schema))
    task.commit(2)
    assert task.rows()[0] == {"id": 1, "name": None}


def test_a_delta_table_with_a_constraint_is_an_error(tmp_path: Path) -> None:
    lake = Lake("delta", tmp_path)
    config = lake.config()
    task = Task(lake, config, [PEOPLE])
    task.put(*people(0, 1))
    assert task.commit(1) == {PEOPLE: 1}
    lake.table(config)._table.alter.add_constraint({"positive": "id >= 0"})
    with pytest.raises(ConnectError, match=r"Table db\.t has delta\.constraints\.positive, which the sink cannot apply"):
        Task(lake, config, [PEOPLE])


def test_a_table_that_does_not_exist_is_an_error_without_auto_create(started: Any) -> None:
    task = started(**{"tables_auto-create-enabled": "false"})
    with pytest.raises(ConnectError, match=r"Table db.t does not exist"):
        task.put(*people(0, 1))


TYPES: dict[str, tuple[Schema, Any]] = {
    "i8": (Schema(Type.INT8), -1),
    "i16": (Schema(Type.INT16), 2),
    "i32": (Schema(Type.INT32), 3),
    "i64": (INT64_SCHEMA, 2**62),
    "f32": (Schema(Type.FLOAT32), 1.5),
    "f64": (Schema(Type.FLOAT64), 0.1),
    "flag": (Schema(Type.BOOLEAN), True),
    "text": (Schema(Type.STRING), "ä"),
    "data": (Schema(Type.BYTES), b"\x00\xff"),
    "number": (decimal_schema(2), Decimal("12.34")),
    "day": (date_schema(), dt.date(2026, 1, 2)),
    "at": (timestamp_schema(), dt.datetime(2026, 1, 2, 3, 4, 5, 6000, dt.timezone.utc)),
    "items": (Schema.array(OPTIONAL_INT32_SCHEMA), [1, None]),
    "none": (Schema.array(Schema.struct({"x": INT64_SCHEMA}), optional=True), None),
    "default": (Schema(Type.INT64, optional=True, default=7), None),
}


def test_every_type_comes_back_unchanged(started: Any, lake: Lake) -> None:
    schema = Schema.struct({name: kind for name, (kind, _) in TYPES.items()} | {"clock": time_schema()})
    values = {name: value for name, (_, value) in TYPES.items()} | {"clock": dt.time(1, 2, 3, 4000)}
    task = started()
    task.put(record(0, value=values, schema=schema))
    assert task.commit(1) == {PEOPLE: 1}
    [row] = task.rows()
    clock = values["clock"] if lake.format == "iceberg" else 3_723_004
    if lake.format == "iceberg":
        values["none"] = row["none"]  # PyIceberg reads a null list of structs as an empty one, the file has a null
    assert row == {**values, "default": 7, "clock": clock}


def test_null_structs_with_required_fields(started: Any, lake: Lake) -> None:
    inner = Schema.struct({"x": INT64_SCHEMA}, optional=True)
    schema = Schema.struct({"inner": inner})
    task = started()
    task.put(record(0, value={"inner": None}, schema=schema), record(1, value={"inner": Struct(inner, {"x": 1})}, schema=schema))
    assert task.commit(2) == {PEOPLE: 2}
    assert task.rows() == [{"inner": None}, {"inner": {"x": 1}}]


def test_schemaless_values(started: Any) -> None:
    task = started()
    task.put(record(0, value=None), *(SinkRecord("people", 0, 1 + n, {"id": n, "tags": [{"a": n}], "x": None}) for n in range(2)))
    task.commit(3)
    assert task.rows() == [{"id": 0, "tags": [{"a": 0}]}, {"id": 1, "tags": [{"a": 1}]}]


def test_bad_records_are_reported_and_the_others_written(started: Any) -> None:
    task = started(reports=True)
    task.put(*people(0, 1))
    task.commit(1)
    text = Schema.struct({"id": Schema(Type.STRING), "name": OPTIONAL_STRING_SCHEMA})
    bad = record(2, value={"id": "no number", "name": "x"}, schema=text)
    plain = SinkRecord("people", 0, 3, "text", Schema(Type.STRING))
    task.put(person(1, 1, "a"), bad, plain, record(4, value={"id": "4", "name": "x"}, schema=text))
    assert [each.kafka_offset for each, _ in task.context.reported] == [2, 3]
    assert task.commit(5) == {PEOPLE: 5}
    assert ids(task) == [0, 1, 4]
    with pytest.raises(DataError, match="a table row needs a struct"):
        started().put(plain)


def test_upserts_keep_the_last_change_of_each_key(started: Any) -> None:
    task = started(**UPSERT)
    task.put(*(person(number, number % 4, f"n{number}") for number in range(10)))
    assert task.commit(10) == {PEOPLE: 10}
    task.put(
        tombstone(10, 3), tombstone(11, 2), person(12, 2, "again"), person(13, 50, "new"), tombstone(14, 50), tombstone(15, 99)
    )
    assert task.commit(16) == {PEOPLE: 16}
    assert sorted(task.rows(), key=lambda row: int(row["id"])) == [
        {"id": 0, "name": "n8"},
        {"id": 1, "name": "n9"},
        {"id": 2, "name": "again"},
    ]
    task.put(tombstone(16, 1))
    assert task.commit(17) == {PEOPLE: 17}
    assert ids(task) == [0, 2]
    assert started(**UPSERT).context.rewinds == {PEOPLE: 17}


def test_debezium_events(lake: Lake) -> None:
    row = Schema.struct({"id": INT64_SCHEMA, "name": OPTIONAL_STRING_SCHEMA}, optional=True)
    event = Schema.struct({"before": row, "after": row, "op": Schema(Type.STRING)}, name="db.Envelope")

    def change(offset: int, op: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> SinkRecord:
        images = {name: None if image is None else Struct(row, image) for name, image in (("before", before), ("after", after))}
        return record(offset, value={"op": op, **images}, schema=event)

    task = Task(lake, {**lake.config(**UPSERT), "sluiceway.value.format": "debezium"}, [PEOPLE])
    one, two = {"id": 1, "name": "a"}, {"id": 2, "name": "b"}
    task.put(change(0, "c", None, one), change(1, "r", None, two), change(2, "u", one, {"id": 1, "name": "z"}))
    task.put(change(3, "d", two, None), change(4, "t", None, None))
    assert task.commit(5) == {PEOPLE: 5}
    assert task.rows() == [{"id": 1, "name": "z"}]
    task.put(tombstone(5, 2), change(6, "c", None, two), tombstone(7, 2))
    assert task.commit(8) == {PEOPLE: 8}
    assert task.rows() == [{"id": 1, "name": "z"}]


def test_records_go_to_the_tables_that_a_field_names(started: Any, lake: Lake) -> None:
    more = {
        "tables": "db.a,db.b",
        "tables_route-field": "name",
        "table.db.a_route-regex": "a.*",
        "table.db.b_route-regex": "b.*|ab",
    }
    task = started(**more)
    task.put(person(0, 0, "a"), person(1, 1, "ab"), person(2, 2, "b"), person(3, 3, "c"), person(4, 4, None))
    assert task.commit(5) == {PEOPLE: 5}
    assert (ids(task, "db.a"), ids(task, "db.b")) == ([0, 1], [1, 2])
    again = started(**more)  # the group's offset was not committed: both tables have the records already
    again.put(person(1, 1, "ab"), person(2, 2, "b"), person(5, 5, "ab"))
    again.commit(6)
    assert (ids(task, "db.a"), ids(task, "db.b")) == ([0, 1, 5], [1, 2, 5])


def test_dynamic_tables_and_their_offsets(started: Any, lake: Lake) -> None:
    more = {"tables": "", "tables_dynamic-enabled": "true", "tables_route-field": "name"}
    task = started(**more)
    task.put(person(0, 0, "DB.One"), person(1, 1, "db.two"))
    assert task.commit(2) == {PEOPLE: 2}
    assert (ids(task, "db.one"), ids(task, "db.two")) == ([0], [1])
    assert lake.connector().alter_offsets(task.config, {PEOPLE: 0})
    assert lake.table(task.config, "db.one").offset(PEOPLE) == 0
    assert lake.table(task.config, "db.two").offset(PEOPLE) == 0


def test_files_of_killed_tasks_are_swept_by_age(started: Any, lake: Lake) -> None:
    task = started()
    task.put(*people(0, 2))
    task.commit(2)
    table = lake.table(task.config)
    table.stage(lake.read(task.config).cast(table.schema))
    assert len(lake.files()) == 2
    assert table.sweep(3600) == 0
    assert table.sweep(-60) == 1
    assert len(lake.files()) == 1
    assert ids(task) == [0, 1]


def test_a_table_that_was_dropped_is_an_error(started: Any, lake: Lake) -> None:
    task = started()
    task.put(*people(0, 1))
    task.commit(1)
    other = lake.table(task.config)
    if lake.format == "iceberg":
        other._table.catalog.drop_table("db.t")
    else:
        import shutil

        shutil.rmtree(lake.folder / "lake")
    task.put(*people(1, 2))
    assert task.commit(2) == {PEOPLE: 1}
    with pytest.raises(ConnectError, match=r"db\.t"):
        task.put()


def test_lost_partitions_drop_what_is_not_committed(started: Any, lake: Lake) -> None:
    task = started(partitions=2)
    task.put(*people(0, 2), person(0, 100, "x", partition=1))
    task.task.close([TopicPartition("people", 1)])
    task.put(*people(2, 3))
    assert task.context.rewinds == {PEOPLE: 0}
    task.put(*people(0, 2))
    assert task.commit(2) == {PEOPLE: 2}
    assert ids(task) == [0, 1]


def test_a_conflict_that_never_ends_is_retried_later(started: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    task = started()
    task.put(*people(0, 1))
    task.commit(1)
    table = type(task.lake.table(task.config))

    def late(self: Any, *args: Any) -> None:
        raise ConflictingCommitError("another commit came first")

    task.put(*people(1, 2))
    with monkeypatch.context() as patch:
        patch.setattr(table, "append", late)
        assert task.commit(2) == {PEOPLE: 1}
    task.put()
    assert task.commit(2) == {PEOPLE: 2}
    assert ids(task) == [0, 1]
