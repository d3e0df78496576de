"""Measures tasks of connectors beside the client of their system alone, with the same records. For benchmarks."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from sluiceway.stack.broker import EmbeddedBroker
from support.engine import RunningTask
from support.eventually import LIMIT, SOONEST, eventually

_GIVE_UP_SECONDS = 900.0
_UNFLUSHED = 10_000

Measure = Callable[[], tuple[float, float]]
"""Returns the seconds of the client, and of the task."""


def parser(description: str | None, *, records: int, only: str) -> argparse.ArgumentParser:
    """Return the parser of the options that all have."""
    found = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--records", type=int, default=records)
    found.add_argument("--rounds", type=int, default=3)
    found.add_argument("--only", default=only)
    return found


@dataclass(frozen=True)
class BesideClient:
    """A Kafka broker, and how often how many records are measured, and of which kinds."""

    bootstrap: str
    records: int
    rounds: int
    only: str

    def name(self) -> str:
        """Return a new name, for a topic and for what stands beside it in the other system."""
        return f"bench-{uuid.uuid4().hex[:8]}"

    def create(self, topic: str) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(LIMIT)

    def fill(self, topic: str, value: bytes) -> None:
        """Create a topic with the records."""
        self.create(topic)
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 20})
        for number in range(self.records):
            producer.produce(topic, value)
            if number % _UNFLUSHED == 0:
                producer.flush(LIMIT)
        assert producer.flush(LIMIT) == 0

    def task(self, config: Mapping[str, str], topic: str = "") -> float:
        """Return the seconds of a task that moves the records, from the moment at which it runs to its end.

        With a topic, it moves them to that, and its system does not tell it the last one: then the time until the topic has
        them counts.
        """
        given = {"name": self.name(), "key.converter": "StringConverter", "value.converter": "ByteArrayConverter", **config}
        worker = {"bootstrap.servers": self.bootstrap, "group.id": "bench"}
        with RunningTask(given, worker, bounded=not topic) as task:
            while not task.reports.states and task.result is None:
                time.sleep(0.001)  # the client is connected, too, before its time counts
            began = time.perf_counter()
            if topic:
                eventually(lambda: task.result or self._has(topic, self.records), within=_GIVE_UP_SECONDS, latest=SOONEST)
                assert task.result is None, task.result.trace
                return time.perf_counter() - began
            result = task.join(within=_GIVE_UP_SECONDS)
        seconds = time.perf_counter() - began
        assert not result.failed, result.trace
        assert result.records == self.records
        return seconds

    def _has(self, topic: str, count: int) -> bool:
        with closing(Consumer({"bootstrap.servers": self.bootstrap, "group.id": "bench"})) as consumer:
            return bool(consumer.get_watermark_offsets(TopicPartition(topic, 0), LIMIT)[1] >= count)

    def compare(self, measures: Mapping[str, Measure]) -> None:
        """Print the rates of each round, and the median of their ratios."""
        for name, measure in measures.items():
            if not any(each in name for each in self.only.split(",")):
                continue
            ratios: list[float] = []
            for _ in range(self.rounds):
                alone, task = measure()
                ratios.append(alone / task)
                print(f"{name}: client {self.records / alone:,.0f}/s, task {self.records / task:,.0f}/s", flush=True)
            print(f"{name}, {self.records:,} records: {statistics.median(ratios):.2f} times the client's rate", flush=True)


@contextmanager
def beside_client(options: argparse.Namespace) -> Iterator[BesideClient]:
    """Start a broker."""
    with tempfile.TemporaryDirectory() as folder:
        broker = EmbeddedBroker(Path(folder))
        try:
            yield BesideClient(broker.start(timeout=LIMIT), options.records, options.rounds, options.only)
        finally:
            broker.stop()
