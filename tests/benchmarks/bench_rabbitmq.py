"""Messages per second of one task of RabbitQueueSource, RabbitStreamSource, and RabbitSink, beside the client alone.

The peer uses pika in the same way, without Kafka or records: it consumes with the same prefetch count and acknowledges runs, or
publishes persistent messages with as many unconfirmed ones. Each round does one after the other with the same messages of 100
bytes; ratios are the medians of the rounds. With --headers, the sources make headers of properties, as by default.

Run: python tests/benchmarks/bench_rabbitmq.py [--records N] [--rounds N] [--headers] [--only source,stream,sink]
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sluiceway.connectors.rabbitmq.connection import Server
from sluiceway.connectors.rabbitmq.session import opened
from sluiceway.stack.broker import EmbeddedBroker
from support.database import HOST
from support.engine import RunningTask
from support.eventually import LIMIT
from support.rabbitmq_server import RabbitServer

PREFETCH, WINDOW = 2000, 1000
BODY = b"x" * 100
_GIVE_UP_SECONDS = 900.0


class Bench:
    """A broker, a server, and the same messages for both."""

    def __init__(self, server: RabbitServer, bootstrap: str, options: argparse.Namespace) -> None:
        self.server, self.bootstrap, self.records, self.headers = server, bootstrap, options.records, options.headers

    def source(self, kind: str, queue_kind: str) -> tuple[float, float]:
        """Return the seconds of the client and of the task for a queue's messages, each with a queue of its own."""
        queues = [self._queue(queue_kind) for _ in range(2)]
        for queue in queues:
            for _ in range(0, self.records, 10_000):
                self.server.publish(queue, *[BODY] * min(10_000, self.records))
        alone = self._consume(queues[0], {"x_stream_offset": "first"} if queue_kind == "stream" else {})
        config = {"rabbitmq.queue": queues[1], "rabbitmq.headers.enabled": str(self.headers).lower()}
        return alone, self._task({"connector.class": kind, **config}, queues[1])

    def sink(self, queue_kind: str) -> tuple[float, float]:
        """Return the seconds of the client and of the task that publish a topic's records."""
        queues = [self._queue(queue_kind) for _ in range(2)]
        alone = self._publish(queues[0])
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 20})
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([NewTopic(queues[1], 1, 1)])[queues[1]].result(LIMIT)
        for number in range(self.records):
            producer.produce(queues[1], BODY)
            if number % 10_000 == 0:
                producer.flush(LIMIT)
        assert producer.flush(LIMIT) == 0
        seconds = self._task({"connector.class": "RabbitSink", "topics": queues[1]}, queues[1])
        assert self.server.count(queues[1]) == self.records
        return alone, seconds

    def _queue(self, kind: str) -> str:
        name = f"bench-{kind}-{uuid.uuid4().hex[:8]}"
        self.server.declare(name, kind)
        return name

    def _task(self, config: dict[str, str], name: str) -> float:
        given = {"name": name, **self.server.config, "key.converter": "StringConverter", "value.converter": "ByteArrayConverter"}
        worker = {"bootstrap.servers": self.bootstrap, "group.id": "bench"}
        began = time.perf_counter()
        with RunningTask({**given, **config}, worker, bounded=True) as task:
            result = task.join(within=_GIVE_UP_SECONDS)
        seconds = time.perf_counter() - began
        assert not result.failed, result.trace
        assert result.records == self.records
        return seconds

    def _session(self) -> Any:
        server = Server((HOST,), self.server.port, "/", "guest", "guest", 10.0, 10.0, 60, 10.0)
        return closing(opened(server, "bench"))

    def _consume(self, queue: str, arguments: dict[str, str]) -> float:
        count = 0
        with self._session() as session:

            def on_message(delivery: Any, _properties: Any, _body: bytes) -> None:
                nonlocal count
                count += 1
                if count % (PREFETCH // 4) == 0 or count == self.records:
                    session.channel.basic_ack(delivery.delivery_tag, multiple=True)
                if count == self.records:
                    session.wake()

            began = time.perf_counter()
            session.prefetch(PREFETCH)
            session.consume(queue, on_message, **arguments)
            while count < self.records:
                session.run(1.0)
            return time.perf_counter() - began

    def _publish(self, queue: str) -> float:
        from pika import BasicProperties

        properties, sent, confirmed = BasicProperties(delivery_mode=2), 0, 0
        with self._session() as session:

            def publish() -> None:
                nonlocal sent
                while sent < self.records and sent - confirmed < WINDOW:
                    session.channel.basic_publish("", queue, BODY, properties, True)
                    sent += 1

            def on_confirm(frame: Any) -> None:
                nonlocal confirmed
                confirmed = frame.method.delivery_tag if frame.method.multiple else confirmed + 1
                publish()

            began = time.perf_counter()
            session.call(lambda done: session.channel.confirm_delivery(on_confirm, callback=done))
            publish()
            while confirmed < self.records:
                session.run(0.05)
            return time.perf_counter() - began


def main() -> None:
    options = _parser().parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        broker = EmbeddedBroker(Path(folder))
        bootstrap = broker.start(timeout=LIMIT)
        stack.callback(broker.stop)
        server = stack.enter_context(closing(RabbitServer()))
        server.start()
        bench = Bench(server, bootstrap, options)
        measures: dict[str, Callable[[], tuple[float, float]]] = {
            "source of a classic queue": lambda: bench.source("RabbitQueueSource", "classic"),
            "source of a quorum queue": lambda: bench.source("RabbitQueueSource", "quorum"),
            "source of a stream": lambda: bench.source("RabbitStreamSource", "stream"),
            "sink to a classic queue": lambda: bench.sink("classic"),
            "sink to a quorum queue": lambda: bench.sink("quorum"),
        }
        for name, measure in measures.items():
            if not any(each in name for each in options.only.split(",")):
                continue
            ratios: list[float] = []
            for _ in range(options.rounds):
                alone, task = measure()
                ratios.append(alone / task)
                print(f"{name}: client {options.records / alone:,.0f}/s, task {options.records / task:,.0f}/s", flush=True)
            print(f"{name}, {options.records:,} messages: {statistics.median(ratios):.2f} times the client's rate", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--headers", action="store_true")
    parser.add_argument("--only", default="source,sink")
    return parser


if __name__ == "__main__":
    main()
