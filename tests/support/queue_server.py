"""A queue in memory, and sources that read it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

from sluiceway.api import Message, QueueLimits, QueueSourceTask, SourceRecord
from sluiceway.data import STRING_SCHEMA
from sluiceway.errors import ConnectError

QUICK = QueueLimits(wait=0.01, longest_pause=0.02)


class QueueServer:
    """A queue: hands out each message until it is acknowledged, again if its connection is lost or it is given back."""

    def __init__(self, *messages: str) -> None:
        self.lock = threading.Lock()
        self.waiting = deque(messages)
        self.handed_out: dict[int, tuple[int, str]] = {}  # connection and message, by tag
        self.connection = self.tag = 0
        self.acknowledged: list[str] = []
        self.returned: list[str] = []
        self.extended: list[str] = []
        self.most_handed_out = 0
        self.broken = self.away = self.refuses = False
        self.connected = False

    def call(self) -> None:
        """Fail if the connection is lost."""
        if self.refuses:
            raise ConnectError("wrong password")
        if self.broken or self.away:
            self.broken = False
            raise ConnectionResetError("gone")

    def connect(self) -> None:
        with self.lock:
            self.call()
            self.connection += 1
            self.connected = True

    def disconnect(self) -> None:
        with self.lock:
            self.connected = False
            for tag in sorted(self.handed_out, reverse=True):
                self.waiting.appendleft(self.handed_out.pop(tag)[1])

    def receive(self, most: int) -> list[tuple[int, str]]:
        with self.lock:
            self.call()
            found = []
            for _ in range(min(most, len(self.waiting))):
                self.tag += 1
                self.handed_out[self.tag] = self.connection, self.waiting.popleft()
                found.append((self.tag, self.handed_out[self.tag][1]))
            self.most_handed_out = max(self.most_handed_out, len(self.handed_out))
            return found

    def acknowledge(self, tags: Sequence[int]) -> None:
        with self.lock:
            self.call()
            for tag in tags:
                connection, message = self.handed_out.pop(tag)  # KeyError: a tag of another connection ends a real one
                assert connection == self.connection
                self.acknowledged.append(message)

    def give_back(self, tags: Sequence[int]) -> None:
        with self.lock:
            self.call()
            for tag in reversed(tags):
                message = self.handed_out.pop(tag)[1]
                self.returned.append(message)
                self.waiting.appendleft(message)

    def extend(self, tags: Sequence[int]) -> None:
        with self.lock:
            self.extended += [self.handed_out[tag][1] for tag in tags]


class Source(QueueSourceTask[int]):
    """Reads a server. Each message has as many records as its number says, such as three for ``a3``."""

    def __init__(self, server: QueueServer, limits: QueueLimits = QUICK) -> None:
        self.server = server
        self.limits = limits
        self.slow = 0.0

    def connect(self) -> None:
        self.server.connect()

    def disconnect(self) -> None:
        self.server.disconnect()

    def receive(self, most: int, seconds: float) -> Sequence[Message[int]]:
        threading.Event().wait(self.slow)
        found = self.server.receive(most)
        if not found:
            threading.Event().wait(min(seconds, 0.01))
        return [Message(tag, [record(message, part) for part in range(int(message[-1]))]) for tag, message in found]

    def acknowledge(self, handles: Sequence[int]) -> None:
        self.server.acknowledge(handles)

    def extend(self, handles: Sequence[int]) -> None:
        self.server.extend(handles)


class GenerousSource(Source):
    def give_back(self, handles: Sequence[int]) -> None:
        self.server.give_back(handles)


def record(message: str, part: int) -> SourceRecord:
    return SourceRecord(None, None, "t", f"{message}.{part}", STRING_SCHEMA)
