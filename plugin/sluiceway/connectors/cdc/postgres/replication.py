"""Manages the slot and the publication, and receives the log in a thread."""

from __future__ import annotations

import logging
import os
import select
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.postgres.config import PostgresConfig
from sluiceway.connectors.cdc.postgres.connection import (
    connect_replication,
    execute_replication,
    lsn_number,
    lsn_text,
    quoted,
)
from sluiceway.connectors.cdc.postgres.pgoutput import POSTGRES_EPOCH_MICROS
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    import psycopg
    from psycopg.pq.abc import PGconn

    Connection = psycopg.Connection[tuple[Any, ...]]

log = logging.getLogger(__name__)

_DATA, _KEEPALIVE = 0x77, 0x6B  # w, k
_DATA_HEAD = struct.Struct(">xqqq")
_KEEPALIVE_HEAD = struct.Struct(">xqq?")
_STATUS = struct.Struct(">cqqqqB")


class Slot(NamedTuple):
    """A replication slot; positions are None if the slot has none yet."""

    active: bool
    restart_lsn: int | None
    confirmed_lsn: int | None
    lost: bool


class CreatedSlot(NamedTuple):
    consistent_lsn: int
    snapshot: str | None


class Received(NamedTuple):
    """A message of the log. ``keepalive`` messages have no data; ``lsn`` is then the end of the log."""

    lsn: int
    data: bytes

    @property
    def keepalive(self) -> bool:
        return not self.data


def find_slot(connection: Connection, name: str) -> Slot | None:
    """Return the slot of that name, or None."""
    query = (
        "select active, restart_lsn::text, confirmed_flush_lsn::text, wal_status = 'lost' "
        "from pg_replication_slots where slot_name = %s"
    )
    row = connection.execute(query, (name,)).fetchone()
    if row is None:
        return None
    active, restart, confirmed, lost = row
    return Slot(active, restart and lsn_number(restart), confirmed and lsn_number(confirmed), bool(lost))


def create_slot(connection: PGconn, name: str, *, temporary: bool = False, failover: bool = False) -> CreatedSlot:
    """Create a slot. Its snapshot lasts until the connection's next command."""
    options = " (FAILOVER true)" if failover else ""
    kind = "TEMPORARY " if temporary else ""
    [row] = execute_replication(connection, f"CREATE_REPLICATION_SLOT {quoted(name)} {kind}LOGICAL pgoutput{options}")
    return CreatedSlot(lsn_number(row[1] or "0/0"), row[2])


def ensure_publication(connection: Connection, config: PostgresConfig, tables: Sequence[TableId]) -> None:
    """Create the publication as ``publication.autocreate.mode`` says. Raises ConnectError if it must exist but does not."""
    name = config.publication
    exists = connection.execute("select 1 from pg_publication where pubname = %s", (name,)).fetchone() is not None
    if exists and config.autocreate != "filtered":
        return
    if config.autocreate == "disabled":
        raise ConnectError("Publication autocreation is disabled, please create one and restart the connector.")
    listed = ", ".join(quoted(*table) for table in tables)
    if config.autocreate == "filtered" and not listed:
        raise ConnectError(f"No table filters found for filtered publication {name}")
    if exists:
        connection.execute(f"ALTER PUBLICATION {quoted(name)} SET TABLE {listed}")
        return
    what = {"all_tables": " FOR ALL TABLES", "filtered": f" FOR TABLE {listed}"}.get(config.autocreate, "")
    options = " WITH (publish_via_partition_root = true)" if config.via_root else ""
    log.info("Creating publication %s%s", name, what)
    connection.execute(f"CREATE PUBLICATION {quoted(name)}{what}{options}")


