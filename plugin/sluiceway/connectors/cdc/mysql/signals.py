"""Handles signals of the source table, a Kafka topic or a file: ad-hoc snapshots, and messages for the log."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sluiceway.api import SourceRecord
from sluiceway.connectors.cdc.config import CommonConfig
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.filters import TableId, compile_anchored
from sluiceway.connectors.cdc.mysql.binlog.rows import DELETE, INSERT, Row
from sluiceway.connectors.cdc.mysql.catalog import Catalog
from sluiceway.connectors.cdc.mysql.config import SourceConfig
from sluiceway.connectors.cdc.mysql.connection import Server
from sluiceway.connectors.cdc.mysql.ddl.model import TableDefinition, Tables
from sluiceway.connectors.cdc.mysql.incremental import STATE_KEY, Collection, IncrementalSnapshot
from sluiceway.connectors.cdc.mysql.offsets import LogPosition
from sluiceway.java.regex import RegexError
from sluiceway.kafka.clients import Consumer, TopicPartitionOffset, consumer, to_librdkafka
from sluiceway.kafka.errors import mapped_errors

log = logging.getLogger(__name__)

_OPEN, _CLOSE = "snapshot-window-open", "snapshot-window-close"
_KAFKA = "signal.kafka."
_POLL_SECONDS = 0.5
_ANSWER_SECONDS = 30.0

BlockingSnapshot = Callable[[list[TableId]], list[SourceRecord]]


class Signals:
    """The signals of one connector. The reading thread calls ``on_row``; another thread reads the topic and the file."""

    def __init__(self, config: SourceConfig, emitter: Emitter, position: LogPosition, catalog: Catalog, tables: Tables) -> None:
        self._config = config
        self._common: CommonConfig = config.common
        self._tables = tables
        self._lock = threading.RLock()
        self._server: Server | None = None
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []
        self._snapshot = IncrementalSnapshot(config, emitter, position, catalog, tables, self._open_server)
        position.extra = self._offset
        self.blocking: BlockingSnapshot | None = None

    def _offset(self) -> dict[str, Any]:
        state = self._snapshot.state()
        return {} if state is None else {STATE_KEY: state}

    def _open_server(self) -> Server:
        if self._server is None:
            self._server = Server(self._config.connection)
        return self._server

    def start(self, offset: Mapping[str, Any] | None) -> None:
        """Continue an incremental snapshot of the stored offset, and listen to the channels besides the table."""
        if self._threads:
            return
        state = (offset or {}).get(STATE_KEY)
        if state and self._common.signal_table:
            with self._lock:
                self._snapshot.load(str(state))
                self._snapshot.next_chunk()
        if "kafka" in self._common.signal_channels:
            topic, reader = self._open_topic()
            self._start_thread("kafka", lambda: self._read_topic(topic, reader))
        if "file" in self._common.signal_channels:
            self._start_thread("file", self._read_file)

    def _start_thread(self, name: str, read: Callable[[], None]) -> None:
        thread = threading.Thread(target=self._guarded, args=(name, read), name=f"signals-{name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def close(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join(10)
        server, self._server = self._server, None
        if server is not None:
            server.close()

    # -- rows of the log

    def on_row(
        self, table: TableId, operation: str, _definition: TableDefinition, before: Row | None, after: Row | None
    ) -> list[SourceRecord]:
        """Handle a change of any read table; return the records of a closed window."""
        with self._lock:
            if str(table) != self._common.signal_table:
                self._snapshot.changed(table, before, after)
                return []
            if operation == DELETE and before is not None and self._common.delete_watermarks:
                return self._snapshot.closed(str(before[0]))
            if operation != INSERT or after is None or len(after) < 3:
                return []
            identifier, kind, data = (None if value is None else str(value) for value in after[:3])
            if kind == _OPEN:
                self._snapshot.opened(identifier or "")
                return []
            if kind == _CLOSE:
                return self._snapshot.closed(identifier or "")
            if "source" not in self._common.signal_channels:
                return []
            return self.handle(identifier or "", kind or "", data or "")

    # -- signals

    def handle(self, identifier: str, kind: str, data: str) -> list[SourceRecord]:
        """Handle one signal; an unknown type or data that is no JSON is only logged."""
        try:
            document = json.loads(data) if data else {}
        except ValueError:
            document = None
        if not isinstance(document, dict):
            log.warning("Signal '%s' of type '%s' has data that is no JSON object; it is ignored.", identifier, kind)
            return []
        with self._lock:
            if kind == "execute-snapshot":
                return self._execute_snapshot(document)
            self._control(identifier, kind, document)
            return []

    def _control(self, identifier: str, kind: str, document: Mapping[str, Any]) -> None:
        if kind == "log":
            log.info("%s", str(document.get("message", "")).replace("{}", str(self._common.prefix)))
        elif kind == "stop-snapshot":
            names = document.get("data-collections")
            self._snapshot.remove(_matcher(names) if names else lambda _table: True)
        elif kind == "pause-snapshot":
            self._snapshot.paused = True
        elif kind == "resume-snapshot":
            self._snapshot.resume()
        else:
            log.warning("Signal '%s' has the unknown type '%s'; it is ignored.", identifier, kind)

    def _execute_snapshot(self, document: Mapping[str, Any]) -> list[SourceRecord]:
        names = document.get("data-collections")
        if not isinstance(names, list) or not names:
            log.warning("An execute-snapshot signal has no data-collections; it is ignored.")
            return []
        kind = str(document.get("type", "incremental")).lower()
        matches = _matcher(names)
        tables = [table for table in sorted(self._tables.tables) if self._config.captures(table) and matches(table)]
        if kind == "blocking":
            return [] if self.blocking is None else self.blocking(tables)
        if kind != "incremental":
            log.warning("An execute-snapshot signal has the unknown type '%s'; it is ignored.", kind)
            return []
        if not self._common.signal_table:
            log.warning("Incremental snapshots need signal.data.collection; the signal is ignored.")
            return []
        surrogate = document.get("surrogate-key")
        conditions = document.get("additional-conditions") or []
        self._snapshot.add([Collection(table, _condition(conditions, table), surrogate) for table in tables])
        return []

    # -- other channels

    def _guarded(self, name: str, read: Callable[[], None]) -> None:
        try:
            read()
        except Exception:
            log.exception("The %s channel of signals failed. Restart the task to read signals from it again.", name)

    def _open_topic(self) -> tuple[str, Consumer]:
        """Return a consumer at the end of the topic: signals from before the start of the connector are not for this run."""
        config = self._common.config
        topic = config.get(f"{_KAFKA}topic") or f"{self._common.prefix}-signal"
        keys = {
            key.removeprefix("signal.consumer."): value for key, value in config.items() if key.startswith("signal.consumer.")
        }
        defaults = {
            "auto.offset.reset": "latest",
            "group.id": config.get(f"{_KAFKA}groupId") or "kafka-signal",
            "enable.auto.commit": "false",
        }
        servers = {"bootstrap.servers": config.get(f"{_KAFKA}bootstrap.servers", "")}
        reader = consumer(to_librdkafka({**defaults, **keys, **servers}))
        with mapped_errors(f"read the signals of topic '{topic}'"):
            end = reader.get_watermark_offsets(TopicPartitionOffset(topic, 0), timeout=_ANSWER_SECONDS)[1]
        reader.assign([TopicPartitionOffset(topic, 0, end)])
        return topic, reader

    def _read_topic(self, topic: str, reader: Consumer) -> None:
        log.info("Reading signals from topic '%s'.", topic)
        try:
            while not self._stopped.is_set():
                message = reader.poll(_POLL_SECONDS)
                if message is None or message.error() is not None or (message.key() or b"").decode() != self._common.prefix:
                    continue
                self._handle_text((message.value() or b"").decode("utf_8", "replace"))
        finally:
            reader.close()

    def _read_file(self) -> None:
        """Handle the lines of the file, and empty it."""
        path = Path(self._common.config.get("signal.file") or "file-signals.txt")
        while not self._stopped.wait(_POLL_SECONDS):
            try:
                lines = path.read_text().splitlines()
            except OSError:
                continue
            if lines:
                path.write_text("")
            for line in filter(None, map(str.strip, lines)):
                self._handle_text(line)

    def _handle_text(self, text: str) -> None:
        try:
            signal = json.loads(text)
        except ValueError:
            log.warning("A signal is no JSON document; it is ignored: %.200s", text)
            return
        if isinstance(signal, dict):
            data = signal.get("data")
            self.handle(
                str(signal.get("id", "")), str(signal.get("type", "")), data if isinstance(data, str) else json.dumps(data or {})
            )


def _matcher(names: object) -> Callable[[TableId], bool]:
    """Return a function that tells whether a table matches any of the patterns entirely."""
    patterns = []
    for name in names if isinstance(names, list) else [names]:
        try:
            patterns.append(compile_anchored(str(name).replace('"', "")))
        except RegexError:
            log.warning("The data-collection '%s' of a signal is no regular expression; it is ignored.", name)
    return lambda table: any(pattern.matches(str(table)) for pattern in patterns)


def _condition(conditions: object, table: TableId) -> str | None:
    """Return the filter of the first additional condition that matches a table."""
    for condition in conditions if isinstance(conditions, list) else []:
        if isinstance(condition, dict) and _matcher(condition.get("data-collection"))(table):
            return str(condition.get("filter", "")) or None
    return None
