"""The JDBC sink's task on real databases: modes, tables, types and errors."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from sluiceway.api import SinkRecord, TopicPartition
from sluiceway.connectors.jdbc.sink.connector import JdbcSinkConnector
from sluiceway.data import (
    BOOLEAN_SCHEMA,
    BYTES_SCHEMA,
    FLOAT32_SCHEMA,
    FLOAT64_SCHEMA,
    INT8_SCHEMA,
    INT16_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_INT32_SCHEMA,
    STRING_SCHEMA,
    Schema,
    Struct,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
)
from sluiceway.errors import ConnectError, FencedError, RetriableError
from sluiceway.testing import SinkConnectorContract
from support.database import DatabaseForTest
from support.jdbc_sink import KEYED, UPSERT, VALUE, gone, person, record, sink

PEOPLE = "select id, name from people order by id"
UTC = dt.timezone.utc


def test_records_are_inserted_into_a_created_table(database: DatabaseForTest) -> None:
    with sink(database, pk_mode="none", auto_create="true") as made:
        made.put(person(0, 1, "Ann"), person(1, 1, None))
        assert made.rows("select id, name from people order by name is null") == [(1, "Ann"), (1, None)]


def test_an_upsert_changes_the_row_of_a_key_and_a_tombstone_deletes_it(database: DatabaseForTest) -> None:
    with sink(database, **UPSERT) as made:
        made.put(person(0, 1, "Ann"), person(1, 2, "Bob"), person(2, 3, "Cyd"))
        made.put(person(3, 2, "Ben"), gone(4, 1))
        assert made.rows(PEOPLE) == [(2, "Ben"), (3, "Cyd")]


def test_the_last_record_of_a_key_in_a_batch_wins(database: DatabaseForTest) -> None:
    with sink(database, **UPSERT) as made:
        made.put(
            person(0, 1, "a"),
            gone(1, 1),
            person(2, 1, "b"),
            person(3, 2, "c"),
            gone(4, 2),
            gone(5, 3),
            person(6, 3, "d"),
            person(7, 3, "e"),
        )
        assert made.rows(PEOPLE) == [(1, "b"), (3, "e")]


def test_many_rows_are_upserted_through_a_staging_table(database: DatabaseForTest) -> None:
    with sink(database, **UPSERT) as made:
        for turn in range(3):
            made.put(*[person(turn * 500 + number, number % 250, f"{turn}/{number}") for number in range(500)])
        assert made.rows(PEOPLE) == [(number, f"2/{number + 250}") for number in range(250)]
        made.put(*[gone(1500 + number, number) for number in range(240)])
        assert [number for number, _ in made.rows(PEOPLE)] == list(range(240, 250))


def test_inserts_and_deletes_of_one_key_keep_their_order(database: DatabaseForTest) -> None:
    with sink(database, **KEYED, insert_mode="insert", delete_enabled="true") as made:
        made.put(person(0, 1, "a"), gone(1, 1), person(2, 1, "b"), person(3, 2, "c"))
        assert made.rows(PEOPLE) == [(1, "b"), (2, "c")]


def test_an_update_changes_existing_rows_and_adds_none(database: DatabaseForTest) -> None:
    database.execute("create table people (id bigint primary key, name varchar(20))")
    database.execute("insert into people values (1, 'Ann')")
    with sink(database, **KEYED, insert_mode="update") as made:
        made.put(person(0, 1, "Anne"), person(1, 2, "Bob"))
        assert made.rows(PEOPLE) == [(1, "Anne")]


def test_topic_partition_and_offset_become_the_key(database: DatabaseForTest) -> None:
    with sink(database, pk_mode="kafka", insert_mode="upsert", auto_create="true") as made:
        made.put(person(7, 1, "Ann"), person(8, 1, "Ann"))
        made.put(person(8, 1, "Anna"))
        sql = "select __connect_topic, __connect_partition, __connect_offset, name from people order by 3"
        assert made.rows(sql) == [("people", 0, 7, "Ann"), ("people", 0, 8, "Anna")]


def test_a_primitive_key_becomes_the_key_column(database: DatabaseForTest) -> None:
    with sink(database, **UPSERT, pk_fields="code") as made:
        options: dict[str, Any] = {"key_schema": STRING_SCHEMA}
        made.put(*[record(number, f"k{number}", {"id": number, "name": "x"}, **options) for number in range(30)])
        made.put(*[record(30 + number, f"k{number}", **options) for number in range(29)])
        assert made.rows("select code, id from people") == [("k29", 29)]


def test_fields_of_the_value_become_the_key(database: DatabaseForTest) -> None:
    with sink(database, pk_mode="record_value", pk_fields="id", insert_mode="upsert", auto_create="true") as made:
        made.put(person(0, 1, "Ann"), person(1, 1, "Anna"))
        assert made.rows(PEOPLE) == [(1, "Anna")]


def test_only_listed_fields_become_columns(database: DatabaseForTest) -> None:
    schema = Schema.struct({"id": INT64_SCHEMA, "name": STRING_SCHEMA, "secret": STRING_SCHEMA})
    with sink(database, pk_mode="none", auto_create="true", fields_whitelist="id,name") as made:
        made.put(record(0, value={"id": 1, "name": "Ann", "secret": "s"}, schema=schema))
        assert made.rows("select * from people") == [(1, "Ann")]


def test_a_table_is_named_by_a_format(database: DatabaseForTest) -> None:
    with sink(database, pk_mode="none", auto_create="true", table_name_format="kafka_${topic}_in") as made:
        made.put(person(0, 1, "Ann"))
        assert made.rows("select id from kafka_people_in") == [(1,)]


EVOLVED = Schema.struct(
    {
        "id": INT64_SCHEMA,
        "name": STRING_SCHEMA,
        "age": OPTIONAL_INT32_SCHEMA,
        "city": STRING_SCHEMA,
        "level": Schema(INT32_SCHEMA.type, default=3),
    }
)


def test_columns_are_added_for_new_fields_and_are_null_in_earlier_rows(database: DatabaseForTest) -> None:
    with sink(database, **UPSERT, auto_evolve="true") as made:
        made.put(person(0, 1, "Ann"))
        made.put(
            person(1, 2, "Bob"),
            record(2, {"id": 3}, {"id": 3, "name": "Cyd", "age": 30, "city": "Rome", "level": 5}, schema=EVOLVED),
            person(3, 4, "Dan"),
        )
        rows = made.rows("select id, name, age, city, level from people order by id")
        assert [row[:4] for row in rows] == [
            (1, "Ann", None, None),
            (2, "Bob", None, None),
            (3, "Cyd", 30, "Rome"),
            (4, "Dan", None, None),
        ]
        assert rows[2][4] == 5


def test_new_fields_without_auto_evolve_are_refused_with_the_statements_to_run(database: DatabaseForTest) -> None:
    with sink(database, **UPSERT) as made:
        made.put(person(0, 1, "Ann"))
        with pytest.raises(
            ConnectError, match=r"no column for age, city, level.*auto\.evolve.*ALTER TABLE .*people.* ADD COLUMN"
        ):
            made.put(record(2, {"id": 3}, {"id": 3, "name": "Cyd", "age": 30, "city": "Rome"}, schema=EVOLVED))
        assert made.rows(PEOPLE) == [(1, "Ann")]


def test_a_missing_table_is_refused_with_the_statement_to_run(database: DatabaseForTest) -> None:
    with (
        sink(database, pk_mode="none") as made,
        pytest.raises(ConnectError, match=r"no table .*people.*auto\.create.*CREATE TABLE"),
    ):
        made.put(person(0, 1, "Ann"))


def test_a_view_is_written_to_only_with_table_types(database: DatabaseForTest) -> None:
    database.execute("create table persons (id bigint, name varchar(20))")
    database.execute("create view people as select id, name from persons")
    with sink(database, pk_mode="none") as made, pytest.raises(ConnectError, match=r"is a view.*table\.types"):
        made.put(person(0, 1, "Ann"))
    if database.dialect != "sqlite":
        with sink(database, pk_mode="none", table_types="TABLE,VIEW") as made:
            made.put(person(0, 1, "Ann"))
            assert made.rows(PEOPLE) == [(1, "Ann")]


def test_names_with_quotes_percent_signs_and_blanks_are_columns(database: DatabaseForTest) -> None:
    names = ["a b", 'c"d', "e%sf", "g`h", "select", "Ümläut", "i:j"]
    schema = Schema.struct(dict.fromkeys(names, INT64_SCHEMA))
    values = {name: number for number, name in enumerate(names)}
    with sink(database, pk_mode="record_value", pk_fields="a b", insert_mode="upsert", auto_create="true") as made:
        made.put(record(0, value=values, schema=schema))
        made.put(record(1, value={**values, "select": 9}, schema=schema))
        made.put(*[record(2 + number, value={**values, "a b": number}, schema=schema) for number in range(1, 40)])
        rows = made.rows("select * from people")
        assert len(rows) == 40
        assert (0, 1, 2, 3, 9, 5, 6) in rows


ALL_TYPES: dict[str, tuple[Schema, Any]] = {
    "int8": (INT8_SCHEMA, -128),
    "int16": (INT16_SCHEMA, 32767),
    "int32": (INT32_SCHEMA, -(2**31)),
    "int64": (INT64_SCHEMA, 2**63 - 1),
    "float32": (FLOAT32_SCHEMA, 0.5),
    "float64": (FLOAT64_SCHEMA, 0.1),
    "yes": (BOOLEAN_SCHEMA, True),
    "no": (BOOLEAN_SCHEMA, False),
    "string": (STRING_SCHEMA, "tab\there, back\\slash, 'quote', \r\n, \\N, ü, \U0001f600"),
    "empty": (STRING_SCHEMA, ""),
    "bytes": (BYTES_SCHEMA, bytes(range(256))),
    "decimal": (decimal_schema(3), Decimal("-12345678901234567890.123")),
    "date": (date_schema(), dt.date(1582, 10, 15)),
    "time": (time_schema(), dt.time(23, 59, 59, 999000)),
    "moment": (timestamp_schema(), dt.datetime(2024, 2, 29, 12, 30, 15, 123000, tzinfo=UTC)),
}


@pytest.mark.parametrize("mode", ["insert", "upsert", "update"])
@pytest.mark.parametrize("count", [1, 50])
def test_every_type_is_written_unchanged(database: DatabaseForTest, mode: str, count: int) -> None:
    schema = Schema.struct({"id": INT64_SCHEMA, **{name: kind for name, (kind, _) in ALL_TYPES.items()}})
    optional = Schema.struct({field.name: field.schema.replace(optional=field.name != "id") for field in schema.fields})
    values = {name: value for name, (_, value) in ALL_TYPES.items()}
    with sink(database, pk_mode="record_value", pk_fields="id", auto_create="true", insert_mode="upsert") as made:
        made.put(*[record(number, value={"id": number}, schema=optional) for number in range(count)])
        nulls = made.rows("select * from people where id = 0")
        assert nulls == [(0, *[None] * len(ALL_TYPES))]
        if mode == "insert":
            made.rows("delete from people")
    with sink(database, pk_mode="record_value", pk_fields="id", insert_mode=mode) as made:
        made.put(*[record(count + number, value={"id": number, **values}, schema=optional) for number in range(count)])
        rows = made.rows("select * from people order by id")
    assert len(rows) == count
    found = dict(zip(["id", *ALL_TYPES], rows[-1], strict=True))
    assert found == {"id": count - 1, **as_read(database.dialect, values)}


def as_read(dialect: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values as the drivers read them."""
    moment = values["moment"].replace(tzinfo=None)
    if dialect == "postgresql":
        return {**values, "moment": moment}
    if dialect == "mysql":
        since_midnight = dt.timedelta(hours=23, minutes=59, seconds=59, milliseconds=999)
        return {**values, "yes": 1, "no": 0, "moment": moment, "time": since_midnight}
    return {
        **values,
        "yes": 1,
        "no": 0,
        "decimal": float(values["decimal"]),
        "date": "1582-10-15",
        "time": "23:59:59.999",
        "moment": "2024-02-29 12:30:15.123",
    }


