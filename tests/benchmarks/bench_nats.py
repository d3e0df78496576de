"""Messages per second of one task of NatsStreamSource, NatsConsumerSource, and NatsSink, beside the client alone.

The peer uses nats-py without Kafka or records, as its documentation does: it fetches from a pull subscription and acknowledges
each message, or publishes with as many unanswered ones (``publish_async``). Each round does one after the other with the same
messages of 100 bytes; ratios are the medians of the rounds. With --headers, the sources make headers, as by default.

Run: python tests/benchmarks/bench_nats.py [--records N] [--rounds N] [--headers] [--only stream,consumer,sink]
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support import beside_client
from support.beside_client import BesideClient
from support.nats_server import NatsServer

BATCH, WINDOW = 1000, 1000
PAYLOAD = b"x" * 100


class Bench:
    """The same messages for both."""

    def __init__(self, server: NatsServer, bench: BesideClient, *, headers: bool) -> None:
        self.server, self.bench, self.records, self.headers = server, bench, bench.records, headers

    def source(self, config: dict[str, str], *, acknowledges: bool) -> tuple[float, float]:
        """Return the seconds of the client and of the task for a stream's messages, each with a stream of its own."""
        streams = [self._stream() for _ in range(2)]
        for stream in streams:
            self.server.publish(stream, *[PAYLOAD] * self.records)
        alone = asyncio.run(self._consume(streams[0], acknowledges=acknowledges))
        self.bench.create(streams[1])
        given = {key: value.replace("STREAM", streams[1]) for key, value in config.items()}
        headers = {"nats.headers.enabled": str(self.headers).lower()}
        return alone, self.bench.task({**self.server.config, **given, **headers})

    def sink(self) -> tuple[float, float]:
        """Return the seconds of the client and of the task that publish a topic's records."""
        streams = [self._stream() for _ in range(2)]
        alone = asyncio.run(self._publish(streams[0]))
        self.bench.fill(streams[1], PAYLOAD)
        seconds = self.bench.task({"connector.class": "NatsSink", "topics": streams[1], **self.server.config})
        assert self.server.count(streams[1]) == self.records
        return alone, seconds

    def _stream(self) -> str:
        name = self.bench.name()
        self.server.create(name)
        return name

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
    parser = beside_client.parser(__doc__, records=100_000, only="stream,consumer,sink")
    parser.add_argument("--headers", action="store_true")
    options = parser.parse_args()
    stream = {"connector.class": "NatsStreamSource", "nats.streams": "STREAM"}
    consumer = {"connector.class": "NatsConsumerSource", "nats.stream": "STREAM", "nats.consumer": "c", "nats.held": "1000"}
    with beside_client.beside_client(options) as beside, NatsServer() as server:
        bench = Bench(server, beside, headers=options.headers)
        beside.compare(
            {
                "source of a stream": lambda: bench.source(stream, acknowledges=False),
                "source of a consumer": lambda: bench.source(consumer, acknowledges=True),
                "sink": bench.sink,
            }
        )


if __name__ == "__main__":
    main()
