"""Entries per second of one task of RedisStreamSource, RedisGroupSource, and RedisSink, beside the client alone.

The peer uses redis-py without Kafka or records: it reads a stream, or reads as a consumer of a group and acknowledges, or adds
entries by pipelines. Each round does one after the other with the same entries of 100 bytes; ratios are the medians of the
rounds.

Run: python tests/benchmarks/bench_redis.py [--records N] [--rounds N] [--only stream,group,sink]
"""

from __future__ import annotations

import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from redis import Redis

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support import beside_client
from support.beside_client import BesideClient
from support.redis_server import RedisServer

BATCH = 1000
VALUE = b"x" * 100
_GROUP = "kafka-consumer-group"


class Bench:
    """The same entries for both."""

    def __init__(self, server: RedisServer, bench: BesideClient) -> None:
        self.url, self.bench, self.records = server.url, bench, bench.records
        self.client: Any = Redis.from_url(server.url)

    def source(self, kind: str) -> tuple[float, float]:
        """Return the seconds of the client and of the task for a stream's entries, each with a stream of its own."""
        streams = [self.bench.name() for _ in range(2)]
        for stream in streams:
            self._add(stream)
        alone = self._read(streams[0]) if kind == "RedisStreamSource" else self._take(streams[0])
        self.client.xgroup_create(streams[1], _GROUP, "0")
        self.bench.create(streams[1])
        config = {"connector.class": kind, "redis.stream.name": streams[1], "value.converter": "JsonConverter"}
        config |= {"value.converter.schemas.enable": "false"}
        return alone, self.bench.task({**config, "redis.uri": self.url})

    def sink(self) -> tuple[float, float]:
        """Return the seconds of the client and of the task that add a topic's records to a stream."""
        streams = [self.bench.name() for _ in range(2)]
        alone = self._add(streams[0])
        self.bench.fill(streams[1], b'{"value": "%s"}' % VALUE)
        config = {"connector.class": "RedisSink", "topics": streams[1], "value.converter": "JsonConverter"}
        seconds = self.bench.task({**config, "value.converter.schemas.enable": "false", "redis.uri": self.url})
        assert self.client.xlen(streams[1]) == self.records
        return alone, seconds

    def _add(self, stream: str) -> float:
        began = time.perf_counter()
        for first in range(0, self.records, BATCH):
            with self.client.pipeline(transaction=False) as pipeline:
                for _ in range(min(BATCH, self.records - first)):
                    pipeline.xadd(stream, {"value": VALUE})
                pipeline.execute()
        return time.perf_counter() - began

    def _read(self, stream: str) -> float:
        began, count, last = time.perf_counter(), 0, b"0"
        while answer := self.client.xread({stream: last}, count=BATCH):
            entries = answer[0][1]
            count, last = count + len(entries), entries[-1][0]
        assert count == self.records
        return time.perf_counter() - began

    def _take(self, stream: str) -> float:
        self.client.xgroup_create(stream, _GROUP, "0")
        began, count = time.perf_counter(), 0
        while answer := self.client.xreadgroup(_GROUP, "peer", {stream: ">"}, count=BATCH):
            entries = answer[0][1]
            self.client.xack(stream, _GROUP, *[each[0] for each in entries])
            count += len(entries)
        assert count == self.records
        return time.perf_counter() - began


def main() -> None:
    options = beside_client.parser(__doc__, records=200_000, only="stream,group,sink").parse_args()
    with beside_client.beside_client(options) as beside, closing(RedisServer()) as server:
        server.start()
        bench = Bench(server, beside)
        beside.compare(
            {
                "source of a stream": lambda: bench.source("RedisStreamSource"),
                "source of a group": lambda: bench.source("RedisGroupSource"),
                "sink": bench.sink,
            }
        )


if __name__ == "__main__":
    main()
