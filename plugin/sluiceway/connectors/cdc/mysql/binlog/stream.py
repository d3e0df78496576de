"""Receives binary log events from a server: registers as a replica and reads packets of the dump.

A server sends the events of its log one packet each (MySQL's client/server protocol, COM_BINLOG_DUMP). The connection is
PyMySQL's, for its authentication and TLS; after the dump command its socket is read directly.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sluiceway.connectors.cdc.mysql.binlog.gtids import MySqlGtidSet
from sluiceway.errors import ConnectError

_COM_BINLOG_DUMP = 0x12
_COM_REGISTER_SLAVE = 0x15
_COM_BINLOG_DUMP_GTID = 0x1E

_SEND_ANNOTATIONS = 2
_FIRST_POSITION = 4
_LONGEST_PACKET = 0xFFFFFF
_OK, _ERROR, _END = 0x00, 0xFF, 0xFE
_HEARTBEATS_PER_TIMEOUT = 3


class LogEndedError(ConnectError):
    """The dump ended, for example because the server shuts down; another one may go on."""


class ServerError(ConnectError):
    """The server refused the dump or aborted it, with its error code; 0 for a connection that was lost."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class StartPosition:
    """The start: after the transactions of ``gtids`` if that is set, else at the position in the file."""

    file: str
    position: int
    gtids: str | None = None


class BinlogStream:
    """The dump of one server. One thread iterates over the packets; any thread may close it, which ends the iteration.

    Args:
        connection: an open connection of PyMySQL, which the stream owns from now on; it uses private methods, so it has no type.
        server_id: the id as a replica, unique among all replicas of the server.
        mariadb: whether the server is MariaDB, whose GTIDs and dump flags differ from MySQL's.
        annotations: whether MariaDB sends the statements of row events; they count as events of their transaction.
        timeout: seconds without any packet after which the connection counts as lost.
        heartbeat: seconds without events after which the server sends a heartbeat; by default a third of ``timeout``.
    """

    def __init__(
        self,
        connection: Any,
        server_id: int,
        *,
        mariadb: bool,
        annotations: bool = False,
        timeout: float = 30.0,
        heartbeat: float | None = None,
    ) -> None:
        self._connection = connection
        self._server_id = server_id
        self._mariadb = mariadb
        self._flags = _SEND_ANNOTATIONS if annotations and mariadb else 0
        self._timeout = timeout
        self._heartbeat = timeout / _HEARTBEATS_PER_TIMEOUT if heartbeat is None else heartbeat
        self._closed = False

    def start(self, position: StartPosition) -> None:
        """Request the events from ``position`` on.

        Raises:
            ServerError: the server refuses.
        """
        import pymysql

        try:
            self._request(position)
        except pymysql.err.MySQLError as error:
            code = error.args[0] if error.args else 0
            raise ServerError(code if isinstance(code, int) else 0, ": ".join(map(str, error.args[1:]))) from error

    def _request(self, position: StartPosition) -> None:
        connection = self._connection
        with connection.cursor() as cursor:
            cursor.execute(
                "SET @master_binlog_checksum = @@global.binlog_checksum, @source_binlog_checksum = @@global.binlog_checksum"
            )
            period = int(self._heartbeat * 1_000_000_000)
            cursor.execute(f"SET @master_heartbeat_period = {period}, @source_heartbeat_period = {period}")
            with contextlib.suppress(Exception):  # some hosted servers refuse it; then a slow consumer may lose its connection
                cursor.execute("SET SESSION net_write_timeout = 600")
            if self._mariadb:
                self._start_mariadb(cursor, position)
        connection._execute_command(_COM_REGISTER_SLAVE, struct.pack("<IBBBHII", self._server_id, 0, 0, 0, 0, 0, 0))
        connection._read_packet()
        command, payload = self._dump_command(position)
        connection._execute_command(command, payload)
        assert connection._sock is not None  # noqa: S101 (the command was just sent on it)
        connection._sock.settimeout(self._timeout)

    def _start_mariadb(self, cursor: Any, position: StartPosition) -> None:
        # Capability 4: the server sends MariaDB's own events (GTID, compressed rows) instead of dummies.
        cursor.execute("SET @mariadb_slave_capability = 4")
        if position.gtids is not None:
            cursor.execute("SET @slave_connect_state = %s", (position.gtids,))
            cursor.execute("SET @slave_gtid_strict_mode = 0, @slave_gtid_ignore_duplicates = 0")

    def _dump_command(self, position: StartPosition) -> tuple[int, bytes]:
        file = position.file.encode()
        if position.gtids is None:
            head = struct.pack("<IHI", position.position, self._flags, self._server_id)
            return _COM_BINLOG_DUMP, head + file
        if self._mariadb:
            return _COM_BINLOG_DUMP, struct.pack("<IHI", _FIRST_POSITION, self._flags, self._server_id)
        gtids = MySqlGtidSet.parse(position.gtids).encoded()
        head = struct.pack("<HII", 0, self._server_id, 0)
        return _COM_BINLOG_DUMP_GTID, head + struct.pack("<QI", _FIRST_POSITION, len(gtids)) + gtids

    def packets(self) -> Iterator[memoryview]:
        """Return the events as they arrive, each with its header and checksum; ends when the stream is closed.

        Raises:
            ServerError: the server aborts the dump.
            LogEndedError: the server ends it, or the connection is lost.
        """
        read = self._connection._rfile.read
        while True:
            try:
                packet = self._packet(read)
            except (OSError, ValueError, AttributeError) as error:  # ValueError and AttributeError: closed by another thread
                if self._closed:
                    return
                raise LogEndedError(f"The connection to the server's binary log is lost: {error}") from error
            status = packet[0] if packet else _END
            if status == _OK:
                yield packet[1:]
            elif self._closed:
                return
            elif status == _ERROR:
                raise _server_error(bytes(packet))
            else:
                raise LogEndedError("The server ended the dump of its binary log; it may be shutting down.")

    def is_idle(self) -> bool:
        """Whether no packet has arrived behind the last one, as far as the socket tells."""
        try:
            ready, _, _ = select.select([self._connection._sock], [], [], 0)
        except (OSError, ValueError, TypeError):  # closed by another thread
            return True
        return not ready

    def _packet(self, read: Any) -> memoryview:
        header = read(4)
        if len(header) < 4:
            raise ConnectionResetError("closed by the server")
        length = int.from_bytes(header[:3], "little")
        body = read(length)
        if len(body) < length:
            raise ConnectionResetError("closed by the server")
        if length < _LONGEST_PACKET:
            return memoryview(body)
        parts = [body]
        while length == _LONGEST_PACKET:
            header = read(4)
            length = int.from_bytes(header[:3], "little")
            parts.append(read(length))
            if len(header) < 4 or len(parts[-1]) < length:
                raise ConnectionResetError("closed by the server")
        return memoryview(b"".join(parts))

    def close(self) -> None:
        """Close the connection. Thread-safe; ends a read in another thread at once."""
        self._closed = True
        sock = getattr(self._connection, "_sock", None)
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            with contextlib.suppress(OSError):
                sock.close()


def _server_error(packet: bytes) -> ServerError:
    code = int.from_bytes(packet[1:3], "little")
    message = packet[3:].decode("utf-8", "replace")
    return ServerError(code, message[6:] if message.startswith("#") else message)
