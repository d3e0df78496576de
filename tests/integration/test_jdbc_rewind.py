# ruff: noqa: S608 (of a database of our own)
"""Targets of a JDBC source's offsets: what its tasks read from there."""

from __future__ import annotations

import datetime as dt

import pytest

from sluiceway.api import OffsetTarget, OffsetTargetKind
from sluiceway.connectors.jdbc.source.connector import JdbcSourceConnector
from sluiceway.errors import BadRequestError, ConnectError
from sluiceway.testing import MemoryOffsets, run_source
from support.database import DatabaseForTest

STAMP = {"postgresql": "timestamp", "mysql": "datetime(6)", "sqlite": "timestamp"}
EARLIEST, LATEST = OffsetTarget(OffsetTargetKind.EARLIEST), OffsetTarget(OffsetTargetKind.LATEST)
COLUMNS = {mode: tuple(mode.split("+")) for mode in ("incrementing", "timestamp", "timestamp+incrementing")}
NAMES = {"incrementing": "id", "timestamp": "changed"}


def config_of(database: DatabaseForTest, mode: str, **more: str) -> dict[str, str]:
    columns = {f"{each}.column.name": NAMES[each] for each in COLUMNS.get(mode, ())}
    keys = {name.replace("_", "."): value for name, value in more.items()}
    return {**database.config, "mode": mode, "topic.prefix": "t-", "poll.interval.ms": "20", **columns, **keys}


def people(database: DatabaseForTest) -> None:
    """Rows 1 to 6 at 10:00:01, :02, :03, :03, :05, and :06.5; each committed before the source reads."""
    kind = STAMP[database.dialect]
    database.execute(f"create table people (id integer not null primary key, changed {kind} not null)")
    for number, second in enumerate(("01", "02", "03", "03", "05", "06.5"), 1):
        insert(database, number, second)


def insert(database: DatabaseForTest, number: int, second: str) -> None:
    moment = f"2024-01-01 10:00:{second.partition('.')[0]}.{second.partition('.')[2]:0<6}"
    database.execute(f"insert into people (id, changed) values ({number}, '{moment}')")


def at(second: float) -> OffsetTarget:
    moment = dt.datetime(2024, 1, 1, 10, tzinfo=dt.timezone.utc) + dt.timedelta(seconds=second)
    return OffsetTarget(OffsetTargetKind.TIMESTAMP, int(moment.timestamp() * 1000))


def shift(number: int) -> OffsetTarget:
    return OffsetTarget(OffsetTargetKind.SHIFT, number)


def rewound(config: dict[str, str], target: OffsetTarget, offsets: MemoryOffsets) -> None:
    """Set the offsets of a target, as the REST API does."""
    found = JdbcSourceConnector().find_offsets(config, target, offsets.all())
    assert JdbcSourceConnector().alter_offsets(config, found)
    for partition, offset in found:
        offsets.store(partition, offset)


def ids(config: dict[str, str], offsets: MemoryOffsets, records: int) -> list[int]:
    return [each.value["id"] for each in run_source(JdbcSourceConnector, config, records=records, offsets=offsets)]


_CASES = pytest.mark.parametrize(
    ("mode", "target", "expected"),
    [
        *((mode, EARLIEST, [1, 2, 3, 4, 5, 6, 7]) for mode in COLUMNS),
        *((mode, LATEST, [7]) for mode in COLUMNS),
        *((mode, at(3), [3, 4, 5, 6, 7]) for mode in COLUMNS if mode != "incrementing"),
        *((mode, at(3.5), [5, 6, 7]) for mode in COLUMNS if mode != "incrementing"),
        *((mode, at(99), [7]) for mode in COLUMNS if mode != "incrementing"),  # no row is as late: the end
        ("incrementing", shift(-2), [5, 6, 7]),
        ("incrementing", shift(-99), [1, 2, 3, 4, 5, 6, 7]),
        ("incrementing", shift(99), [7]),
    ],
)


@_CASES
def test_tasks_continue_at_the_target(sqlite: DatabaseForTest, mode: str, target: OffsetTarget, expected: list[int]) -> None:
    check_target(sqlite, mode, target, expected)


@pytest.mark.long
@_CASES
def test_tasks_continue_at_the_target_on_servers(
    database: DatabaseForTest, mode: str, target: OffsetTarget, expected: list[int]
) -> None:
    check_target(database, mode, target, expected)


def check_target(database: DatabaseForTest, mode: str, target: OffsetTarget, expected: list[int]) -> None:
    people(database)
    config, offsets = config_of(database, mode), MemoryOffsets()
    assert ids(config, offsets, 6) == [1, 2, 3, 4, 5, 6]
    rewound(config, target, offsets)
    insert(database, 7, "07")
    assert ids(config, offsets, len(expected)) == expected


def test_a_start_that_the_config_chooses_is_not_the_beginning(sqlite: DatabaseForTest) -> None:
    people(sqlite)
    config, offsets = config_of(sqlite, "timestamp", timestamp_initial="-1"), MemoryOffsets()
    rewound(config, EARLIEST, offsets)
    assert ids(config, offsets, 6) == [1, 2, 3, 4, 5, 6]


def test_offsets_of_a_query_and_of_an_older_connector_are_found(sqlite: DatabaseForTest) -> None:
    people(sqlite)
    query = config_of(sqlite, "timestamp+incrementing", query="select * from people")
    offsets = MemoryOffsets()
    rewound(query, at(5), offsets)
    assert ids(query, offsets, 2) == [5, 6]
    old = MemoryOffsets([({"table": "people"}, {"incrementing": 5})])
    config = config_of(sqlite, "incrementing")
    rewound(config, shift(-1), old)
    assert [offset for _, offset in old.all()] == [{"incrementing": 4}]
    assert ids(config, old, 2) == [5, 6]


def test_positions_within_the_first_snapshot_are_removed(sqlite: DatabaseForTest) -> None:
    people(sqlite)
    config = config_of(sqlite, "incrementing", sluiceway_snapshot_ranges="2")
    offsets = MemoryOffsets()
    assert sorted(ids(config, offsets, 6)) == [1, 2, 3, 4, 5, 6]
    rewound(config, LATEST, offsets)
    assert [offset for _, offset in offsets.all()] == [{"incrementing": 6}]
    insert(sqlite, 7, "07")
    assert ids(config, offsets, 1) == [7]


def test_an_empty_table_is_read_from_its_beginning(sqlite: DatabaseForTest) -> None:
    sqlite.execute("create table people (id integer not null primary key, changed timestamp not null)")
    for mode in COLUMNS:
        [(partition, offset)] = JdbcSourceConnector().find_offsets(config_of(sqlite, mode), LATEST, [])
        assert (str(partition["table"]).endswith("people"), offset) == (True, None)


@pytest.mark.parametrize(
    ("mode", "target", "message"),
    [
        ("bulk", LATEST, "no offsets to set"),
        ("incrementing", at(3), "rows have no timestamps"),
        ("timestamp", shift(1), "cannot be shifted"),
        ("timestamp+incrementing", shift(1), "cannot be shifted"),
    ],
)
def test_targets_that_a_mode_does_not_have_are_refused(
    sqlite: DatabaseForTest, mode: str, target: OffsetTarget, message: str
) -> None:
    with pytest.raises(BadRequestError, match=message):
        JdbcSourceConnector().find_offsets(config_of(sqlite, mode), target, [])


def test_a_database_that_cannot_be_read_is_reported(sqlite: DatabaseForTest) -> None:
    with pytest.raises(ConnectError):
        JdbcSourceConnector().find_offsets(config_of(sqlite, "incrementing", query="select * from gone"), LATEST, [])
