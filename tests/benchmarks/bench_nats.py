"""Messages per second of one task of NatsStreamSource, NatsConsumerSource, and NatsSink, beside the client alone.

The peer uses nats-py without Kafka or records, as its documentation does: it fetches from a pull subscription and acknowledges
each message, or publishes with as many unanswered ones (``publish_async``). Each round does one after the other with the same
messages of 100 bytes; ratios are the medians of the rounds. With --headers, the sources make headers, as by default.

Run: python tests/benchmarks/bench_nats.py [--records N] [--rounds N] [--headers] [--only stream,consumer,sink]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sluiceway.stack.broker import EmbeddedBroker
from support.engine import RunningTask
from support.eventually import LIMIT
from support.nats_server import NatsServer

BATCH, WINDOW = 1000, 1000
PAYLOAD = b"x" * 100
_GIVE_UP_SECONDS = 900.0


class Bench:
    """A broker, a server, and the same messages for both."""

    def __init__(self, server: NatsServer, bootstrap: str, options: argparse.Namespace) -> None:
        self.server, self.bootstrap, self.records, self.headers = server, bootstrap, options.records, options.headers

    def source(self, config: dict[str, str], *, acknowledges: bool) -> tuple[float, float]:
        """Return the seconds of the client and of the task for a stream's messages, each with a stream of its own."""
        streams = [self._stream() for _ in range(2)]
        for stream in streams:
            self.server.publish(stream, *[PAYLOAD] * self.records)
        alone = asyncio.run(self._consume(streams[0], acknowledges=acknowledges))
        given = {key: value.replace("STREAM", streams[1]) for key, value in config.items()}
        return alone, self._task({**given, "nats.headers.enabled": str(self.headers).lower()}, streams[1])

    def sink(self) -> tuple[float, float]:
        """Return the seconds of the client and of the task that publish a topic's records."""
        streams = [self._stream() for _ in range(2)]
        alone = asyncio.run(self._publish(streams[0]))
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 20})
        for number in range(self.records):
            producer.produce(streams[1], PAYLOAD)
            if number % 10_000 == 0:
                producer.flush(LIMIT)
        assert producer.flush(LIMIT) == 0
        seconds = self._task({"connector.class": "NatsSink", "topics": streams[1]}, streams[1])
        assert self.server.count(streams[1]) == self.records
        return alone, seconds

    def _stream(self) -> str:
        name = f"bench-{uuid.uuid4().hex[:8]}"
        self.server.create(name)
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(LIMIT)
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

    async def _consume(self, stream: str, *, acknowledges: bool) -> float:
        import nats
        from nats.js.api import AckPolicy, ConsumerConfig

        client = await nats.connect(self.server.url)
        policy = AckPolicy.EXPLICIT if acknowledges else AckPolicy.NONE
        config = ConsumerConfig(ack_policy=policy, max_ack_pending=2 * BATCH if acknowledges else None)
        began, count = time.perf_counter(), 0
        subscription = await client.jetstream().pull_subscribe(stream, durable="c", stream=stream, config=config)
        while count < self.records:
            messages = await subscription.fetch(BATCH, timeout=10)
            for message in messages if acknowledges else ():
                await message.ack()
            count += len(messages)
        await client.flush()
        seconds = time.perf_counter() - began
        await client.close()
        return seconds

    async def _publish(self, stream: str) -> float:
        import nats

        client = await nats.connect(self.server.url)
        jetstream = client.jetstream(publish_async_max_pending=WINDOW)
        began = time.perf_counter()
        for number in range(self.records):
            # Its result is not kept: publish_async_completed waits for all.
            _answer: Any = await jetstream.publish_async(stream, PAYLOAD, headers={"Nats-Msg-Id": str(number)}, wait_stall=60.0)
        await jetstream.publish_async_completed()
        seconds = time.perf_counter() - began
        await client.close()
        return seconds


def main() -> None:
    options = _parser().parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        broker = EmbeddedBroker(Path(folder))
        bootstrap = broker.start(timeout=LIMIT)
        stack.callback(broker.stop)
        server = stack.enter_context(NatsServer())
        bench = Bench(server, bootstrap, options)
        consumer = {"connector.class": "NatsConsumerSource", "nats.stream": "STREAM", "nats.consumer": "c", "nats.held": "1000"}
        measures: dict[str, Callable[[], tuple[float, float]]] = {
            "source of a stream": lambda: bench.source(
                {"connector.class": "NatsStreamSource", "nats.streams": "STREAM"}, acknowledges=False
            ),
            "source of a consumer": lambda: bench.source(consumer, acknowledges=True),
            "sink": bench.sink,
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
    parser.add_argument("--only", default="stream,consumer,sink")
    return parser


if __name__ == "__main__":
    main()