def test_timestamps_are_written_in_the_databases_zone(database: DatabaseForTest) -> None:
    schema = Schema.struct({"at": timestamp_schema()})
    zone = "Asia/Tokyo" if database.dialect != "mysql" else "+09:00"
    if database.dialect == "mysql":
        pytest.skip("MariaDB knows zones by name only once its tables of zones are filled")
    with sink(database, pk_mode="none", auto_create="true", db_timezone=zone) as made:
        made.put(record(0, value={"at": dt.datetime(2024, 1, 1, 20, 0, tzinfo=UTC)}, schema=schema))
        assert str(made.rows("select at from people")[0][0]).startswith("2024-01-02 05:00:00")


def test_lists_become_arrays_in_databases_that_have_them(database: DatabaseForTest) -> None:
    schema = Schema.struct({"tags": Schema.array(STRING_SCHEMA), "days": Schema.array(date_schema(), optional=True)})
    value = {"tags": ["a", 'b"c', "d,e", ""], "days": [dt.date(2024, 1, 1)]}
    with sink(database, pk_mode="none", auto_create="true", reports=True) as made:
        made.put(record(0, value=value, schema=schema))
        if database.dialect == "postgresql":
            assert made.rows("select tags, days from people") == [(value["tags"], value["days"])]
        else:
            [(_, error)] = made.context.reported
            assert "Field tags is of type ARRAY" in str(error)


