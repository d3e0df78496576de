"""Signals, and the rows of incremental snapshots between the log's records."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.envelope import source_schema
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.incremental_offsets import INITIAL_SIGNAL, OWN_SIGNALS, Request
from sluiceway.connectors.cdc.notifications import Notifications
from sluiceway.connectors.cdc.postgres.config import postgres_config
from sluiceway.connectors.cdc.signals import BLOCKING, SignalProcessor
from sluiceway.data import Struct
from unit.connectors.cdc.test_incremental import CONFIG, TableOfThree

_TABLES = [TableId("public", "t"), TableId("public", "u"), TableId("other", "t")]
_SIGNALS = TableId("public", "signals")


_NOTIFIED = {"notification.enabled.channels": "sink", "notification.sink.topic.name": "notes"}


class _Task:
    """A task's signals."""

    def __init__(self, reader: TableOfThree | None = None, /, **more: str) -> None:
        self.reader = reader or TableOfThree()
        config = postgres_config({**CONFIG, **more}).common
        emitter = Emitter(config, "postgresql")
        self.notifications = Notifications(config, emitter)
        self.processor = SignalProcessor(config, self.reader, emitter, self.notifications, lambda: _TABLES)
        self.processor.load({})

    def signal(self, kind: str, **data: Any) -> None:
        self.processor.inserted(_SIGNALS, ["s1", kind, json.dumps(data)])

    def due(self) -> list[dict[str, Any]]:
        schema = source_schema("s", [])
        block = Struct.of(schema, ["v", "c", "n", 0, None, "d", None, None, None])
        records = self.processor.due(lambda: dict(self.processor.state()), lambda _table: block)
        return [dict(record.source_offset or {}) for record in records]

    def notified(self) -> list[tuple[str, str, str | None]]:
        """Return the signals' ids, the kinds, and the reasons or states of the notifications since the last call."""
        values: list[Any] = [record.value for record in self.notifications.take({})]
        data = [each["additional_data"] for each in values]
        return [
            (value["id"], value["type"], more.get("reason", more.get("status"))) for value, more in zip(values, data, strict=True)
        ]

    def waiting(self) -> list[str]:
        text = self.processor.state().get("incremental_snapshot_collections", "[]")
        return [entry["incremental_snapshot_collections_id"] for entry in json.loads(text)]


def test_patterns_match_captured_tables_entirely() -> None:
    task = _Task()
    task.signal("execute-snapshot", **{"data-collections": [r"public\.[tu]"]})
    assert task.waiting() == ["public.t", "public.u"]
    task.signal("stop-snapshot", **{"data-collections": ["public.t"]})
    assert task.waiting() == ["public.u"]
    task.signal("stop-snapshot")
    assert task.waiting() == []


def test_the_rest_of_an_initial_snapshot_is_not_stopped() -> None:
    task = _Task()
    task.processor.incremental.resume_requests([Request(_TABLES[0], INITIAL_SIGNAL)])
    task.signal("execute-snapshot", **{"data-collections": ["public.u"]})
    task.signal("stop-snapshot")
    assert task.waiting() == ["public.t"]


def test_a_table_that_waits_for_another_signal_is_reported() -> None:
    task = _Task(**_NOTIFIED)
    task.processor.incremental.resume_requests([Request(_TABLES[0], INITIAL_SIGNAL)])
    task.signal("execute-snapshot", **{"data-collections": ["public.t"]})
    assert task.notified()[2:] == [("s1", "TABLE_SCAN_COMPLETED", "SKIPPED"), ("s1", "COMPLETED", None)]


def test_a_signal_that_is_read_again_changes_nothing() -> None:
    task = _Task(**_NOTIFIED)
    for expected in (["STARTED", "DATA_COLLECTIONS_RESOLVED"], []):
        task.signal("execute-snapshot", **{"data-collections": ["public.t", "public.u"]})
        assert [kind for _, kind, _ in task.notified()] == expected
    assert task.waiting() == ["public.t", "public.u"]


def test_a_request_behind_the_rest_of_an_initial_snapshot_is_still_a_signals_after_a_restart() -> None:
    task = _Task(**{"read.only": "true"})
    task.processor.incremental.resume_requests([Request(_TABLES[0], INITIAL_SIGNAL)])
    task.signal("execute-snapshot", **{"data-collections": ["public.u"]})
    again = _Task(_BrokenTable("chunk", ValueError("broken")), **_NOTIFIED, **{"read.only": "true"})
    again.processor.load(task.processor.state())
    assert [each.signal for each in again.processor.incremental._requests] == [INITIAL_SIGNAL, "s1"]


