"""A Kafka producer in memory, controlled by tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message


class FakeProducer:
    """Acknowledges records in ``poll`` and ``flush`` unless ``unresponsive``. Its buffer holds ``room`` records."""

    made: list[FakeProducer] = []

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.sent: list[tuple[str, Any, Any, dict[str, Any]]] = []
        self.waiting: list[tuple[Message, Any]] = []
        self.room = 1000
        self.unresponsive = False
        self.error: KafkaError | None = None
        self.judge: Callable[[list[Any]], KafkaError | None] = lambda _values: self.error  # of a request's values
        self.taken: list[Any] = []
        self.largest = 1000
        self.purged = False
        FakeProducer.made.append(self)

    def produce(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int = -1,
        callback: Any = None,
        on_delivery: Any = None,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        if len(value or b"") > self.largest:
            raise KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))
        if len(self.waiting) >= self.room:
            raise BufferError("Local: Queue full")
        report = callback or on_delivery or self.config["on_delivery"]
        message = Message(topic=topic, partition=0, offset=len(self.sent), key=key, value=value)
        given = {"partition": (partition, -1), "timestamp": (timestamp, 0), "headers": (headers, None)}
        self.sent.append((topic, value, key, {name: option for name, (option, default) in given.items() if option != default}))
        self.waiting.append((message, report))

    def poll(self, timeout: float = 0) -> int:
        if self.unresponsive:
            return 0
        done, self.waiting = self.waiting, []
        error = self.judge([message.value() for message, _ in done])
        for message, report in done:
            if error is None:
                self.taken.append(message.value())
            if error is not None or not self.config["delivery.report.only.error"]:
                report(error, message)
        return len(done)

    def flush(self, timeout: float = -1) -> int:
        self.poll()
        return len(self.waiting)

    def __len__(self) -> int:
        return len(self.waiting)

    def purge(self, **_: Any) -> None:
        self.purged = True
        self.waiting = []
