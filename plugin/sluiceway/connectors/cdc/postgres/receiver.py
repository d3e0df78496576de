"""Receives the log of a slot in a thread, into a bounded queue, and tells the server what is stored."""

from __future__ import annotations

import os
import select
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from sluiceway.connectors.cdc.postgres.config import PostgresConfig
from sluiceway.connectors.cdc.postgres.connection import connect_replication, execute_replication, lsn_text, quoted
from sluiceway.connectors.cdc.postgres.pgoutput import POSTGRES_EPOCH_MICROS
from sluiceway.errors import ConnectError, RetriableError

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn

_DATA, _KEEPALIVE = 0x77, 0x6B  # w, k
_LSN = struct.Struct(">q")
_KEEPALIVE_HEAD = struct.Struct(">xqq?")
_STATUS = struct.Struct(">cqqqqB")
_DATA_BEGIN = 25  # of the message, behind its head
_MESSAGES_AT_ONCE, _BYTES_AT_ONCE = 256, 1 << 20

_ACKNOWLEDGE_SECONDS = 1.0  # the server answers each status with a keepalive while others write
_REPLY_SECONDS = 0.05  # a server that shuts down asks again after each answer
_SILENCE_SECONDS = 60.0
_ANSWERS_ALWAYS = 150_000  # before version 15, a server that skips a large transaction sends nothing and answers nothing
_BUSY = ("is active for PID", "already active")


class LogConnectionError(RetriableError):
    """The replication connection was lost; another one may go on."""


class SlotBusyError(RetriableError):
    """Another connection reads the slot: another connector, or one whose end the server has not noticed yet."""


class Received(NamedTuple):
    """A message of the log. ``keepalive`` messages have no data; everything before their ``lsn`` has been sent.

    ``urgent``: the server wants to know what is stored. One that shuts down waits until everything is.
    """

    lsn: int
    data: bytes
    urgent: bool = False

    @property
    def keepalive(self) -> bool:
        return not self.data