@pytest.mark.parametrize("identifier", sorted(OWN_SIGNALS))
def test_ids_of_snapshots_that_no_signal_has_requested_are_refused(identifier: str) -> None:
    task = _Task(**_NOTIFIED)
    task.processor.inserted(_SIGNALS, [identifier, "execute-snapshot", '{"data-collections": ["public.t"]}'])
    assert [kind for _, kind, _ in task.notified()] == ["SKIPPED"]


def test_conditions_belong_to_their_tables() -> None:
    task = _Task()
    conditions = [
        {"data-collection": "public.u", "filter": "id > 1"},
        {"data-collection": "public.*", "filter": "id > 2"},
        {"data-collection": "public.t", "filter": None},
        {"data-collection": "nothing"},
    ]
    task.signal("execute-snapshot", **{"data-collections": ["public.*"], "type": "BLOCKING", "additional-conditions": conditions})
    assert task.processor.blocking == [("s1", _TABLES[:2], {"public.u": "id > 1", "public.t": "id > 2"})]


def test_all_rows_of_a_chunk_but_the_last_have_the_offset_before_it() -> None:
    task = _Task(**{"read.only": "true"})
    task.signal("execute-snapshot", **{"data-collections": ["public.t"]})
    task.processor.poll()
    offsets = task.due()
    keys = [offset["incremental_snapshot_primary_key"] for offset in offsets]
    assert len(keys) == 2
    assert keys[0] == "aced000570"
    assert keys[1] != keys[0]


_REFUSED: dict[str, dict[str, Any]] = {
    "unknown": {},
    "nothing": {"data-collections": ["nothing"]},
    "strange": {"data-collections": ["public.t"], "type": "strange"},
    "number": {"data-collections": 5},
    "wrong pattern": {"data-collections": ["["]},
    "surrogate": {"data-collections": ["public.t"], "surrogate-key": ["id"]},
    "conditions": {"data-collections": ["public.t"], "additional-conditions": 5},
    "condition of earlier versions": {"data-collections": ["public.t"], "additional-condition": "id > 1"},
    "condition without a list": {"data-collections": ["public.t"], "additional-conditions": {"data-collection": "public.t"}},
    "condition without an object": {"data-collections": ["public.t"], "additional-conditions": ["id > 1"]},
    "number as condition": {
        "data-collections": ["public.t"],
        "additional-conditions": [{"data-collection": "public.t", "filter": 5}],
    },
    "condition of no table": {
        "data-collections": ["public.t"],
        "additional-conditions": [{"data-collection": "public.tt", "filter": "id > 1"}],
    },
    "condition of nothing": {"data-collections": ["public.t"], "additional-conditions": [{"filter": "id > 1"}]},
}


@pytest.mark.parametrize("name", _REFUSED)
def test_a_signal_that_cannot_be_executed_is_refused(name: str, caplog: pytest.LogCaptureFixture) -> None:
    task = _Task(**_NOTIFIED)
    task.signal("unknown" if name == "unknown" else "execute-snapshot", **_REFUSED[name])
    assert task.waiting() == []
    assert task.processor.blocking == []
    assert [(signal, kind) for signal, kind, _ in task.notified()] == [("s1", "SKIPPED")]
    assert "Signal s1 is refused" in caplog.text


_LONE_SURROGATE = '{"data-collections": ["public.t", "\\ud800"]}'


@pytest.mark.parametrize("data", ["[" * 100_000, "no json", 5, b"\xff", None, "5", _LONE_SURROGATE])
def test_any_data_of_a_signal_is_survived(data: object) -> None:
    task = _Task()
    task.processor.inserted(_SIGNALS, ["s1", "execute-snapshot", data])
    assert task.waiting() == []


class _BrokenTable(TableOfThree):
    """A table of which one method fails."""

    def __init__(self, method: str, error: Exception) -> None:
        super().__init__()

        def fail(*_arguments: object, **_more: object) -> None:
            raise error

        setattr(self, method, fail)

    def is_transient(self, error: Exception) -> bool:
        return isinstance(error, OSError)