def test_text_goes_into_columns_of_the_databases_own_types(postgresql: DatabaseForTest) -> None:
    postgresql.execute("create table people (id int primary key, name jsonb)")
    with sink(postgresql, **UPSERT) as made:
        made.put(person(0, 1, '{"a": 1}'))
        made.put(*[person(number, number, '{"a": 2}') for number in range(1, 40)])
        assert made.rows("select count(*), min(name ->> 'a'), max(name ->> 'a') from people") == [(39, "2", "2")]


def test_a_bad_record_is_reported_and_the_rest_is_written_in_order(database: DatabaseForTest) -> None:
    database.execute("create table people (id bigint primary key, name varchar(5) not null check (length(name) < 6))")
    with sink(database, **UPSERT, reports=True) as made:
        records = [person(number, number % 60, f"n{number}") for number in range(100)]
        records[20] = person(20, 20, "far too long")
        records[77] = person(77, 17, None)
        made.put(*records)
        assert [bad.kafka_offset for bad, _ in made.context.reported] == [20, 77]
        rows = dict(made.rows(PEOPLE))
    expected = {number: f"n{number + 60 if number < 40 else number}" for number in range(60)}
    assert rows == {**expected, 17: "n17"}  # offset 80 is a good record of the key that offset 20 had


def test_a_bad_record_without_an_error_reporter_fails_the_task_with_its_position(database: DatabaseForTest) -> None:
    database.execute("create table people (id bigint primary key, name varchar(5) not null)")
    with sink(database, **UPSERT) as made, pytest.raises(ConnectError, match=r"people-0@1 cannot be written to table .*people"):
        made.put(person(0, 1, "Ann"), person(1, 2, None))
    assert database.execute(PEOPLE) == []


