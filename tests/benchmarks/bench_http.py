"""Records per second of one task of HttpSource and HttpSink, beside the client alone.

The peer uses httpx without Kafka or records: it reads the pages of a list one after the other, or posts as many requests at the
same time. The server is a process of its own, in Python, and its time is in both. Each round does one after the other with the
same items of 100 bytes; ratios are the medians of the rounds.

Run: python tests/benchmarks/bench_http.py [--records N] [--rounds N] [--only source,single,batches]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import statistics
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path

import httpx
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sluiceway.stack.broker import EmbeddedBroker
from support.engine import RunningTask
from support.eventually import LIMIT
from support.http_server import Answer, HttpServer, Request

PAGE, BATCH, IN_FLIGHT = 1000, 500, 4
VALUE = json.dumps({"id": 1, "text": "x" * 75})
_GIVE_UP_SECONDS = 900.0


def serve(records: int, line: Connection) -> None:
    """Serve a list, and take requests, until the parent ends; the server's process."""

    def work(request: Request) -> Answer:
        if request.method == "POST":
            return Answer()
        page = int(request.query["page"])
        return Answer(body=pages[page - 1] if page <= len(pages) else b"[]")

    items = [{"id": number, "text": "x" * 75} for number in range(records)]
    pages = [json.dumps(items[first : first + PAGE]).encode() for first in range(0, records, PAGE)]
    server = HttpServer(work)
    server.start()
    line.send(server.url)
    threading.Event().wait()


@contextlib.contextmanager
def serving(records: int) -> Iterator[str]:
    """Yield the URL of a server in a process of its own."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(records, theirs), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        process.kill()
        process.join()


class Bench:
    """A broker, a server, and the same records for both."""

    def __init__(self, url: str, bootstrap: str, records: int) -> None:
        self.url, self.bootstrap, self.records = url, bootstrap, records

    def source(self) -> tuple[float, float]:
        """Return the seconds of the client and of the task for a list."""
        began, count, page = time.perf_counter(), 0, 1
        with httpx.Client() as client:
            while items := client.get(self.url, params={"page": page}).json():
                count, page = count + len(items), page + 1
        alone = time.perf_counter() - began
        assert count == self.records
        own = {"http.paging": "page", "http.request.params": "page=${page.number}", "http.timer.interval.millis": "3600000"}
        offsets = {"http.response.record.offset.pointer": "key=/id, id=/id", "http.response.list.order.direction": "ASC"}
        topic = self._topic()
        config = {"connector.class": "HttpSource", "http.request.url": self.url, "kafka.topic": topic, **own, **offsets}
        return alone, self._task(topic, {**config, "value.converter": "JsonConverter", "value.converter.schemas.enable": "false"})

    def sink(self, batch: int) -> tuple[float, float]:
        """Return the seconds of the client and of the task that send a topic's records, ``batch`` in a request."""
        bodies = ["\n".join([VALUE] * min(batch, self.records - first)) for first in range(0, self.records, batch)]
        began = time.perf_counter()
        with httpx.Client() as client, ThreadPoolExecutor(IN_FLIGHT) as pool:
            assert all(answer.is_success for answer in pool.map(lambda body: client.post(self.url, content=body), bodies))
        alone = time.perf_counter() - began
        topic = self._topic()
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 20})
        for number in range(self.records):
            producer.produce(topic, VALUE)
            if number % 10_000 == 0:
                producer.flush(LIMIT)
        assert producer.flush(LIMIT) == 0
        own = {"http.url": self.url, "http.order": "none", "http.max.in.flight": str(IN_FLIGHT)}
        batches = {"batching.enabled": str(batch > 1).lower(), "batch.max.size": str(batch)}
        config = {"connector.class": "HttpSink", "topics": topic, "value.converter": "StringConverter", **own, **batches}
        return alone, self._task(topic, config)

    def _topic(self) -> str:
        name = f"bench-{uuid.uuid4().hex[:8]}"
        AdminClient({"bootstrap.servers": self.bootstrap}).create_topics([NewTopic(name, 1, 1)])[name].result(LIMIT)
        return name

    def _task(self, name: str, config: dict[str, str]) -> float:
        worker = {"bootstrap.servers": self.bootstrap, "group.id": "bench"}
        began = time.perf_counter()
        with RunningTask({"name": name, "key.converter": "StringConverter", **config}, worker, bounded=True) as task:
            result = task.join(within=_GIVE_UP_SECONDS)
        seconds = time.perf_counter() - began
        assert not result.failed, result.trace
        assert result.records == self.records
        return seconds


def main() -> None:
    options = _parser().parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        broker = EmbeddedBroker(Path(folder))
        bootstrap = broker.start(timeout=LIMIT)
        stack.callback(broker.stop)
        bench = Bench(stack.enter_context(serving(options.records)), bootstrap, options.records)
        measures: dict[str, Callable[[], tuple[float, float]]] = {
            "source": bench.source,
            "sink, single requests": lambda: bench.sink(1),
            f"sink, batches of {BATCH}": lambda: bench.sink(BATCH),
        }
        for name, measure in measures.items():
            if not any(each in name for each in options.only.split(",")):
                continue
            ratios: list[float] = []
            for _ in range(options.rounds):
                alone, task = measure()
                ratios.append(alone / task)
                print(f"{name}: client {options.records / alone:,.0f}/s, task {options.records / task:,.0f}/s", flush=True)
            print(f"{name}, {options.records:,} records: {statistics.median(ratios):.2f} times the client's rate", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="source,single,batches")
    return parser


if __name__ == "__main__":
    main()
