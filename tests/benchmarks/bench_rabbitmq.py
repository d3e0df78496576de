"""Messages per second of one task of RabbitQueueSource, RabbitStreamSource, and RabbitSink, beside the client alone.

The peer uses pika in the same way, without Kafka or records: it consumes with the same prefetch count and acknowledges runs, or
publishes persistent messages with as many unconfirmed ones. Each round does one after the other with the same messages of 100
bytes; ratios are the medians of the rounds. With --headers, the sources make headers of properties, as by default.

Run: python tests/benchmarks/bench_rabbitmq.py [--records N] [--rounds N] [--headers] [--only source,stream,sink]
"""

from __future__ import annotations

import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sluiceway.connectors.rabbitmq.connection import Server
from sluiceway.connectors.rabbitmq.session import opened
from support import beside_client
from support.beside_client import BesideClient
from support.database import HOST
from support.rabbitmq_server import RabbitServer

PREFETCH, WINDOW = 2000, 1000
BODY = b"x" * 100


class Bench:
    """The same messages for both."""

    def __init__(self, server: RabbitServer, bench: BesideClient, *, headers: bool) -> None:
        self.server, self.bench, self.records, self.headers = server, bench, bench.records, headers

    def source(self, kind: str, queue_kind: str) -> tuple[float, float]:
        """Return the seconds of the client and of the task for a queue's messages, each with a queue of its own."""
        queues = [self._queue(queue_kind) for _ in range(2)]
        for queue in queues:
            for _ in range(0, self.records, 10_000):
                self.server.publish(queue, *[BODY] * min(10_000, self.records))
        alone = self._consume(queues[0], {"x_stream_offset": "first"} if queue_kind == "stream" else {})
        config = {"rabbitmq.queue": queues[1], "rabbitmq.headers.enabled": str(self.headers).lower()}
        return alone, self.bench.task({"connector.class": kind, **self.server.config, **config})

    def sink(self, queue_kind: str) -> tuple[float, float]:
        """Return the seconds of the client and of the task that publish a topic's records."""
        queues = [self._queue(queue_kind) for _ in range(2)]
        alone = self._publish(queues[0])
        self.bench.fill(queues[1], BODY)
        seconds = self.bench.task({"connector.class": "RabbitSink", "topics": queues[1], **self.server.config})
        assert self.server.count(queues[1]) == self.records
        return alone, seconds

    def _queue(self, kind: str) -> str:
        name = self.bench.name()
        self.server.declare(name, kind)
        return name

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
    parser = beside_client.parser(__doc__, records=100_000, only="source,sink")
    parser.add_argument("--headers", action="store_true")
    options = parser.parse_args()
    with beside_client.beside_client(options) as beside, closing(RabbitServer()) as server:
        server.start()
        bench = Bench(server, beside, headers=options.headers)
        beside.compare(
            {
                "source of a classic queue": lambda: bench.source("RabbitQueueSource", "classic"),
                "source of a quorum queue": lambda: bench.source("RabbitQueueSource", "quorum"),
                "source of a stream": lambda: bench.source("RabbitStreamSource", "stream"),
                "sink to a classic queue": lambda: bench.sink("classic"),
                "sink to a quorum queue": lambda: bench.sink("quorum"),
            }
        )


if __name__ == "__main__":
    main()
