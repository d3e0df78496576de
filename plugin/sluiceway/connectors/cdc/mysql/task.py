"""The source tasks of the MariaDB and MySQL connectors: what a reading thread puts into a buffer, and questions to the server."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from sluiceway.api import Offset, SourceTaskContext
from sluiceway.connectors.cdc.catch_up import CatchUp
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.interval import Interval
from sluiceway.connectors.cdc.mysql.buffer import RecordBuffer
from sluiceway.connectors.cdc.mysql.config import source_config
from sluiceway.connectors.cdc.mysql.connection import Server
from sluiceway.connectors.cdc.mysql.log_state import danger_of
from sluiceway.connectors.cdc.mysql.reader import DatabaseReader
from sluiceway.connectors.cdc.signals import requests_differ
from sluiceway.connectors.cdc.task import CdcTask, LogSource, Records
from sluiceway.errors import ConnectError, RetriableError

log = logging.getLogger(__name__)

_IDLE_SECONDS = 30.0
_QUERY_SECONDS = 10.0
_WATCH_SECONDS = 60.0


class BinlogSource(LogSource):
    """Reads one server by a thread of its own.

    Args:
        connector: mariadb or mysql.
    """

    def __init__(self, connector: str, config: Mapping[str, str], context: SourceTaskContext, catch_up: CatchUp) -> None:
        settings = source_config(config)
        super().__init__(settings.common, Emitter(settings.common, connector, context.converters))
        self._connection = settings.connection
        self._buffer = RecordBuffer(self.common.queue_size, self.common.queue_bytes, context.wake)
        self._watch = LogWatch()
        self._idle = Interval(_IDLE_SECONDS)
        self._server: Server | None = None
        stored = context.offset_storage_reader.offset(self.emitter.partition)
        self._reader = DatabaseReader(connector, settings, self.emitter, self._buffer, stored, catch_up)
        self._reader.start()

    @property
    def connected(self) -> bool:
        return self._reader.connected

    def take(self) -> Sequence[Records]:
        records = self._buffer.take(self.common.batch_size)
        trouble = self._buffer.trouble
        if not len(records) and trouble is not None and not self._reader.connected:
            raise RetriableError(trouble)  # so that the task's status shows it
        return [records]

    def offset(self) -> Offset | None:
        return self._buffer.offset

    def idle_offset(self, newest: Offset, *, ended: bool) -> Offset | None:
        offset = self._buffer.offset
        if offset is None or offset == newest:
            return None
        return offset if not newest or ended or self._idle.due() or requests_differ(offset, newest) else None

    def caught_up(self) -> bool:
        return self._reader.caught_up()

    def committed(self, offset: Offset) -> None:
        self._reader.signals.commit(offset)

    def execute(self, statement: str) -> None:
        with self._asked() as server:
            server.execute(statement)

    def tables(self, concerns: Callable[[str], bool]) -> list[TableId]:
        with self._asked() as server:
            return [table for database in filter(concerns, server.databases()) for table in server.tables(database)]

    def watch_log(self) -> None:
        if not self._watch.due() or not self._reader.reached[0]:
            return
        try:
            with self._asked() as server:
                self._watch.check(server, *self._reader.reached)
        except Exception as error:  # noqa: BLE001 (the driver's errors and lost connections)
            log.debug("The state of the binary log is unknown: %s", error)

    def metrics(self) -> Mapping[str, float]:
        return {**self._watch.values, "statements-without-rows": float(self._reader.statements.count)}

    @contextlib.contextmanager
    def _asked(self) -> Iterator[Server]:
        """Give a connection for queries, which ``poll`` waits for; close it after an error."""
        if self._server is None:
            self._server = Server(replace(self._connection, timeout=_QUERY_SECONDS, read_timeout=_QUERY_SECONDS))
        try:
            yield self._server
        except Exception:
            self._close_server()
            raise

    def _close_server(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            with contextlib.suppress(ConnectError):
                server.close()

    def close(self) -> None:
        self._reader.stop()
        self._close_server()


class BinlogSourceTask(CdcTask):
    """Captures one server."""

    connector: ClassVar[str]

    def open(self, config: Mapping[str, str], catch_up: CatchUp) -> LogSource:
        return BinlogSource(self.connector, config, self.context, catch_up)


class MariaDbSourceTask(BinlogSourceTask):
    connector = "mariadb"


class MySqlSourceTask(BinlogSourceTask):
    connector = "mysql"


class LogWatch:
    """The age of what a task has not read. The task's thread checks it; any thread reads ``values``."""

    def __init__(self) -> None:
        self.values: Mapping[str, float] = {}
        self._interval = Interval(_WATCH_SECONDS, at_once=True)

    def due(self) -> bool:
        """Return True at the first call, and then every minute."""
        return self._interval.due()

    def check(self, server: Server, file: str, position: int, seconds: int) -> None:
        """Update the metrics for the position of an event that was read, and log a warning if the log may be purged soon.

        Args:
            seconds: the time of the event, since the epoch.
        """
        state = server.log_state()
        behind = state.behind(file, position)
        age = max(0.0, time.time() - seconds) if behind and seconds else 0.0
        values = {
            "log-retained-bytes": float(sum(size for _, size in state.files)),
            "log-behind-bytes": float(behind),
            "log-age-seconds": age,
        }
        if state.keeps:
            values["log-expires-seconds"] = max(0.0, state.keeps - age)
        self.values = values
        danger = danger_of(age, behind, state)
        if danger is not None:
            log.warning("%s", danger)
