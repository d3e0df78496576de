"""A Kafka consumer in memory: one partition, assigned at the first poll."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from confluent_kafka import Message, TopicPartition


class FakeConsumer:
    """Returns ``messages`` in order. ``revoke`` revokes the partition during the next poll."""

    made: list[FakeConsumer] = []
    messages: list[Message] = []

    def __init__(self, config: dict[str, Any]) -> None:
        self.callbacks: dict[str, Callable[..., None]] = {}
        self.left = list(self.messages)
        self.joined = False
        self.revoke = False
        self.commits: list[int] = []
        self.closed = False
        FakeConsumer.made.append(self)

    def list_topics(self, timeout: float) -> SimpleNamespace:
        return SimpleNamespace(topics={"t": SimpleNamespace(partitions={0: None})})

    def subscribe(self, _topics: list[str], **callbacks: Callable[..., None]) -> None:
        self.callbacks = callbacks

    def consume(self, number: int, _timeout: float) -> list[Message]:
        if not self.joined:
            self.joined = True
            self.callbacks["on_assign"](self, [TopicPartition("t", 0)])
            return []
        if self.revoke:
            self.revoke = False
            self.callbacks["on_revoke"](self, [TopicPartition("t", 0)])
            return []
        read, self.left = self.left[:number], self.left[number:]
        return read

    def poll(self, timeout: float) -> Message | None:
        return next(iter(self.consume(1, timeout)), None)

    def seek(self, position: TopicPartition) -> None:
        self.left = [message for message in self.messages if (message.offset() or 0) >= position.offset]

    def commit(self, *, offsets: list[TopicPartition], asynchronous: bool) -> list[TopicPartition]:
        self.commits += [position.offset for position in offsets]
        return offsets

    def committed(self, _partition: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        return []

    def get_watermark_offsets(self, _partition: TopicPartition, timeout: float) -> tuple[int, int]:
        return 0, len(self.messages)

    def assign(self, _partition: list[TopicPartition]) -> None: ...

    def incremental_assign(self, _partition: list[TopicPartition]) -> None: ...

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        return [TopicPartition(each.topic, each.partition, 0) for each in partitions]

    def pause(self, _partition: list[TopicPartition]) -> None: ...

    def resume(self, _partition: list[TopicPartition]) -> None: ...

    def close(self) -> None:
        self.closed = True
