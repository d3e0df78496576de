"""The parts of JdbcSource that need no database."""

from __future__ import annotations

import datetime as dt
import itertools
import pickle
from typing import Any

import pytest

from sluiceway.api import SourceRecord
from sluiceway.connectors.jdbc.columns import Column, ColumnType, Kind, Mapping, NumericMapping, mapped
from sluiceway.connectors.jdbc.dialects import dialect_of
from sluiceway.connectors.jdbc.dialects.base import TableId
from sluiceway.connectors.jdbc.source.config import source_config
from sluiceway.connectors.jdbc.source.connector import Assignment, JdbcSourceConnector
from sluiceway.connectors.jdbc.source.deletes import SeenKeys
from sluiceway.connectors.jdbc.source.horizon import SafeNumbers, safe_time
from sluiceway.connectors.jdbc.source.key_ranges import Plan, plan_of
from sluiceway.connectors.jdbc.source.offsets import Position
from sluiceway.connectors.jdbc.source.rows import hold_back_equal_times
from sluiceway.connectors.jdbc.source.sql import Bounds, KeyRange, SelectBuilder
from sluiceway.connectors.jdbc.source.task import interval_of
from sluiceway.connectors.jdbc.source.wait_log import Wait
from sluiceway.connectors.jdbc.tables import TableSelection
from sluiceway.connectors.jdbc.url import parse_url
from sluiceway.errors import ConfigError, ConnectError

UTC = dt.timezone.utc
NOON = dt.datetime(2024, 1, 1, 12, tzinfo=UTC)


# --- URLs ---


@pytest.mark.parametrize(
    ("url", "place", "user", "password"),
    [
        ("jdbc:postgresql://h:6000/d?user=u&password=p%26q", "h:6000/d", "u", "p&q"),
        ("jdbc:postgresql://u:secret@[::1]/d", "::1:5432/d", "u", "secret"),
        ("jdbc:postgresql:d", "localhost:5432/d", None, None),
        ("jdbc:mysql://h/d?useSSL=false", "h:3306/d", None, None),
        ("jdbc:mariadb://h:1/d", "h:1/d", None, None),
        ("jdbc:sqlite:/a/b.db", "/a/b.db", None, None),
    ],
)
def test_a_url_says_where_the_database_is(url: str, place: str, user: str | None, password: str | None) -> None:
    found = parse_url(url)
    assert (found.place, found.user, found.password) == (place, user, password)
    assert password is None or password not in repr(found)


def test_keys_win_over_what_the_url_says() -> None:
    found = parse_url("jdbc:mysql://h/d?user=a&password=b", "c", "d")
    assert (found.user, found.password) == ("c", "d")