@pytest.mark.parametrize("method", ["maximum", "chunk", "read_only_chunk", "count", "schema", "identity", "insert_mark"])
@pytest.mark.parametrize("read_only", ["true", "false"])
def test_a_request_that_the_database_refuses_ends_with_a_notification(method: str, read_only: str) -> None:
    task = _Task(_BrokenTable(method, ValueError("broken")), **_NOTIFIED, **{"read.only": read_only})
    task.signal("execute-snapshot", **{"data-collections": ["public.t"]})
    task.notified()
    task.processor.poll()
    if (method, read_only) not in (("insert_mark", "true"), ("read_only_chunk", "false")):
        assert task.notified() == [("s1", "TABLE_SCAN_COMPLETED", "SQL_EXCEPTION"), ("s1", "COMPLETED", None)]
        assert task.waiting() == []


@pytest.mark.parametrize("method", ["maximum", "chunk", "has_unique_key"])
def test_a_lost_connection_ends_no_request(method: str) -> None:
    task = _Task(_BrokenTable(method, OSError("lost")), **{"read.only": "true"})

    def run() -> None:
        task.signal("execute-snapshot", **{"data-collections": ["public.t"]})
        task.processor.poll()

    with pytest.raises(OSError, match="lost"):
        run()


def test_an_error_of_a_snapshot_that_no_signal_has_requested_ends_the_task() -> None:
    task = _Task(_BrokenTable("chunk", ValueError("broken")), **{"read.only": "true"})
    task.processor.incremental.resume_requests([Request(_TABLES[0], INITIAL_SIGNAL)])
    with pytest.raises(ValueError, match="broken"):
        task.processor.poll()


def test_a_row_that_cannot_be_a_record_ends_its_table_alone() -> None:
    task = _Task(**_NOTIFIED, **{"read.only": "true"})
    task.reader.wrong_row = True
    task.signal("execute-snapshot", **{"data-collections": ["public.t", "public.u"]})
    task.processor.poll()
    task.notified()
    task.due()
    assert task.waiting() == ["public.u"]


def test_blocking_snapshots_that_have_not_ended_begin_again_after_a_restart() -> None:
    task = _Task(**_NOTIFIED)
    task.signal("execute-snapshot", **{"data-collections": ["public.t"], "type": "blocking"})
    again = _Task(**_NOTIFIED)
    again.processor.load(task.processor.state())
    assert [list(request) for request in again.processor.blocking] == [["s1", [_TABLES[0]], {}]]
    again.processor.blocking_ended(again.processor.blocking[0], ValueError("no such column"))
    assert again.notified() == [("s1", "SKIPPED", "no such column")]
    assert BLOCKING not in again.processor.state()


def test_signals_of_a_file_are_executed_once(tmp_path: Path) -> None:
    file = tmp_path / "signals.txt"
    task = _Task(**{"signal.enabled.channels": "file", "signal.file": str(file), "signal.poll.interval.ms": "0"})
    document = {"id": "s1", "type": "execute-snapshot", "data": {"data-collections": ["public.t"]}}
    file.write_text("no document\n" + json.dumps(document) + "\n")
    task.signal("execute-snapshot", **{"data-collections": ["public.u"]})  # the table is no channel
    task.processor.poll()
    assert task.waiting() == ["public.t"]
    assert file.read_text() == ""


def test_a_table_that_was_not_captured_before_is_read() -> None:
    first = _Task(**{"snapshot.new.tables": "incremental", "table.include.list": "public.t"})
    offset = {**first.processor.state(), "sluiceway_captured_tables": '["public.t","other.t"]'}
    assert first.waiting() == []
    again = _Task(**{"snapshot.new.tables": "incremental"})
    again.processor.load(offset)
    assert again.waiting() == ["public.u"]
    assert json.loads(again.processor.state()["sluiceway_captured_tables"]) == ["other.t", "public.t", "public.u"]


def test_a_table_that_the_log_created_is_not_new() -> None:
    task = _Task(**{"snapshot.new.tables": "incremental"})
    schema = task.reader.schema(TableId("public", "w"))
    assert schema is not None
    task.processor.changed(replace(schema, id=TableId("public", "w")), ("1",))
    assert "public.w" in json.loads(task.processor.state()["sluiceway_captured_tables"])