def test_records_of_the_wrong_shape_are_reported(database: DatabaseForTest) -> None:
    with sink(database, **UPSERT, reports=True) as made:
        made.put(
            person(0, 1, "Ann"),
            SinkRecord("people", 0, 1, {"id": 2}, None, {"id": 2}, None),
            record(2, None, {"id": 3, "name": "Cyd"}),
            person(3, 4, "Dan"),
        )
        assert made.rows(PEOPLE) == [(1, "Ann"), (4, "Dan")]
        assert [bad.kafka_offset for bad, _ in made.context.reported] == [1, 2]


def test_offsets_are_stored_with_the_rows_and_the_next_task_starts_from_them(database: DatabaseForTest) -> None:
    place = TopicPartition("people", 0)
    with sink(database, pk_mode="none", auto_create="true") as made:
        assert made.context.rewinds == {}
        made.put(person(41, 1, "Ann"))
        assert made.task.pre_commit({place: 42}) == {place: 42}
    with sink(database, pk_mode="none", partitions=2) as made:
        assert made.context.rewinds == {place: 42}
    JdbcSinkConnector().alter_offsets({"name": "sink", **database.config}, {place: 7, TopicPartition("people", 1): 3})
    with sink(database, pk_mode="none", partitions=2) as made:
        assert made.context.rewinds == {place: 7, TopicPartition("people", 1): 3}
    JdbcSinkConnector().alter_offsets({"name": "sink", **database.config}, {place: None})
    with sink(database, pk_mode="none", partitions=2) as made:
        assert made.context.rewinds == {TopicPartition("people", 1): 3}


