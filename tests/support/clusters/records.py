"""Follows the records of a verifiable source: the newest of each task, repeated and missing numbers."""

from __future__ import annotations

import threading
import time
import uuid
from dataclasses import dataclass, field

import orjson
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from support.eventually import LIMIT


@dataclass(slots=True)
class TaskRecords:
    """Records that arrived from one task. Thread-safe. ``arrived`` is the time of the newest one in seconds since the epoch."""

    arrived: float = 0.0
    total: int = 0
    numbers: set[int] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, number: int, now: float) -> None:
        with self._lock:
            self.arrived = now
            self.total += 1
            self.numbers.add(number)

    @property
    def doubled(self) -> int:
        with self._lock:
            return self.total - len(self.numbers)

    @property
    def missing(self) -> int:
        with self._lock:
            return max(self.numbers, default=-1) + 1 - len(self.numbers)


class Records:
    """Reads a topic with one partition in a thread, until it is closed.

    Args:
        bootstrap: the broker's address.
        topic: the topic, whose records have complete data (``complete.record.data``).
        tasks: the number of tasks.
        isolation: the consumer's ``isolation.level``.
    """

    def __init__(self, bootstrap: str, topic: str, tasks: int, isolation: str) -> None:
        self.tasks = [TaskRecords() for _ in range(tasks)]
        self._stopping = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": uuid.uuid4().hex,
                "enable.auto.commit": False,
                "isolation.level": isolation,
                "fetch.wait.max.ms": 100,
            }
        )
        self._consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        self._thread = threading.Thread(target=self._run, name=f"records-{isolation}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            messages = self._consumer.consume(1000, 0.1)
            now = time.time()
            for message in messages:
                if message.error() is None:
                    record = orjson.loads(message.value() or b"null")
                    self.tasks[record["task"]].add(record["seqno"], now)
        self._consumer.close()

    def close(self) -> None:
        self._stopping.set()
        self._thread.join(LIMIT)
