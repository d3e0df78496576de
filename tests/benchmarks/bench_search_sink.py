"""Records per second of one task of OpenSearchSink, beside the rate of the bulk requests alone.

The peer sends the same documents, already as text, over one connection and in requests of the same size, without Kafka or
conversion. Both write to a new index of one shard on the same node, in turn; ratios are the medians of the rounds.

Run: python tests/benchmarks/bench_search_sink.py [--records N] [--rounds N]
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import tempfile
import time
import uuid
from pathlib import Path

import httpx
import orjson
from confluent_kafka import Producer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sluiceway.stack.broker import EmbeddedBroker
from support.engine import RunningTask
from support.eventually import LIMIT
from support.search import SearchServer

BATCH = 2000
_GIVE_UP_SECONDS = 900.0


def main() -> None:
    options = _parser().parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        broker = EmbeddedBroker(Path(folder))
        bootstrap = broker.start(timeout=LIMIT)
        stack.callback(broker.stop)
        server = stack.enter_context(SearchServer())
        values = [
            orjson.dumps({"id": number, "customer": f"c-{number % 997}", "note": "x" * 150}) for number in range(options.records)
        ]
        ratios: list[float] = []
        _bulk(server, values[:BATCH])  # warms the node up
        for _ in range(options.rounds):
            alone, sink = _bulk(server, values), _sink(server, bootstrap, values)
            ratios.append(alone / sink)
            print(f"bulk requests alone {options.records / alone:,.0f} records/s, sink {options.records / sink:,.0f}", flush=True)
    print(f"{options.records:,} records: the sink's rate is {statistics.median(ratios):.2f} times that of the requests alone")


def _index(server: SearchServer) -> str:
    name = f"bench-{uuid.uuid4().hex[:8]}"
    settings = {"index": {"number_of_shards": 1, "number_of_replicas": 0, "refresh_interval": "-1"}}
    server.call("PUT", f"/{name}", {"settings": settings})
    return name


def _count(server: SearchServer, index: str) -> int:
    server.call("POST", f"/{index}/_refresh")
    return int(server.call("GET", f"/{index}/_count")["count"])


def _bulk(server: SearchServer, values: list[bytes]) -> float:
    """Return the seconds in which requests alone write documents."""
    index, began = _index(server), time.perf_counter()
    with httpx.Client(base_url=server.url, timeout=LIMIT) as client:
        for first in range(0, len(values), BATCH):
            some = enumerate(values[first : first + BATCH], first)
            body = b"".join(b'{"index":{"_id":"k%d"}}\n%b\n' % (number, value) for number, value in some)
            answer = client.post(f"/{index}/_bulk", content=body, headers={"content-type": "application/x-ndjson"})
            assert not answer.raise_for_status().json()["errors"]
    seconds = time.perf_counter() - began
    assert _count(server, index) == len(values)
    return seconds


def _sink(server: SearchServer, bootstrap: str, values: list[bytes]) -> float:
    """Return the seconds in which a task writes them from a topic, from its start to its end."""
    index = _index(server)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    for number, value in enumerate(values):
        producer.produce(index, value, f"k{number}")
        if number % 10_000 == 0:
            producer.flush(LIMIT)
    assert producer.flush(LIMIT) == 0
    config = {
        "name": f"sink-{index}",
        "connector.class": "OpenSearchSink",
        "topics": index,
        "connection.url": server.url,
        "batch.size": str(BATCH),
        "key.converter": "StringConverter",
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
    }
    began = time.perf_counter()
    with RunningTask(config, {"bootstrap.servers": bootstrap, "group.id": "bench"}, bounded=True) as task:
        result = task.join(within=_GIVE_UP_SECONDS)
    seconds = time.perf_counter() - began
    assert not result.failed, result.trace
    assert _count(server, index) == len(values)
    return seconds


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    return parser


if __name__ == "__main__":
    main()
