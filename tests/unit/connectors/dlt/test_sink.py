"""The task of DltSink with DuckDB, without a broker."""

from __future__ import annotations

import datetime as dt
import itertools
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pytest

from sluiceway.api import SinkRecord, TopicPartition
from sluiceway.config.intervals import Interval, IntervalRun
from sluiceway.connectors.dlt.sink import DltSinkConnector, DltSinkTask
from sluiceway.connectors.tables.store import UnknownOutcomeError
from sluiceway.data import (
    BOOLEAN_SCHEMA,
    BYTES_SCHEMA,
    FLOAT32_SCHEMA,
    FLOAT64_SCHEMA,
    INT8_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    Schema,
    Struct,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
)
from sluiceway.errors import ConnectError
from sluiceway.testing import MemorySinkContext
from support.dlt_destinations import END, POINTS, ROWS, STATE, die_at
from support.jdbc_sink import person, tombstone

PEOPLE = TopicPartition("people", 0)
MERGE = {"dlt.tables.upsert-mode-enabled": "true", "dlt.tables.default-id-columns": "id"}
BY_POSITION = {"dlt.tables.upsert-mode-enabled": "true", "dlt.positions.enabled": "true"}
APPEND: dict[str, str] = {}
_IN_MAKE_TEST = ((STATE, True, APPEND), (END, False, BY_POSITION))


class Started:
    """A started task whose partitions are open."""

    def __init__(self, config: dict[str, str], partitions: Sequence[TopicPartition], *, reports: bool):
        self.context = MemorySinkContext(config, partitions, reports=reports)
        self.task = DltSinkTask()
        self.task.initialize(self.context)
        self.task.start(config)
        self.task.open(partitions)

    def put(self, *records: SinkRecord) -> None:
        self.task.put(records)

    def commit(self, end: int, topic: str = "people") -> dict[TopicPartition, int]:
        return dict(self.task.pre_commit({TopicPartition(topic, 0): end}))


