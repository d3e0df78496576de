"""Starts a NATS server with JetStream for tests: the machine's, else that of its Debian or Ubuntu. Streams outlive its end."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from sluiceway.connectors.nats.connection import Server
from sluiceway.connectors.nats.session import Session
from sluiceway.stack.ports import free_port
from sluiceway.stack.process import BackgroundProcess
from support.database import HOST
from support.database_server import LocalServer
from support.debian_packages import unpacked_package
from support.eventually import LIMIT, eventually

PROGRAM = "SLUICEWAY_TEST_NATS_SERVER"
"""The environment variable with the path of another server to test with."""
_SETTINGS = """
listen: "{host}:{port}"
max_payload: 1MB
jetstream {{ store_dir: "{folder}/data" }}
{more}
"""


class NatsServer(LocalServer):
    """A server with its data in a temporary folder. ``more`` is of its configuration, such as an authorization block."""

    name = "nats"

    def __init__(self, more: str = "", **login: Any) -> None:
        """Prepare a server. ``login`` is that of the tests, by the names of ``Server``'s fields."""
        super().__init__()
        self.port = free_port(HOST)
        self.url = f"nats://{HOST}:{self.port}"
        self._login = login
        (self.folder / "settings").write_text(_SETTINGS.format(host=HOST, port=self.port, folder=self.folder, more=more))
        command = [str(_program()), "-c", str(self.folder / "settings")]
        self._process = BackgroundProcess(self.name, command, self.folder)

    def start(self) -> None:
        """Start the server unless it runs, and wait until it answers."""
        self._process.start()
        self._process.wait_until(self._answers, LIMIT)

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End the server with a signal. ``start`` starts it again on the same port, with what it has on its disk."""
        self.send(number)
        eventually(lambda: not self._process.is_running(), what="the end of NATS")

    def send(self, number: signal.Signals) -> None:
        """Send a signal, such as SIGSTOP."""
        pid = self._process.status().pid
        assert pid is not None, "NATS does not run"
        os.kill(pid, number)

    @property
    def config(self) -> dict[str, str]:
        """The connection keys of a connector's config."""
        return {"nats.servers": self.url}

    def connect(self) -> Session:
        """Return a session. Closed by the caller."""
        return Session(Server((self.url,), **self._login), self.url, "test")

    def request(self, subject: str, body: Any = None) -> dict[str, Any]:
        with closing(self.connect()) as session:
            return session.request(subject, body)

    def create(self, stream: str, *subjects: str, **config: Any) -> None:
        """Create a stream; by default, of the subjects below its name."""
        given = {"name": stream, "subjects": list(subjects or (stream, f"{stream}.>")), "storage": "file", **config}
        self.request(f"STREAM.CREATE.{stream}", given)

    def delete(self, stream: str) -> None:
        self.request(f"STREAM.DELETE.{stream}")

    def purge(self, stream: str, **what: Any) -> None:
        """Remove all messages, or those that ``what`` says: seq is the first one that stays."""
        self.request(f"STREAM.PURGE.{stream}", what)

    def count(self, stream: str) -> int:
        return int(self.request(f"STREAM.INFO.{stream}")["state"]["messages"])

    def consumer(self, stream: str, name: str) -> dict[str, Any]:
        return self.request(f"CONSUMER.INFO.{stream}.{name}")

    def publish(self, subject: str, *payloads: bytes | str, headers: Sequence[tuple[str, str]] = ()) -> None:
        """Publish messages, and wait until a stream has them."""
        with closing(self.connect()) as session:
            session.call(_publish(session, subject, payloads, headers), LIMIT)

    def take(self, stream: str) -> list[Any]:
        """Return all messages of a stream."""
        from sluiceway.connectors.nats.jetstream import ordered_consumer, stream_state
        from sluiceway.connectors.nats.pulls import Pull, fetch

        found: list[Any] = []
        with closing(self.connect()) as session:
            state = stream_state(session, stream)
            pull = Pull(session, stream, ordered_consumer(session, stream, 1, None).name)
            while len(found) < self.count(stream):
                fetch(session, [pull], 1000, 1.0)
                found += pull.take()
            assert stream_state(session, stream).created == state.created
        return found

    def _answers(self) -> bool:
        try:
            with socket.create_connection((HOST, self.port), 5) as connection:
                return connection.recv(4) == b"INFO"
        except OSError:
            return False


async def _publish(session: Session, subject: str, payloads: Sequence[bytes | str], headers: Sequence[tuple[str, str]]) -> None:
    from sluiceway.connectors.nats.publisher import _Pairs

    async def one(payload: bytes | str) -> None:
        data = payload.encode() if isinstance(payload, str) else payload
        answer = await session.client.request(subject, data, timeout=LIMIT, headers=_Pairs(headers) if headers else None)
        assert "error" not in json.loads(answer.data), answer.data

    for start in range(0, len(payloads), 500):
        await asyncio.gather(*map(one, payloads[start : start + 500]))


def _program() -> Path:
    """Return the server. The first call loads it, 6 MB; this needs no root."""
    given = os.environ.get(PROGRAM) or shutil.which("nats-server")
    return Path(given) if given else unpacked_package("nats-server") / "usr/sbin/nats-server"