@pytest.mark.parametrize(
    ("url", "options"),
    [
        (
            "jdbc:postgresql://h/d?sslmode=require&currentSchema=s&prepareThreshold=0",
            {"sslmode": "require", "options": "-csearch_path=s"},
        ),
        ("jdbc:postgresql://h/d?ssl=true", {"sslmode": "verify-full"}),
        ("jdbc:mysql://h/d?sslMode=VERIFY_CA&connectTimeout=1500", {"ssl_verify_cert": True, "connect_timeout": 2}),
        ("jdbc:mysql://h/d?useSSL=false&rewriteBatchedStatements=true", {"ssl_disabled": True}),
    ],
)
def test_parameters_are_translated_or_passed_over(url: str, options: dict[str, object]) -> None:
    assert parse_url(url).options == options


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("jdbc:oracle:thin:@//h/d", "not a JDBC URL of a database that is supported"),
        ("jdbc:postgresql://a,b/d", "several hosts"),
        ("jdbc:postgresql://h:x/d", "not a number"),
        ("jdbc:postgresql://h/d?sslfactory=x", "without a counterpart.*sslmode"),
        ("jdbc:postgresql://h/d?sslmode=maybe", "must be one of disable"),
        ("jdbc:mysql://h/d?serverTimezone=Europe/Berlin", "db.timezone"),
    ],
)
def test_what_cannot_be_translated_is_refused(url: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:oracle://user:hunter2@h/d?password=hunter2",
        "jdbc:sqlserver://h:1433;user=sa;password=hunter2",
        "jdbc:oracle:thin:scott/hunter2@h:1521:x",
        "scott/hunter2",
        "jdbc:mysql://user:hunter2/@h/d",
        "jdbc:postgresql://user:hunter2?@h/d",
    ],
)
def test_a_refused_url_does_not_show_its_password(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_url(url)
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in " ".join(JdbcSourceConnector.validate({"connection.url": url})["connection.url"].errors)


# --- tables ---


def test_tables_are_chosen_by_names_patterns_and_expressions() -> None:
    dialect, tables = dialect_of("postgresql"), [TableId("d", "a", "x"), TableId("d", "b", "x"), TableId("d", "b", "y.z")]
    chosen = [
        TableSelection(whitelist=("b.x",)),
        TableSelection(blacklist=("x",)),
        TableSelection(schema="b%"),
        TableSelection(include=(r"d\.b\..*",), exclude=(r".*z",)),
        TableSelection(whitelist=('b."y.z"',)),
    ]
    assert [[str(table) for table in each.chosen(tables, dialect)] for each in chosen] == [
        ["d.b.x"],
        ["d.b.y.z"],
        ["d.b.x", "d.b.y.z"],
        ["d.b.x"],
        ["d.b.y.z"],
    ]


def test_a_new_table_changes_one_task_only() -> None:
    assignment, tables = Assignment(), [TableId(None, None, f"t{n}") for n in range(6)]
    before = assignment.shared(tables[:5], 3)
    after = assignment.shared(tables, 3)
    assert [len(group) for group in before] == [2, 2, 1]
    assert [was == now for was, now in zip(before, after, strict=True)] == [True, True, False]
    assert assignment.shared([], 3) == []


def test_tables_that_go_disturb_their_own_task_and_at_most_the_one_that_helps_out() -> None:
    assignment, tables = Assignment(), [TableId(None, None, f"t{n}") for n in range(6)]
    before = assignment.shared(tables, 3)
    assert assignment.shared(tables[1:], 3)[1:] == before[1:]
    assert assignment.shared(tables, 3)[1:] == before[1:]  # it came back
    without_first_task = [table for table in tables if table not in before[0]]
    after = assignment.shared(without_first_task, 3)
    assert [len(group) for group in after] == [1, 1, 2]
    assert after[2] == before[2]
    assert assignment.shared([before[2][0]], 3) == [[before[2][0]]]
    assert assignment.shared(tables, 3)[0][0] == before[2][0]


# --- statements ---


def builder(dialect: str = "postgresql", *, nullable: bool = False, **more: Any) -> SelectBuilder:
    columns = [
        Column("id", ColumnType(Kind.INT64), "bigint", nullable=nullable),
        Column("at", ColumnType(Kind.TIMESTAMP), "timestamp"),
        Column("50%", ColumnType(Kind.STRING, as_text=True), "json"),
    ]
    return SelectBuilder(dialect_of(dialect), columns, table=TableId(None, "s", "t"), **more)


def test_rows_behind_a_time_and_number_are_asked_for_in_a_form_that_an_index_serves() -> None:
    statement = builder(incrementing="id", timestamps=["at"]).rows(Position(7, NOON), Bounds(None, NOON))
    naive = NOON.replace(tzinfo=None)
    assert statement.sql == (
        'select "id", "at", "50%%"::text as "50%%", "at" as sluiceway_time from "s"."t" '
        'where "at" >= %s and ("at" > %s or "id" > %s) and "at" < %s order by "at", "id"'
    )
    assert statement.parameters == (naive, naive, 7, naive)


def test_without_a_position_there_is_no_lower_bound() -> None:
    assert " where " not in builder(incrementing="id").rows(Position(), Bounds()).sql
    assert '"id" is not null' in builder(nullable=True, incrementing="id").rows(Position(), Bounds()).sql
    assert '"at" is not null' in builder(timestamps=["at"]).rows(Position(), Bounds()).sql


def test_a_range_is_read_in_the_order_of_its_column() -> None:
    statement = builder(suffix="limit 3").rows(Position(), Bounds(), KeyRange("id", 3, 9))
    assert statement.sql.endswith('where "id" > %s and "id" <= %s order by "id" limit 3')
    assert statement.parameters == (3, 9)


# --- offsets ---


def test_offsets_keep_microseconds_and_times_before_the_epoch() -> None:
    for moment in (NOON.replace(microsecond=123456), dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)):
        position = Position(5, moment)
        assert Position.of(position.offset()) == position
    assert Position.of({"timestamp": 1500}).timestamp == dt.datetime(1970, 1, 1, 0, 0, 1, 500000, UTC)