class Receiver:
    """Receives a slot's messages. The queue is bounded by ``max.queue.size`` and ``max.queue.size.in.bytes``.

    A transaction arrives when it is committed, and its messages are passed on as they come: none is held back, however large
    the transaction is. ``wake`` is called when messages arrive.
    """

    def __init__(self, config: PostgresConfig, start_lsn: int, server_version: int, wake: Callable[[], None]) -> None:
        self._config = config
        self._wake = wake
        self._queue: deque[Received] = deque()
        self._bytes = 0
        self._space = threading.Condition()
        self._start_lsn = start_lsn
        self._acknowledged = self._reported = 0
        self._silence = _SILENCE_SECONDS if server_version >= _ANSWERS_ALWAYS else float("inf")
        self._stopping = False
        self._error: BaseException | None = None
        self._connection = connect_replication(config.address)
        try:
            self._start(start_lsn, server_version)
        except BaseException:
            self._connection.finish()
            raise
        self._pipe = os.pipe()
        self._thread = threading.Thread(target=self._run, name=f"receiver-{config.slot}", daemon=True)
        self._thread.start()

    def take(self, most: int, most_bytes: int) -> list[Received]:
        """Return the next messages without waiting: at most so many and so large, but one if there is one.

        Raises LogConnectionError if the connection has ended, after all messages before that.
        """
        found: list[Received] = []
        size = 0
        with self._space:
            while self._queue and len(found) < most and (not found or size + len(self._queue[0].data) <= most_bytes):
                found.append(self._queue.popleft())
                size += len(found[-1].data)
            self._bytes -= size
            self._space.notify()
            if not found and self._error is not None:
                text = f"The replication connection of slot {self._config.slot} ended: {self._error}"
                raise LogConnectionError(text) from self._error
        return found

    def acknowledge(self, lsn: int) -> None:
        """Report a position to the server within a second: everything before it is stored."""
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
        check_parameters(parameters)
        listed = ", ".join(f"{quoted(name)} '{value}'" for name, value in parameters.items())
        command = f"START_REPLICATION SLOT {quoted(self._config.slot)} LOGICAL {lsn_text(lsn)} ({listed})"
        try:
            execute_replication(self._connection, command)
        except ConnectError as error:
            if any(text in str(error) for text in _BUSY):
                raise SlotBusyError(
                    f"Slot {self._config.slot} is read by another connection, maybe by one of a killed task that the server "
                    f"has not "
                    f"given up yet (wal_sender_timeout). Two connectors must not have the same slot.name. {error}"
                ) from error
            raise

    def _run(self) -> None:
        try:
            self._receive()
        except BaseException as error:  # noqa: BLE001 (the task's thread raises it)
            self._error = error
        self._wake()

    def _receive(self) -> None:
        connection = self._connection
        reported = heard = time.monotonic()
        reply_at = float("inf")
        self._report()
        while not self._stopping:
            now = time.monotonic()
            pending = self._acknowledged > self._reported
            due = min(reply_at, reported + (_ACKNOWLEDGE_SECONDS if pending else self._config.status_interval))
            if now >= due:
                self._report(wants_reply=now - heard > self._config.status_interval)
                reported, reply_at = now, float("inf")
                continue
            messages, ended = available_messages(connection)
            if messages:
                if any(message.urgent for message in messages):
                    reply_at = min(reply_at, now + _REPLY_SECONDS)
                self._put(messages)
                heard = time.monotonic()  # afterwards, because a full queue may have made it wait
            if ended:
                raise ConnectError(connection.error_message.decode("utf-8", "replace").strip() or "the server ended it")
            if not messages:
                self._wait(due - now, now - heard)
        if self._acknowledged > self._reported:
            self._report()

    def _wait(self, seconds: float, silent: float) -> None:
        """Wait for input, or something to report. Raises ConnectError after a silence that was too long."""
        connection = self._connection
        ready, _, _ = select.select([connection.socket, self._pipe[0]], [], [], seconds)
        if self._pipe[0] in ready:
            os.read(self._pipe[0], 4096)
        if connection.socket in ready:
            connection.consume_input()
        elif silent > self._silence:
            raise ConnectError(f"the server has sent nothing for {self._silence:g} s")

    def _put(self, messages: Sequence[Received]) -> None:
        with self._space:
            if messages[0].keepalive and self._queue and self._queue[-1].keepalive:
                self._queue.pop()  # only the newest position counts
            while self._full() and not self._stopping:
                self._space.wait(self._config.status_interval)
                if self._full():
                    self._report()
            was_empty = not self._queue
            self._queue += messages
            self._bytes += sum([len(message.data) for message in messages])
        if was_empty:
            self._wake()

    def _full(self) -> bool:
        common = self._config.common
        return len(self._queue) >= common.queue_size or (bool(self._queue) and self._bytes >= common.queue_bytes)

    def _report(self, *, wants_reply: bool = False) -> None:
        """Send the acknowledged position, which also keeps the connection alive."""
        clock = time.time_ns() // 1000 - POSTGRES_EPOCH_MICROS
        acknowledged = self._acknowledged
        status = _STATUS.pack(b"r", max(self._start_lsn, acknowledged), acknowledged, acknowledged, clock, wants_reply)
        self._connection.put_copy_data(status)
        self._connection.flush()
        self._reported = acknowledged


def available_messages(connection: PGconn) -> tuple[list[Received], bool]:
    """Return the next messages that have arrived, some hundred at most, and whether the server has ended the log."""
    found: list[Received] = []
    left = _BYTES_AT_ONCE
    while len(found) < _MESSAGES_AT_ONCE and left > 0:
        length, content = connection.get_copy_data(1)
        if length <= 0 or content is None:
            return found, length < 0
        data = memoryview(content)
        if data[0] == _DATA:
            found.append(Received(_LSN.unpack_from(data, 1)[0], bytes(data[_DATA_BEGIN:])))
            left -= length
        elif data[0] == _KEEPALIVE:
            end, _clock, reply = _KEEPALIVE_HEAD.unpack_from(data)
            if found and found[-1].keepalive:
                reply |= found.pop().urgent
            found.append(Received(end, b"", bool(reply)))
    return found, False


def check_parameters(parameters: dict[str, str]) -> None:
    """Raise ConnectError for parameters of the output plugin that change the form of its messages."""
    forms = {"proto_version": ("1",), "streaming": ("off", "false"), "binary": ("off", "false"), "two_phase": ("off", "false")}
    for name, allowed in forms.items():
        if name in parameters and parameters[name].lower() not in allowed:
            raise ConnectError(
                f"slot.stream.params: {name}={parameters[name]} is not supported. Large transactions need no streaming: the "
                f"server keeps "
                "them until they are committed, and the connector passes them on as they arrive. Remove it."
            )
