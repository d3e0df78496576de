"""Receives from queues with several requests at once, each of which may wait for messages. Runs on executors."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from sluiceway.connectors.aws.client import aws_errors
from sluiceway.connectors.aws.connection import Account
from sluiceway.connectors.aws.sqs_messages import SYSTEM_ATTRIBUTES
from sluiceway.connectors.aws.sqs_queue import MOST_AT_ONCE, Queue, numbered
from sluiceway.connectors.errors import UnreachableError

log = logging.getLogger(__name__)


class Received(NamedTuple):
    """A message, as ReceiveMessage gives it, and when others may receive it, by the monotonic clock."""

    queue: Queue
    message: Mapping[str, Any]
    deadline: float


class Room:
    """Counts how many more messages of each queue may be received. Thread-safe.

    A request takes as much room as it may have messages before it is sent, so that there are never more than the limit.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken: dict[str, int] = {}
        self._changed = threading.Condition()

    def take(self, queue: str, seconds: float) -> int:
        """Return the most messages that may be received, up to ten; 0 if there is no room for so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._taken.get(queue, 0) < self._limit, seconds)
            found = min(MOST_AT_ONCE, self._limit - self._taken.get(queue, 0))
            self._taken[queue] = self._taken.get(queue, 0) + found
            return found

    def free(self, queue: str, count: int) -> None:
        """Give back room: messages are done, or did not come."""
        with self._changed:
            self._taken[queue] -= count
            self._changed.notify_all()


class Receivers:
    """Threads that receive from queues, while they may, into one buffer.

    A request that waits for messages cannot be ended: what it brings after a pause or the end is made visible again at once.
    """

    def __init__(
        self, client: Any, account: Account, queues: Sequence[Queue], room: Room, *, each: int, wait: int, most: int
    ) -> None:
        """Start ``each`` threads for each queue. ``wait`` is the seconds of a request, ``most`` its messages."""
        self._client = client
        self._account = account
        self._room = room
        self._wait, self._most = wait, most
        self._buffer: deque[Received] = deque()
        self._arrived = threading.Condition()
        self._runs = threading.Event()
        self._runs.set()
        self._stopped = False
        self._failure: Exception | None = None
        self._dry = dict.fromkeys((queue.url for queue in queues), False)
        for queue in queues:
            for number in range(each):
                name = f"sqs-{queue.name}-{number}"
                threading.Thread(target=self._receive, args=(queue,), name=name, daemon=True).start()

    @property
    def dry(self) -> bool:
        """Whether the last answers of all queues had no message, and none waits."""
        return all(self._dry.values()) and not self._buffer

    def take(self, most: int, seconds: float) -> list[Received]:
        """Return messages; wait for the first one. Raises what ended a thread."""
        with self._arrived:
            self._arrived.wait_for(lambda: self._buffer or self._failure, seconds)
            if self._failure is not None and not self._buffer:
                raise self._failure
            return [self._buffer.popleft() for _ in range(min(most, len(self._buffer)))]

    def pause(self) -> None:
        self._runs.clear()

    def resume(self) -> None:
        self._runs.set()

    def stop(self) -> list[Received]:
        """Let the threads end, and return what was received and not taken."""
        with self._arrived:
            self._stopped = True
            self._runs.set()
            found, self._buffer = list(self._buffer), deque()
            return found

    def _receive(self, queue: Queue) -> None:
        try:
            while not self._stopped:
                if self._runs.wait(1.0) and (most := min(self._room.take(queue.url, 1.0), MOST_AT_ONCE)):
                    self._turn(queue, most)
        except Exception as error:  # noqa: BLE001 (the task raises it)
            with self._arrived:
                self._failure = self._failure or error
                self._arrived.notify_all()

    def _turn(self, queue: Queue, room: int) -> None:
        """Receive once, with this much room."""
        found: list[Received] = []
        asked = min(room, self._most)
        try:
            if not self._is_wanted():
                return
            found = self._request(queue, asked)
            self._dry[queue.url] = not found and asked > 0
        finally:
            self._room.free(queue.url, room - len(found))
        with self._arrived:
            if wanted := self._is_wanted():
                self._buffer.extend(found)
                self._arrived.notify_all()
        if not wanted:
            self._give_back(queue, found)

    def _is_wanted(self) -> bool:
        return not self._stopped and self._runs.is_set()

    def _request(self, queue: Queue, most: int) -> list[Received]:
        deadline = time.monotonic() + queue.visibility
        with aws_errors(self._account):
            answer = self._client.receive_message(
                QueueUrl=queue.url,
                MaxNumberOfMessages=most,
                WaitTimeSeconds=self._wait,
                VisibilityTimeout=queue.visibility,
                MessageSystemAttributeNames=list(SYSTEM_ATTRIBUTES),
                MessageAttributeNames=["All"],
            )
        return [Received(queue, each, deadline) for each in answer.get("Messages", ())]

    def _give_back(self, queue: Queue, found: Sequence[Received]) -> None:
        entries = [{"ReceiptHandle": each.message["ReceiptHandle"], "VisibilityTimeout": 0} for each in found]
        self._room.free(queue.url, len(found))
        with suppress(UnreachableError):  # they are visible again after their time
            if entries:
                with aws_errors(self._account):
                    self._client.change_message_visibility_batch(QueueUrl=queue.url, Entries=numbered(entries))