@pytest.mark.parametrize(
    ("partition", "offset"),
    [
        ({"x": 1}, {"incrementing": 1}),
        ({"table": "t"}, {"incrementing": "1"}),
        ({"table": "t"}, {"incrementing": True}),
        ({"table": "t"}, {"position": 1}),
        ({"query": "query"}, {"timestamp": 1, "timestamp_nanos": 10**9}),
    ],
)
def test_offsets_that_no_task_could_start_from_are_refused(partition: dict[str, Any], offset: dict[str, Any]) -> None:
    config = {"connection.url": "jdbc:sqlite:x", "mode": "incrementing", "topic.prefix": "t"}
    with pytest.raises(ConnectError):
        JdbcSourceConnector().alter_offsets(config, [(partition, offset)])
    assert JdbcSourceConnector().alter_offsets(config, [(partition, None)])


def held(times: list[int], before: int | None, following: int | None) -> list[int | None]:
    records = [SourceRecord({}, {"timestamp": time}, "t", None) for time in times]
    hold_back_equal_times(
        records, None if before is None else {"timestamp": before}, None if following is None else {"timestamp": following}
    )
    return [record.source_offset["timestamp"] if record.source_offset else None for record in records]


def test_an_offset_says_a_time_once_no_row_of_that_time_follows() -> None:
    assert held([1, 2, 2, 3], None, None) == [1, 1, 2, 3]
    assert held([1, 2, 2], None, 2) == [1, 1, 1]
    assert held([2, 2], 1, 3) == [1, 2]
    assert held([2, 2], None, 2) == [None, None]


# --- the horizon ---


def test_numbers_are_safe_once_those_who_wrote_then_have_ended() -> None:
    numbers = SafeNumbers()
    assert numbers.add(5, frozenset()) == 5
    assert numbers.add(9, frozenset({"a"})) == 5
    assert numbers.oldest == 9
    assert numbers.add(12, frozenset({"a", "b"})) == 5
    assert numbers.add(15, frozenset({"b"})) == 9
    assert numbers.add(16, frozenset({"c"})) == 15
    assert numbers.add(20, frozenset()) == 20
    assert numbers.oldest is None


def test_nothing_waits_that_is_safe_already() -> None:
    numbers = SafeNumbers()
    assert numbers.add(5, frozenset({"a"})) is None
    assert numbers.add(5, frozenset({"b"})) == 5
    assert numbers.oldest is None


