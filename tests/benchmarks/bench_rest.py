"""How fast the REST API reads, and what memory it takes, with many connectors defined.

Run: python tests/benchmarks/bench_rest.py [--connectors N ...] [--requests N]

Serves in a process of its own, on stores in memory: what Kafka keeps is in memory too once it has been read. Limits: a median
below 20 ms with 200 connectors, 200 ms and 300 MB with 1,000.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

import httpx
import psutil

PATHS = {
    "root": "/",
    "list": "/connectors",
    "list, status": "/connectors?expand=status",
    "list, info and status": "/connectors?expand=info&expand=status",
    "one": "/connectors/c7",
    "its config": "/connectors/c7/config",
    "its status": "/connectors/c7/status",
    "its tasks": "/connectors/c7/tasks",
    "a task's status": "/connectors/c7/tasks/0/status",
    "its topics": "/connectors/c7/topics",
    "plugins": "/connector-plugins?connectorsOnly=false",
    "a plugin's options": "/connector-plugins/FileStreamSource/config",
    "loggers": "/admin/loggers",
}
LIMITS = {200: 20.0, 1000: 200.0}
MEMORY_LIMIT = 300.0

SERVER = """
import sys
from sluiceway.config.worker import WorkerConfig
from sluiceway.herder import Herder
from sluiceway.rest import cluster_id
from sluiceway.rest.server import RestServer
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from sluiceway.storage.model import State, Status, TaskId

cluster_id._lookup = lambda worker: "benchmark"
worker = WorkerConfig.of({"listeners": "http://127.0.0.1:0"})
config, status = MemoryConfigBackingStore(), MemoryStatusBackingStore()
for number in range(int(sys.argv[1])):
    name = f"c{number}"
    kind, key = ("FileStreamSource", "topic") if number % 2 else ("FileStreamSink", "topics")
    properties = {"connector.class": kind, key: "t", "file": f"/data/{name}"}
    properties |= {f"transforms.t{each}.some.option": "x" * 40 for each in range(20)}
    config.put_connector(name, {**properties, "name": name})
    config.put_task_configs(name, [properties])
    status.put_connector(name, Status(State.RUNNING, "driver:1", 1, version="1"))
    status.put_task(TaskId(name, 0), Status(State.RUNNING, "driver:1", 1, version="1"))
    status.put_topic(name, 0, "t")
herder = Herder(worker, config, status)
server = RestServer(worker, lambda: herder)
server.start()
print(server.addresses[0], flush=True)
sys.stdin.read()
server.stop()
"""


def measure(connectors: int, requests: int) -> bool:
    """Print what each read takes; return whether all are within the limits."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(connectors)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    well = True
    try:
        address = process.stdout.readline().strip()
        print(f"{connectors} connectors; median and 95th percentile of {requests} reads, in ms")
        with httpx.Client(base_url=address, timeout=60) as http:
            for what, path in PATHS.items():
                times = sorted(_time(http, path) for _ in range(requests))
                median, late = statistics.median(times), times[int(len(times) * 0.95)]
                well &= median < LIMITS.get(connectors, 200.0)
                print(f"  {what:24} {median:8.1f} {late:8.1f}")
        memory = psutil.Process(process.pid).memory_info().rss / 1e6
        well &= memory < MEMORY_LIMIT
        print(f"  resident memory {memory:.0f} MB")
    finally:
        process.stdin.close()
        process.wait(30)
    return well


def _time(http: httpx.Client, path: str) -> float:
    began = time.perf_counter()
    http.get(path).raise_for_status()
    return (time.perf_counter() - began) * 1000


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connectors", type=int, nargs="+", default=[200, 1000])
    parser.add_argument("--requests", type=int, default=50)
    options = parser.parse_args(arguments)
    well = [measure(each, options.requests) for each in options.connectors]
    return 0 if all(well) else 1


if __name__ == "__main__":
    sys.exit(main())