class Database:
    """A database of DuckDB in a folder, and a config of the sink that writes to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "db.duckdb"

    def config(self, **more: str) -> dict[str, str]:
        return {
            "name": "My-Sink",
            "connector.class": "DltSink",
            "dlt.destination": "support.dlt_destinations.fragile",
            "dlt.destination.args": orjson.dumps({"credentials": str(self.path)}).decode(),
            "dlt.folder": str(self.folder / "loads"),
            "dlt.config.load.workers": "1",
            **more,
        }

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(self.path), read_only=True) as database:
            return database.execute(sql).fetchall()

    def ids(self, table: str = "people") -> list[int]:
        return sorted(row[0] for row in self.ask(f"select id from my_sink.{table}"))  # noqa: S608


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path)


@pytest.fixture
def start(database: Database) -> Iterator[Callable[..., Started]]:
    """A function that starts a task, which is stopped at the end. The one before it is stopped, too."""
    tasks: list[Started] = []

    def start(*topics: str, reports: bool = False, **more: str) -> Started:
        if tasks:
            tasks[-1].task.stop()
        places = [TopicPartition(topic, 0) for topic in topics or ("people",)]
        tasks.append(Started(database.config(**more), places, reports=reports))
        return tasks[-1]

    yield start
    for each in tasks:
        each.task.stop()


def struct(offset: int, schema: Schema, **values: Any) -> SinkRecord:
    return SinkRecord("people", 0, offset, Struct(schema, values), schema)


def plain(offset: int, value: Any) -> SinkRecord:
    return SinkRecord("people", 0, offset, value)


def people(first: int, end: int, topic: str = "people") -> list[SinkRecord]:
    return [person(number, number, f"n{number}", topic=topic) for number in range(first, end)]


def test_a_load_has_the_rows_of_all_topics_and_the_offsets(start: Any, database: Database) -> None:
    task = start("people", "Orders-EU")
    task.put(*people(0, 3), *people(0, 2, "Orders-EU"))
    ends = {PEOPLE: 3, TopicPartition("Orders-EU", 0): 2}
    assert task.task.pre_commit(ends) == ends
    assert database.ids() == [0, 1, 2]
    assert database.ids("orders_eu") == [0, 1]
    assert database.ask("select count(*) from my_sink._dlt_loads") == [(1,)]
    shutil.rmtree(database.folder / "loads")  # another machine
    assert start("people", "Orders-EU").context.rewinds == ends


@pytest.mark.parametrize(
    ("point", "keeps_folder", "more"),
    [
        pytest.param(*each, marks=() if each in _IN_MAKE_TEST else pytest.mark.long)
        for each in itertools.product(POINTS, (True, False), (APPEND, BY_POSITION))
    ],
)
def test_a_load_that_a_crash_has_ended_is_completed_or_made_again(
    start: Any, database: Database, point: str, keeps_folder: bool, more: dict[str, str]
) -> None:
    task = start(**more)
    task.put(*people(0, 5))
    assert task.commit(5) == {PEOPLE: 5}
    die_at(point, database.folder)
    task.put(*people(5, 8))
    assert task.commit(8) == {}, "nothing is safe before the load is known to be complete"
    if not keeps_folder:
        task.task.stop()
        shutil.rmtree(database.folder / "loads")
        task = start(**more)
    else:
        task.put()
    first = task.context.rewinds[PEOPLE]
    task.put(*people(first, 10))
    assert task.commit(10) == {PEOPLE: 10}
    found, once = Counter(database.ids()), Counter(range(10))
    if keeps_folder or more or point == ROWS:
        assert found == once
    else:  # rows that were appended before are appended again, as the guide says
        twice = once + Counter(range(first, 8))
        assert found == twice if point == END else once <= found <= twice


def test_a_load_keeps_the_offsets_of_partitions_without_records(start: Any, database: Database) -> None:
    task, other = start(), TopicPartition("people", 1)
    task.task.open([other])
    task.put(*people(0, 2))
    task.commit(2)
    task.put(person(0, 7, "x", partition=1))
    assert task.task.pre_commit({PEOPLE: 2, other: 1}) == {PEOPLE: 2, other: 1}
    task = start()
    task.task.open([other])
    assert task.context.rewinds == {PEOPLE: 2, other: 1}


def test_a_merge_keeps_the_last_change_of_each_key(start: Any, database: Database) -> None:
    task = start(**MERGE)
    task.put(person(0, 1, "a"), person(1, 2, "b"), person(2, 1, "c"))
    task.commit(3)
    sql = "select * from my_sink.people order by id"
    assert database.ask(sql) == [(1, "c"), (2, "b")]
    task.put(person(3, 1, "d"), tombstone(4, 2), tombstone(5, 3), person(6, 3, "e"))
    task.commit(7)
    assert [row[:2] for row in database.ask(sql)] == [(1, "d"), (3, "e")]
    task.put(person(7, 1, "f"))
    task.commit(8)
    assert [row[:2] for row in database.ask(sql)] == [(1, "f"), (3, "e")]


def test_each_record_is_a_row_with_its_position(start: Any, database: Database) -> None:
    task = start(**BY_POSITION)
    task.put(person(0, 1, "a"), person(1, 1, "b"))
    task.commit(2)
    rows = database.ask("select * from my_sink.people order by _kafka_offset")
    assert rows == [(1, "a", "people", 0, 0), (1, "b", "people", 0, 1)]


MOMENT = dt.datetime(2026, 1, 2, 3, 4, 5, 678_000, dt.timezone.utc)
INNER = Schema.struct({"x": INT32_SCHEMA})
TYPES: dict[str, tuple[Schema, Any, str, Any]] = {
    "i8": (INT8_SCHEMA, -1, "BIGINT", -1),
    "i32": (INT32_SCHEMA, 7, "BIGINT", 7),
    "i64": (INT64_SCHEMA, 2**63 - 1, "BIGINT", 2**63 - 1),
    "f32": (FLOAT32_SCHEMA, 0.5, "DOUBLE", 0.5),
    "f64": (FLOAT64_SCHEMA, 0.1, "DOUBLE", 0.1),
    "yes": (BOOLEAN_SCHEMA, True, "BOOLEAN", True),
    "text": (STRING_SCHEMA, "ключ\n\"'", "VARCHAR", "ключ\n\"'"),
    "data": (BYTES_SCHEMA, b"\0\xff", "BLOB", b"\0\xff"),
    "money": (decimal_schema(2), Decimal("-12345678901234567.89"), "DECIMAL(38,2)", Decimal("-12345678901234567.89")),
    "day": (date_schema(), dt.date(1969, 12, 31), "DATE", dt.date(1969, 12, 31)),
    "clock": (time_schema(), dt.time(23, 59, 59, 999_000), "TIME", dt.time(23, 59, 59, 999_000)),
    "moment": (timestamp_schema(), MOMENT, "TIMESTAMP WITH TIME ZONE", MOMENT),
    "inner": (INNER, Struct(INNER, {"x": 1}), "JSON", '{"x":1}'),
    "items": (Schema.array(decimal_schema(1)), [Decimal("1.5")], "JSON", '["1.5"]'),
    "pairs": (Schema.map(STRING_SCHEMA, INT64_SCHEMA), {"a": 1}, "JSON", '{"a":1}'),
}


def test_each_type_has_its_column(start: Any, database: Database) -> None:
    schema = Schema.struct({name: each[0] for name, each in TYPES.items()})
    task = start()
    task.put(struct(0, schema, **{name: each[1] for name, each in TYPES.items()}))
    assert task.commit(1) == {PEOPLE: 1}
    columns = dict(database.ask("select column_name, data_type from information_schema.columns where table_name = 'people'"))
    assert columns == {name: each[2] for name, each in TYPES.items()}
    names = ", ".join(f'"{name}"' for name in TYPES)
    [row] = database.ask(f"select {names} from my_sink.people")  # noqa: S608
    found = dict(zip(TYPES, row, strict=True))
    assert found == {name: each[3] for name, each in TYPES.items()}
    task = start()  # the types are known from the destination
    task.put(struct(1, schema, **{name: each[1] for name, each in TYPES.items()}))
    assert task.commit(2) == {PEOPLE: 2}
    assert database.ask('select count(distinct "inner"), count(*) from my_sink.people') == [(1, 2)]


def test_schemaless_objects_get_columns_as_they_come(start: Any, database: Database) -> None:
    task = start(reports=True)
    values: list[Any] = [
        {"id": 1},
        {"id": 2, "userId": "u", "tags": [1, {"a": None, "b": 2**70}]},
        {"id": 3, "userId": "v", "tags": None},
    ]
    task.put(*(plain(number, value) for number, value in enumerate(values)))
    assert task.commit(3) == {PEOPLE: 3}
    task = start(reports=True)
    task.put(plain(3, {"id": 4.0}), plain(4, {"id": "five"}), plain(5, {"id": 6, "tags": "text", "user_id": "w"}))
    assert task.commit(6) == {PEOPLE: 6}
    rows = database.ask("select id, user_id, tags from my_sink.people order by id")
    assert rows == [
        (1, None, None),
        (2, "u", '[1,{"a":null,"b":1180591620717411303424}]'),
        (3, "v", None),
        (4, None, None),
        (6, "w", '"text"'),
    ]
    [(bad, error)] = task.context.reported
    assert bad.value == {"id": "five"}
    assert "does not fit column id" in str(error)


def test_names_that_would_be_one_are_refused(start: Any, database: Database) -> None:
    task = start(reports=True)
    task.put(plain(0, {"userId": 1, "user_id": 2}))
    assert "Fields userId and user_id would be one column, user_id" in str(task.context.reported[0][1])
    task = start("Orders-EU", "orders_eu")
    task.put(*people(0, 1, "Orders-EU"))
    with pytest.raises(ConnectError, match="Tables Orders-EU and orders_eu would be one"):
        task.put(*people(0, 1, "orders_eu"))
    task = start("Orders-EU", "orders_eu", name="other", **{"dlt.config.schema.naming": "direct"})
    task.put(*people(0, 1, "Orders-EU"), *people(0, 1, "orders_eu"))
    assert task.commit(1, "orders_eu")
    assert database.ask('select count(*) from other."Orders-EU"') == [(1,)]


def test_without_evolution_the_columns_stay(start: Any, database: Database) -> None:
    task = start()
    task.put(*people(0, 1))
    task.commit(1)
    wider = Schema.struct({"id": INT64_SCHEMA, "name": OPTIONAL_STRING_SCHEMA, "more": INT64_SCHEMA})
    task = start(**{"dlt.tables.evolve-schema-enabled": "false"})
    task.put(struct(1, wider, id=1, name="x", more=2))
    task.commit(2)
    assert database.ask("select * from my_sink.people order by id") == [(0, "n0"), (1, "x")]
    task = start(name="none", **{"dlt.tables.auto-create-enabled": "false"})
    with pytest.raises(ConnectError, match=r"dlt\.tables\.auto-create-enabled=true"):
        task.put(*people(0, 1))


def test_offsets_that_a_user_sets_are_where_tasks_start(start: Any, database: Database) -> None:
    task = start()
    task.put(*people(0, 5))
    task.commit(5)
    task.task.stop()
    connector = DltSinkConnector()
    assert connector.alter_offsets(database.config(), {PEOPLE: 2})
    assert start().context.rewinds == {PEOPLE: 2}
    assert connector.alter_offsets(database.config(**{"dlt.folder": str(database.folder / "api")}), {PEOPLE: None})
    shutil.rmtree(database.folder / "loads")
    assert start().context.rewinds == {}


def test_a_task_whose_partitions_another_has_loaded_does_not_load_them_again(start: Any, database: Database) -> None:
    other_folder = {"dlt.folder": str(database.folder / "other machine")}
    zombie = Started(database.config(**other_folder), [PEOPLE], reports=False)
    zombie.put(*people(0, 3))
    task = start()
    task.put(*people(0, 4))
    task.commit(4)
    assert zombie.commit(3) == {}
    zombie.put(*people(3, 4))
    assert zombie.context.rewinds == {PEOPLE: 4}
    zombie.task.stop()
    assert database.ids() == [0, 1, 2, 3]


def test_runs_of_intervals_load_into_the_tables_of_their_connector(start: Any, database: Database) -> None:
    for number in range(2):
        run = IntervalRun("My-Sink", Interval(number * 1000, (number + 1) * 1000), 1)
        task = start(reports=True, name=f"My-Sink.interval.{number}", **run.keys())
        assert task.context.rewinds == {}, "each has offsets of its own"
        task.put(plain(number * 2, {"id": number}), plain(number * 2 + 1, {"id": "text" if number else 5}))
        assert task.commit(number * 2 + 2) == {PEOPLE: number * 2 + 2}
    assert database.ids() == [0, 1, 5]
    assert "does not fit column id" in str(task.context.reported[0][1])


@pytest.mark.parametrize("others", [("a-b", "a.b"), ("x" * 60 + "1", "x" * 60 + "2"), ("A", "a")])
def test_connectors_whose_names_are_alike_have_offsets_of_their_own(start: Any, database: Database, others: Any) -> None:
    names = {"dlt.dataset": "one"}
    task = start(name=others[0], **names)
    task.put(*people(0, 2))
    task.commit(2)
    assert start(name=others[1], **names).context.rewinds == {}
    assert start(name=others[0], **names).context.rewinds == {PEOPLE: 2}


def test_one_folder_has_one_task(start: Any, database: Database) -> None:
    task = start()
    task.put(*people(0, 1))
    other = Started(database.config(), [PEOPLE], reports=False)
    with pytest.raises(UnknownOutcomeError, match=r"Another task of connector My-Sink .* \(dlt.folder\)"):
        other.put(*people(0, 1))
    task.task.stop()
    other.put(*people(0, 1))
    other.put(*people(0, 1))
    assert other.commit(1) == {PEOPLE: 1}
    other.task.stop()


def test_memory_is_that_of_a_load(start: Any, database: Database) -> None:
    task = start(**{"sluiceway.flush.size": "10"})
    task.put(*people(0, 9))
    assert not task.context.commit_requested
    task.put(*people(9, 10))
    assert task.context.commit_requested


def test_a_load_sees_nothing_of_airflow_of_this_process_and_of_another_connector(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PASSWORD", "of-the-environment")
    monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", "of-airflow")
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    (tmp_path / ".dlt").mkdir()
    (tmp_path / ".dlt" / "secrets.toml").write_text('password = "of-a-file"\n')
    monkeypatch.chdir(tmp_path)
    tasks: dict[str, Started] = {}
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        own = {"dlt.secret.password": f"of-{name}", "dlt.config.place": name, "name": name}
        config = Database(tmp_path / name).config(**own, **{"dlt.destination": "support.dlt_destinations.telling"})
        tasks[name] = Started(config, [PEOPLE], reports=False)
        tasks[name].put(*people(0, 3))
    try:
        assert [task.commit(3) for task in tasks.values()] == [{PEOPLE: 3}] * 2
    finally:
        for task in tasks.values():
            task.task.stop()
    told = [orjson.loads((tmp_path / name / "db.told").read_bytes()) for name in tasks]
    assert [(each["password"], each["place"], each["airflow"]) for each in told] == [
        ("of-one", "one", False),
        ("of-two", "two", False),
    ]
    assert len({os.getpid(), *(each["pid"] for each in told)}) == 3
    assert "of-two" not in str(told[0])
    assert "of-one" not in str(told[1])
    for each in told:
        assert "of-airflow" not in str(each)
        assert each["environment"].keys().isdisjoint({"AIRFLOW__CORE__FERNET_KEY"})
        assert each["asked"] == ["socket.connect (('127.0.0.1', 1),)"], "nothing is sent but what the destination sends"
    assert sorted(each.name for each in tmp_path.iterdir()) == [".dlt", "one", "two"]  # neither Airflow's database nor dlt's