def test_a_long_wait_is_told_ever_more_seldom_and_a_new_one_anew(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    wait = Wait(lambda: now[0])
    told = []
    for moment, cause in ((0.0, 9), (59.0, 9), (61.0, 9), (100.0, 9), (130.0, 9), (200.0, 9), (201.0, 12), (262.0, 12)):
        now[0] = moment
        caplog.clear()
        wait.note(cause, "Rows wait")
        told += [now[0]] * len(caplog.records)
    assert told == [61.0, 130.0, 262.0]
    assert [interval_of(5, seconds) for seconds in (None, 0.0, 10.0, 3600.0)] == [5, 0.2, 1.0, 5]


def test_times_are_safe_before_the_oldest_open_transaction_and_what_was_rounded_down() -> None:
    earlier, second = NOON - dt.timedelta(seconds=9), dt.timedelta(seconds=1)
    assert safe_time(NOON, None, fraction=6, coarse=False, delay=0) == NOON
    assert safe_time(NOON, earlier, fraction=6, coarse=False, delay=0) == earlier
    assert safe_time(NOON, earlier, fraction=0, coarse=False, delay=0) == earlier - second
    assert safe_time(NOON, None, fraction=6, coarse=True, delay=0) == NOON - second
    assert safe_time(NOON, earlier, fraction=6, coarse=False, delay=60) == NOON - dt.timedelta(seconds=60)


# --- the rest ---


def test_keys_that_are_gone_are_found_once() -> None:
    seen = SeenKeys()
    seen.add([(1,), (2,), (3,)])
    assert list(seen.missing()) == []
    seen.add([(4,)])  # a row that was read in between
    seen.add([(1,), (4,)])
    assert sorted(key for keys in seen.missing() for key in keys) == [(2,), (3,)]
    seen.add([(1,)])
    assert list(seen.missing()) == [[(4,)]]
    seen.close()


@pytest.mark.parametrize(("low", "high", "count"), [(1, 100, 4), (-5, 5, 3), (7, 7, 3), (None, None, 2), (0, 2**62, 5)])
def test_ranges_cover_every_number_once(low: int | None, high: int | None, count: int) -> None:
    plan = Plan.parse(plan_of("id", low, high, count, NOON).text)
    ranges = [plan.snapshot(number).range for number in range(count)]
    assert (ranges[0].low, ranges[-1].high) == (None, high or 0)
    assert all(one.high == other.low for one, other in itertools.pairwise(ranges))
    assert plan.follows == Position(timestamp=NOON - dt.timedelta(microseconds=1))  # rows of NOON itself are in no range


@pytest.mark.parametrize(
    ("precision", "scale", "kinds"),
    [
        (2, 0, [Kind.DECIMAL, Kind.INT8, Kind.INT8, Kind.INT8]),
        (9, 0, [Kind.DECIMAL, Kind.INT32, Kind.INT32, Kind.INT32]),
        (18, 0, [Kind.DECIMAL, Kind.INT64, Kind.INT64, Kind.INT64]),
        (19, 0, [Kind.DECIMAL] * 4),
        (10, 2, [Kind.DECIMAL, Kind.DECIMAL, Kind.FLOAT64, Kind.FLOAT64]),
        (30, 2, [Kind.DECIMAL, Kind.DECIMAL, Kind.DECIMAL, Kind.FLOAT64]),
        (None, None, [Kind.STRING, Kind.STRING, Kind.FLOAT64, Kind.FLOAT64]),
    ],
)
def test_decimals_become_what_the_mapping_says(precision: int | None, scale: int | None, kinds: list[Kind]) -> None:
    column = ColumnType(Kind.DECIMAL, precision, scale)
    assert [mapped(column, Mapping(numeric=each)) for each in NumericMapping] == kinds


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"mode": ""}, "mode"),
        ({"mode": "timestamp"}, "timestamp.column.name"),
        ({"mode": "bulk", "incrementing.column.name": "id"}, "does not go with mode=bulk"),
        ({"mode": "bulk", "query": "select 1", "table.whitelist": "t"}, "does not go with"),
        ({"mode": "bulk", "table.whitelist": "t", "table.blacklist": "u"}, "does not go with"),
        ({"mode": "bulk", "db.timezone": "Nowhere/City"}, "time zone"),
        ({"mode": "bulk", "table.include.list": "("}, "regular expression"),
    ],
)
def test_keys_that_do_not_go_together_are_refused(more: dict[str, str], message: str) -> None:
    config = {"connection.url": "jdbc:sqlite:x", "topic.prefix": "t", **more}
    with pytest.raises(ConfigError, match=message) as caught:
        source_config(config)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301


def test_mysqls_types_are_read_from_its_words() -> None:
    dialect = dialect_of("mysql")
    assert dialect.column_type("int(10) unsigned zerofill").kind is Kind.INT64
    assert dialect.column_type("decimal(12,3)") == ColumnType(Kind.DECIMAL, 12, 3)
    assert dialect.column_type("enum('a(b','c,d')").kind is Kind.STRING