class Receiver:
    """Receives the log of a slot in a thread, into a queue that is bounded by messages and bytes.

    ``acknowledge`` sets the position behind which the server may drop the log. ``wake`` is called when messages arrive.
    """

    def __init__(self, config: PostgresConfig, start_lsn: int, server_version: int, wake: Callable[[], None]) -> None:
        self._config = config
        self._wake = wake
        self._queue: deque[Received] = deque()
        self._bytes = 0
        self._space = threading.Condition()
        self._acknowledged = 0
        self._received = start_lsn
        self._stopping = False
        self._error: BaseException | None = None
        self._connection = connect_replication(config.address)
        self._pipe = os.pipe()
        try:
            self._start(start_lsn, server_version)
        except BaseException:
            self._connection.finish()
            raise
        self._thread = threading.Thread(target=self._run, name=f"receiver-{config.slot}", daemon=True)
        self._thread.start()

    def take(self, most: int) -> list[Received]:
        """Return the next messages, at most so many, without waiting. Raises the error that ended the connection."""
        with self._space:
            found = [self._queue.popleft() for _ in range(min(most, len(self._queue)))]
            self._bytes -= sum(len(each.data) for each in found)
            self._space.notify()
            if not found and self._error is not None:
                raise ConnectError(
                    f"The replication connection of slot {self._config.slot} ended: {self._error}"
                ) from self._error
        return found

    def acknowledge(self, lsn: int) -> None:
        """Report a position to the server soon: everything before it is stored."""
        if lsn > self._acknowledged:
            self._acknowledged = lsn
            os.write(self._pipe[1], b"a")

    def close(self) -> None:
        """End the thread and the connection."""
        self._stopping = True
        with self._space:
            self._space.notify()
        os.write(self._pipe[1], b"s")
        self._thread.join(10)
        self._connection.finish()
        for end in self._pipe:
            os.close(end)

    def _start(self, lsn: int, server_version: int) -> None:
        parameters = {"proto_version": "1", "publication_names": quoted(self._config.publication)}
        if server_version >= 140000:
            parameters["messages"] = "true"
        parameters.update(self._config.stream_parameters)
        listed = ", ".join(f"{quoted(name)} '{value}'" for name, value in parameters.items())
        command = f"START_REPLICATION SLOT {quoted(self._config.slot)} LOGICAL {lsn_text(lsn)} ({listed})"
        execute_replication(self._connection, command)

    def _run(self) -> None:
        try:
            self._receive()
        except BaseException as error:  # noqa: BLE001 (the task's thread raises it)
            self._error = error
        self._wake()

    def _receive(self) -> None:
        connection, due = self._connection, time.monotonic()
        while not self._stopping:
            if time.monotonic() >= due:
                self._report()
                due = time.monotonic() + self._config.status_interval
            length, data = connection.get_copy_data(1)
            if length > 0:
                if self._handle(bytes(data or b"")):
                    due = 0.0
                continue
            if length < 0:
                raise ConnectError(connection.error_message.decode("utf-8", "replace").strip() or "the server ended it")
            ready, _, _ = select.select([connection.socket, self._pipe[0]], [], [], max(0.0, due - time.monotonic()))
            if self._pipe[0] in ready:
                os.read(self._pipe[0], 4096)
                due = 0.0
            if connection.socket in ready:
                connection.consume_input()

    def _handle(self, data: bytes) -> bool:
        """Put a message into the queue; return True if the server wants a reply."""
        if data[0] == _DATA:
            lsn, _end, _clock = _DATA_HEAD.unpack_from(data)
            self._put(Received(lsn, data[25:]))
        elif data[0] == _KEEPALIVE:
            end, _clock, reply = _KEEPALIVE_HEAD.unpack_from(data)
            self._put(Received(end, b""))
            return bool(reply)
        return False

    def _put(self, message: Received) -> None:
        with self._space:
            while self._full() and not self._stopping:
                self._space.wait(self._config.status_interval)
                if self._full():
                    self._report()
            self._queue.append(message)
            self._bytes += len(message.data)
            first = len(self._queue) == 1
        if first:
            self._wake()

    def _full(self) -> bool:
        common = self._config.common
        return len(self._queue) >= common.queue_size or (bool(self._queue) and self._bytes >= common.queue_bytes)

    def _report(self) -> None:
        """Send the acknowledged position, which also keeps the connection alive."""
        clock = time.time_ns() // 1000 - POSTGRES_EPOCH_MICROS
        acknowledged = self._acknowledged
        self._connection.put_copy_data(
            _STATUS.pack(b"r", max(self._received, acknowledged), acknowledged, acknowledged, clock, 0)
        )
        self._connection.flush()