def test_an_earlier_task_is_fenced_by_a_later_one(database: DatabaseForTest) -> None:
    with sink(database, pk_mode="none", auto_create="true") as old:
        old.put(person(0, 1, "Ann"))
        with sink(database, pk_mode="none") as new:
            with pytest.raises(RetriableError, match="taken over"):  # the group may be about to take the partition away
                old.put(person(1, 2, "old"))
            with pytest.raises(FencedError, match=r"taken over partitions of connector sink .people-0"):
                old.put(person(1, 2, "old"))
            assert old.task.pre_commit({TopicPartition("people", 0): 2}) == {}
            new.put(person(1, 2, "new"))
        assert old.rows(PEOPLE) == [(1, "Ann"), (2, "new")]


def test_a_task_whose_fenced_partition_is_revoked_continues_with_the_others(database: DatabaseForTest) -> None:
    mine, lost = TopicPartition("people", 0), TopicPartition("people", 1)
    with sink(database, pk_mode="none", auto_create="true", partitions=2) as old:
        with sink(database, pk_mode="none", partitions=2) as new:
            new.task.close([mine])
            old.task.close([mine])
            old.task.open([mine])
            with pytest.raises(RetriableError):
                old.put(person(0, 1, "Ann"), person(0, 2, "old", partition=1))
            old.task.close([lost])
            old.put(person(0, 1, "Ann"))
            new.put(person(0, 2, "new", partition=1))
        assert old.rows(PEOPLE) == [(1, "Ann"), (2, "new")]


def test_without_exactly_once_there_is_no_offsets_table(database: DatabaseForTest) -> None:
    with sink(database, pk_mode="none", auto_create="true", sluiceway_exactly_once="false") as made:
        made.put(person(0, 1, "Ann"))
        assert made.task.pre_commit({TopicPartition("people", 0): 1}) == {TopicPartition("people", 0): 1}
    with pytest.raises(Exception, match="sluiceway_offsets"):
        database.execute("select * from sluiceway_offsets")


@pytest.mark.parametrize("size", [100, 3 << 20, 5 << 20])
def test_long_values_are_written_up_to_the_servers_limit(mariadb: DatabaseForTest, size: int) -> None:
    mariadb.execute("set global max_allowed_packet = 4194304")
    try:
        with sink(mariadb, pk_mode="none", auto_create="true", reports=True) as made:
            made.put(*[person(number, number, "\\0" * size if number == 3 else "x" * 700_000) for number in range(12)])
            assert len(made.rows(PEOPLE)) == (12 if size == 100 else 11)
            assert [bad.kafka_offset for bad, _ in made.context.reported] == ([] if size == 100 else [3])
    finally:
        mariadb.execute("set global max_allowed_packet = 16777216")


def test_a_value_that_does_not_fit_is_never_truncated(mariadb: DatabaseForTest) -> None:
    mariadb.execute("set global sql_mode = ''")
    try:
        mariadb.execute("create table people (id bigint primary key, name varchar(3))")
        with sink(mariadb, **UPSERT, reports=True) as made:
            made.put(person(0, 1, "Ann"), person(1, 2, "Bobby"))
            assert made.rows(PEOPLE) == [(1, "Ann")]
    finally:
        mariadb.execute("set global sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'")


def test_a_table_without_transactions_is_refused_for_exactly_once(mariadb: DatabaseForTest) -> None:
    mariadb.execute("create table people (id bigint, name varchar(3)) engine=Aria")
    with (
        sink(mariadb, pk_mode="none") as made,
        pytest.raises(ConnectError, match=r"Aria.*InnoDB.*sluiceway\.exactly\.once=false"),
    ):
        made.put(person(0, 1, "Ann"))


class TestContract(SinkConnectorContract):
    connector_class = JdbcSinkConnector
    topic = "people"

    @pytest.fixture
    def config(self, sqlite: DatabaseForTest) -> dict[str, str]:
        return {**sqlite.config, "pk.mode": "none", "auto.create": "true", "name": "contract"}

    def records(self) -> list[SinkRecord]:
        return [
            SinkRecord(self.topic, partition, offset, Struct(VALUE, {"id": offset, "name": f"{partition}"}), VALUE)
            for offset in range(3)
            for partition in range(2)
        ]
