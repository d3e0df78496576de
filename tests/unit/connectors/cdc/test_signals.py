"""Signals, and the rows of incremental snapshots between the log's records."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.envelope import source_schema
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.notifications import Notifications
from sluiceway.connectors.cdc.postgres.config import postgres_config
from sluiceway.connectors.cdc.signals import SignalProcessor
from sluiceway.data import Struct
from unit.connectors.cdc.test_incremental import CONFIG, TableOfThree

_TABLES = [TableId("public", "t"), TableId("public", "u"), TableId("other", "t")]
_SIGNALS = TableId("public", "signals")


class _Task:
    """A task's signals, and the blocking snapshots that were wanted."""

    def __init__(self, **more: str) -> None:
        self.reader = TableOfThree()
        self.blocking: list[tuple[Sequence[TableId], Mapping[str, str]]] = []
        config = postgres_config({**CONFIG, **more}).common
        emitter = Emitter(config, "postgresql")
        self.processor = SignalProcessor(
            config,
            self.reader,
            emitter,
            Notifications(config, emitter),
            lambda: _TABLES,
            lambda *wanted: self.blocking.append(wanted),
        )
        self.processor.load({})

    def signal(self, kind: str, **data: Any) -> None:
        self.processor.inserted(_SIGNALS, ["s1", kind, json.dumps(data)])

    def due(self) -> list[dict[str, Any]]:
        schema = source_schema("s", [])
        block = Struct.of(schema, ["v", "c", "n", 0, None, "d", None, None, None])
        records = self.processor.due(lambda: dict(self.processor.state()), lambda _table: block)
        return [dict(record.source_offset or {}) for record in records]

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


def test_conditions_belong_to_their_tables() -> None:
    task = _Task()
    conditions = [{"data-collection": "public.u", "filter": "id > 1"}, {"data-collection": "public.*", "filter": "id > 2"}]
    task.signal("execute-snapshot", **{"data-collections": ["public.*"], "type": "BLOCKING", "additional-conditions": conditions})
    assert task.blocking == [(_TABLES[:2], {"public.u": "id > 1", "public.t": "id > 2"})]


def test_all_rows_of_a_chunk_but_the_last_have_the_offset_before_it() -> None:
    task = _Task(**{"read.only": "true"})
    task.signal("execute-snapshot", **{"data-collections": ["public.t"]})
    task.processor.poll()
    offsets = task.due()
    keys = [offset["incremental_snapshot_primary_key"] for offset in offsets]
    assert len(keys) == 2
    assert keys[0] == "aced000570"
    assert keys[1] != keys[0]


def test_an_unknown_signal_is_ignored() -> None:
    task = _Task()
    task.signal("unknown")
    task.signal("execute-snapshot", **{"data-collections": ["nothing"]})
    task.signal("execute-snapshot", **{"data-collections": ["public.t"], "type": "strange"})
    assert task.waiting() == []
    assert task.blocking == []


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
