"""Records per second of DltSink's loads, beside a pipeline of dlt that has the same rows in memory.

DltSink reads JSON with schemas from a topic, by one task. The peer reads nothing: it runs a pipeline with the same rows as Arrow
tables of as many rows as a load, so it is the limit of the destination. The rate of both is without the start of their processes:
up to the first row in the destination for DltSink, and without the import of dlt for the peer.

Run: python tests/benchmarks/bench_dlt_sink.py [--records N] [--load N] [--rounds N] [--only duckdb,folder,postgres]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sluiceway.stack.broker import EmbeddedBroker
from support.dlt_targets import DATASET, DltTarget, DuckDbTarget, FolderTarget, PostgresTarget
from support.engine import RunningTask
from support.eventually import LIMIT, eventually
from support.jdbc_sink import JSON, fill, person
from support.postgres import PostgresServer

_GIVE_UP_SECONDS = 900.0
_PEER = """
import json, sys, time
import dlt, pyarrow as pa
from dlt.common.destination.reference import Destination

kind, args, dataset, folder, records, load = sys.argv[1:]
destination = Destination.from_reference(kind, **json.loads(args))
pipeline = dlt.pipeline("peer", destination=destination, dataset_name=dataset, pipelines_dir=folder)

def run(first, end):
    numbers = range(first, end)
    table = pa.table({"id": pa.array(numbers, pa.int64()), "name": [f"n{number}" for number in numbers]})
    more = {"loader_file_format": "parquet"} if kind == "filesystem" else {}
    pipeline.run([table], table_name="peer", write_disposition="append", **more)

run(0, 1)  # what is made once
began = time.perf_counter()
for first in range(0, int(records), int(load)):
    run(first, min(first + int(load), int(records)))
print(time.perf_counter() - began)
"""


class Bench:
    """A broker, and a topic with the records of each round."""

    def __init__(self, bootstrap: str, options: argparse.Namespace) -> None:
        self.bootstrap, self.records, self.load = bootstrap, options.records, options.load
        self.topic = f"bench_{uuid.uuid4().hex[:8]}"
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(self.topic, 1, 1)])[self.topic].result(LIMIT)
        fill(bootstrap, (person(0, number, f"n{number}", topic=self.topic) for number in range(self.records + 1)))

    def sink(self, target: DltTarget) -> float:
        """Return the seconds in which a task loads the topic, from its first row on."""
        name = f"sink-{uuid.uuid4().hex[:8]}"
        config = {"name": name, "topics": self.topic, **target.config, **JSON, "sluiceway.flush.size": str(self.load)}
        worker = {"bootstrap.servers": self.bootstrap, "group.id": "bench", "offset.flush.interval.ms": "3600000"}
        first = {**config, "sluiceway.flush.size": "1", "consumer.override.max.poll.records": "1"}
        with RunningTask(first, worker) as task:
            eventually(lambda: target.ids(self.topic), what="the first row")
        before = len(target.ids(self.topic))
        began = time.perf_counter()
        with RunningTask(config, worker, bounded=True) as task:
            result = task.join(within=_GIVE_UP_SECONDS)
        seconds = time.perf_counter() - began
        assert not result.failed, result.trace
        assert len(target.ids(self.topic)) == self.records + 1
        return float(seconds * self.records / (self.records + 1 - before))

    def peer(self, target: DltTarget) -> float:
        config = target.config
        args = config["dlt.destination.args"].replace("dlt.secret.url", config.get("dlt.secret.url", ""))
        environment = {
            **os.environ,
            "RUNTIME__DLTHUB_TELEMETRY": "false",
            "PROVIDERS__ENABLE_AIRFLOW_SECRETS": "false",
            "RUNTIME__LOG_LEVEL": "ERROR",
        }
        given = [config["dlt.destination"], args, f"{DATASET}_peer", config["dlt.folder"], str(self.records), str(self.load)]
        ended = subprocess.run([sys.executable, "-c", _PEER, *given], env=environment, check=True, capture_output=True, text=True)
        return float(ended.stdout.splitlines()[-1])


def main() -> None:
    options = _parser().parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        broker = EmbeddedBroker(Path(folder) / "broker")
        bootstrap = broker.start(timeout=LIMIT)
        stack.callback(broker.stop)
        bench = Bench(bootstrap, options)
        for kind in options.only.split(","):
            ratios: list[float] = []
            for number in range(options.rounds):
                own = Path(folder) / f"{kind}-{number}"
                own.mkdir()
                target = _target(kind, own, stack)
                seconds, peer = bench.sink(target), bench.peer(target)
                ratios.append(peer / seconds)
                rates = f"DltSink {options.records / seconds:,.0f}/s, dlt's pipeline {options.records / peer:,.0f}/s"
                print(f"{kind}, loads of {options.load:,}: {rates}", flush=True)
            print(f"{kind}, {options.records:,} records: {statistics.median(ratios):.2f} times the rate of dlt alone", flush=True)


def _target(kind: str, folder: Path, stack: contextlib.ExitStack) -> DltTarget:
    if kind == "duckdb":
        return DuckDbTarget(folder)
    if kind == "folder":
        return FolderTarget(folder)
    server = PostgresServer()
    stack.callback(server.close)
    server.start()
    return PostgresTarget(server.first, folder)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--load", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="duckdb,folder,postgres")
    return parser


if __name__ == "__main__":
    main()
