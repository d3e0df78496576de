"""Produces numbered records to a topic at a steady rate, for sinks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from support.eventually import LIMIT


class Feed:
    """A thread that produces; each partition has its own task number. Use it as a context manager.

    ``value`` makes a record's value of its task and number; the default is a verifiable source's, with ``filling`` characters.
    """

    def __init__(
        self,
        address: str,
        topic: str,
        *,
        rate: int,
        partitions: int = 1,
        filling: int = 0,
        value: Callable[[int, int], str] | None = None,
    ) -> None:
        self.topic = topic
        self._rate = rate
        self._partitions = partitions
        payload = "x" * filling
        self._value = value or (lambda task, number: f'{{"task":{task},"seqno":{number},"payload":"{payload}"}}')
        self._next = 0  # the next number in every partition
        admin = AdminClient({"bootstrap.servers": address})
        admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(LIMIT)
        self._producer = Producer({"bootstrap.servers": address, "enable.idempotence": True})
        self._stopping = threading.Event()
        self._sending = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"feed-{topic}", daemon=True)

    @property
    def sent(self) -> dict[int, int]:
        """The last number that each task has sent so far."""
        return dict.fromkeys(range(self._partitions), self._next - 1)

    def send(self, count: int) -> None:
        """Send ``count`` records to each partition now."""
        for number in range(self._next, self._next + count):
            for task in range(self._partitions):
                value = self._value(task, number)
                while True:
                    try:
                        self._producer.produce(self.topic, value, partition=task)
                        break
                    except BufferError:
                        self._producer.poll(0.1)
        self._next += count
        self._producer.poll(0)

    def finish(self) -> dict[int, int]:
        """Stop, wait until everything has been acknowledged, and return the last numbers."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(LIMIT)
        assert self._producer.flush(60) == 0, "the feed was not acknowledged"
        return self.sent

    def _run(self) -> None:
        slices = 20
        while not self._stopping.wait(1 / slices):
            with self._sending:
                self.send(max(1, self._rate // slices))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Send nothing meanwhile; everything sent before has been acknowledged."""
        with self._sending:
            assert self._producer.flush(60) == 0, "the feed was not acknowledged"
            yield

    def __enter__(self) -> Feed:
        if self._rate:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stopping.set()
