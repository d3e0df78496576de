"""A TCP server as a sink's target, which a test can make unavailable."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from types import TracebackType

from sluiceway.connectors.verifiable.numbering import NumberedRecord
from sluiceway.stack.ports import free_port

_HOST = "127.0.0.1"
TAKEN = b"taken\n"


class Target:
    """Accepts batches of numbered records atomically and acknowledges them. Use it as a context manager.

    A batch is a line of JSON: a list of ``[task, seqno, topic, partition]``.
    """

    def __init__(self) -> None:
        self.port = free_port()
        self.rows: list[NumberedRecord] = []
        self._lock = threading.Lock()  # so that every accepted batch is acknowledged before the target becomes unavailable
        self._connections: set[socket.socket] = set()
        self._away = True

    def up(self) -> None:
        """Listen on the same port as before."""
        self._away = False
        self._server = socket.create_server((_HOST, self.port))
        threading.Thread(target=self._accept, args=(self._server,), name="target", daemon=True).start()

    def down(self) -> None:
        """Reset all connections and refuse new ones; accepted batches are kept."""
        with self._lock:
            self._away = True
            for each in (self._server, *self._connections):
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)  # wakes the accepting thread
                each.close()
            self._connections.clear()

    def __enter__(self) -> Target:
        self.up()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.down()

    def _accept(self, server: socket.socket) -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with self._lock:
                if self._away:
                    connection.close()
                    return
                self._connections.add(connection)
            threading.Thread(target=self._serve, args=(connection,), name="target", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError), connection.makefile("rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    return
                batch = [NumberedRecord(task, seqno, (topic, partition)) for task, seqno, topic, partition in json.loads(line)]
                with self._lock:
                    if self._away:
                        return
                    self.rows += batch
                    connection.sendall(TAKEN)
