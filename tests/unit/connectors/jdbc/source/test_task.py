"""The JDBC source on SQLite fulfills the contract of source connectors."""

from __future__ import annotations

import sqlite3
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from sluiceway.connectors.jdbc.source import table_reader
from sluiceway.connectors.jdbc.source.connector import JdbcSourceConnector
from sluiceway.errors import ConnectError
from sluiceway.testing import SourceConnectorContract
from sluiceway.testing.running import RunningSource


@pytest.fixture
def config(tmp_path: Path) -> dict[str, str]:
    with sqlite3.connect(tmp_path / "people.db") as connection:
        connection.execute("create table people (id integer primary key, name text, changed timestamp not null)")
        connection.executemany(
            "insert into people (name, changed) values (?, ?)", [(f"name {n}", f"2024-01-01 10:00:0{n}") for n in range(5)]
        )
    return {
        "connection.url": f"jdbc:sqlite:{tmp_path / 'people.db'}",
        "topic.prefix": "db-",
        "poll.interval.ms": "20",
        "batch.max.rows": "2",
    }


class TestIncrementing(SourceConnectorContract):
    connector_class = JdbcSourceConnector
    record_count = 5

    @pytest.fixture
    def config(self, config: dict[str, str]) -> dict[str, str]:
        return {**config, "mode": "incrementing"}


class TestTimestampIncrementing(SourceConnectorContract):
    connector_class = JdbcSourceConnector
    record_count = 5

    @pytest.fixture
    def config(self, config: dict[str, str]) -> dict[str, str]:
        return {**config, "mode": "timestamp+incrementing", "timestamp.column.name": "changed"}


class TestTimestamp(SourceConnectorContract):
    connector_class = JdbcSourceConnector
    record_count = 5

    @pytest.fixture
    def config(self, config: dict[str, str]) -> dict[str, str]:
        return {**config, "mode": "timestamp", "timestamp.column.name": "changed"}


def test_the_lag_is_the_time_since_the_last_whole_pass(config: dict[str, str]) -> None:
    began = time.monotonic()
    with RunningSource(JdbcSourceConnector, {**config, "mode": "incrementing", "poll.interval.ms": "60000"}) as source:
        (task,) = source.tasks
        assert task.source_lag().seconds is None
        source.poll()
        assert task.source_lag().seconds is None, "the first pass has more rows"
        assert len(source.read(3, seconds=10)) == 3
        source.poll()  # the end of the pass
        before = time.monotonic()
        seconds = task.source_lag().seconds
        assert seconds is not None
        assert seconds <= time.monotonic() - began
        later = task.source_lag().seconds
        assert later is not None
        assert seconds <= later <= seconds + time.monotonic() - before, "the rows that follow have not been read"


def test_within_a_pass_the_lag_is_the_age_of_the_newest_row_by_the_databases_clock(tmp_path: Path) -> None:
    now = datetime.now(timezone.utc).replace(tzinfo=None)
    with sqlite3.connect(tmp_path / "orders.db") as connection:
        connection.execute("create table orders (id integer primary key, changed timestamp not null)")
        rows = [str(now - timedelta(hours=hours)) for hours in (5, 4, 3, 2)]
        connection.executemany("insert into orders (changed) values (?)", [(each,) for each in rows])
    config = {
        "connection.url": f"jdbc:sqlite:{tmp_path / 'orders.db'}",
        "topic.prefix": "db-",
        "mode": "timestamp",
        "timestamp.column.name": "changed",
        "batch.max.rows": "2",
    }
    with RunningSource(JdbcSourceConnector, config) as source:
        (task,) = source.tasks
        assert len(source.poll()) == 2
        seconds = task.source_lag().seconds
        assert seconds is not None
        passed = (datetime.now(timezone.utc).replace(tzinfo=None) - now).total_seconds()
        assert 4 * 3600 - 1 <= seconds <= 4 * 3600 + passed + 1, "to a second"
        assert len(source.read(2, seconds=10)) == 2
        source.poll()
        caught_up = task.source_lag().seconds
        assert caught_up is not None
        assert caught_up < 60


@pytest.mark.parametrize("mode", [{"mode": "incrementing"}, {"mode": "timestamp", "timestamp.column.name": "changed"}])
def test_a_last_batch_that_was_read_but_not_returned_is_read_again(
    config: dict[str, str], mode: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(_connection: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    with RunningSource(JdbcSourceConnector, {**config, **mode}) as source:
        (task,) = source.tasks
        assert [record.value["id"] for _ in range(2) for record in source.call(task.poll) or ()] == [1, 2, 3, 4]
        with monkeypatch.context() as patch:
            patch.setattr(table_reader, "end_transaction", lost)
            with pytest.raises(ConnectError, match="disk I/O error"):
                source.call(task.poll)
        assert [record.value["id"] for record in source.call(task.poll) or ()] == [5]
