"""Records per second of one task of HttpSource and HttpSink, beside the client alone.

The peer uses httpx without Kafka or records: it reads the pages of a list one after the other, or posts as many requests at the
same time. The server is a process of its own, in Python, and its time is in both. Each round does one after the other with the
same items of 100 bytes; ratios are the medians of the rounds.

Run: python tests/benchmarks/bench_http.py [--records N] [--rounds N] [--only source,single,batches]
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support import beside_client
from support.beside_client import BesideClient
from support.http_server import Answer, HttpServer, Request

PAGE, BATCH, IN_FLIGHT = 1000, 500, 4
VALUE = json.dumps({"id": 1, "text": "x" * 75})


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
    """The same records for both."""

    def __init__(self, url: str, bench: BesideClient) -> None:
        self.url, self.bench, self.records = url, bench, bench.records

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
        topic = self.bench.name()
        self.bench.create(topic)
        config = {"connector.class": "HttpSource", "http.request.url": self.url, "kafka.topic": topic, **own, **offsets}
        return alone, self.bench.task({**config, "value.converter": "JsonConverter", "value.converter.schemas.enable": "false"})

    def sink(self, batch: int) -> tuple[float, float]:
        """Return the seconds of the client and of the task that send a topic's records, ``batch`` in a request."""
        bodies = ["\n".join([VALUE] * min(batch, self.records - first)) for first in range(0, self.records, batch)]
        began = time.perf_counter()
        with httpx.Client() as client, ThreadPoolExecutor(IN_FLIGHT) as pool:
            assert all(answer.is_success for answer in pool.map(lambda body: client.post(self.url, content=body), bodies))
        alone = time.perf_counter() - began
        topic = self.bench.name()
        self.bench.fill(topic, VALUE.encode())
        own = {"http.url": self.url, "http.order": "none", "http.max.in.flight": str(IN_FLIGHT)}
        batches = {"batching.enabled": str(batch > 1).lower(), "batch.max.size": str(batch)}
        config = {"connector.class": "HttpSink", "topics": topic, "value.converter": "StringConverter", **own, **batches}
        return alone, self.bench.task(config)


def main() -> None:
    options = beside_client.parser(__doc__, records=20_000, only="source,single,batches").parse_args()
    with beside_client.beside_client(options) as beside, serving(options.records) as url:
        bench = Bench(url, beside)
        beside.compare(
            {
                "source": bench.source,
                "sink, single requests": lambda: bench.sink(1),
                f"sink, batches of {BATCH}": lambda: bench.sink(BATCH),
            }
        )


if __name__ == "__main__":
    main()
