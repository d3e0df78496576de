"""Records per second and CPU microseconds a record: FolderSource beside FileStreamSource (lines) and SparkSource (CSV to JSON).

The lines have about 200 bytes, the rows of CSV 20 columns, of which one is quoted. All run as one task of a local Spark
application with ``--cores`` slots. The time is that from RUNNING to the last record in the topic. A first, small run of each
warms up JVM and Python and does not count. CPU seconds are those of the JVM and all Python processes, without the broker.
Rounds alternate the order; ratios are the medians of the rounds' own ratios.

Run: python tests/benchmarks/bench_folder_source.py [--records N] [--rounds N] [--cores N] [--only lines]
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
from typing import NamedTuple

from bench_spark_source import CpuTimes
from confluent_kafka import Consumer, KafkaException, TopicPartition
from pyspark import SparkContext

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sluiceway.spark.session import local_conf, spark_context
from sluiceway.stack.broker import EmbeddedBroker
from sluiceway.storage.factory import open_stores
from support.kafka import worker_for
from support.spark_application import Application

GIVE_UP_SECONDS = 1800.0
POLL_SECONDS = 0.1
COLUMNS = 20
FOLDER_LINES, FILE_STREAM = "FolderSource, lines", "FileStreamSource"
FOLDER_CSV, SPARK_CSV = "FolderSource, CSV", "SparkSource, CSV"
PEERS = {FOLDER_LINES: FILE_STREAM, FOLDER_CSV: SPARK_CSV}


class Run(NamedTuple):
    """The seconds of one run, and its CPU seconds."""

    seconds: float
    cpu: float


def main() -> None:
    options = _parser().parse_args()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        broker = EmbeddedBroker(folder / "broker")
        bootstrap = broker.start(timeout=GIVE_UP_SECONDS)
        stack.callback(broker.stop)
        context = spark_context("bench-folder-source", local_conf(), master=f"local[{options.cores}]")
        stack.callback(context.stop)
        for records in (1000, options.records):
            _write(folder / str(records), records)
        kinds = {"lines": (FOLDER_LINES, FILE_STREAM), "csv": (FOLDER_CSV, SPARK_CSV)}
        chosen = kinds[options.only] if options.only else (*kinds["lines"], *kinds["csv"])
        for kind in chosen:
            _run(context, bootstrap, kind, _sources(folder / "1000")[kind], 1000)
        found: dict[str, list[Run]] = {}
        sources = _sources(folder / str(options.records))
        for number in range(options.rounds):
            for kind in chosen if number % 2 == 0 else reversed(chosen):
                found.setdefault(kind, []).append(_run(context, bootstrap, kind, sources[kind], options.records))
        _report(found, options.records)


def _sources(folder: Path) -> dict[str, dict[str, str]]:
    """Return the configs of the sources of one folder."""
    lines, rows = str(folder / "a.log"), str(folder / "rows")
    text = {"value.converter": "org.apache.kafka.connect.storage.StringConverter"}
    json = {"value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "false"}
    return {
        FOLDER_LINES: {"connector.class": "FolderSource", "paths": lines, "mode": "logs", **text},
        FILE_STREAM: {"connector.class": "FileStreamSource", "file": lines, **text},
        FOLDER_CSV: {"connector.class": "FolderSource", "paths": rows, "mode": "files", "format": "csv", **json},
        SPARK_CSV: {"connector.class": "SparkSource", "format": "csv", "path": rows, "option.header": "true", **json},
    }


def _write(folder: Path, records: int) -> None:
    (folder / "rows").mkdir(parents=True)
    with (folder / "a.log").open("w") as out:
        out.writelines(f"{number:09d} INFO a line of a log {'x' * 165}\n" for number in range(records))
    with (folder / "rows" / "a.csv").open("w") as out:
        out.write(",".join(f"c{number}" for number in range(COLUMNS)) + "\n")
        plain = ",".join(f"value {number}" for number in range(COLUMNS - 2))
        out.writelines(f'{number},"quoted, {number}",{plain}\n' for number in range(records))


def _run(context: SparkContext, bootstrap: str, kind: str, config: dict[str, str], records: int) -> Run:
    """Return the costs of one run to a new topic."""
    worker = worker_for(bootstrap, lambda prefix: f"{prefix}-{uuid.uuid4().hex[:8]}")
    name = f"bench-{uuid.uuid4().hex[:8]}"
    creation = {"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1"}
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    with open_stores(worker) as stores, contextlib.closing(consumer):
        app = Application(name, worker, stores, context)
        app.start({**config, **creation, "topic": name, "key.converter": "org.apache.kafka.connect.storage.StringConverter"})
        started, cpu = time.perf_counter(), CpuTimes()
        while end_of(consumer, name) < records:
            assert app.states() == ["RUNNING"], app.traces()
            assert time.perf_counter() - started < GIVE_UP_SECONDS
            time.sleep(POLL_SECONDS)
            cpu.sample()
        run = Run(time.perf_counter() - started, sum(cpu.used()))
        app.leave()
        if end_of(consumer, name) != records:
            raise SystemExit(f"{name} has {end_of(consumer, name)} records instead of {records}")
    print(f"  {kind}: {records} records in {run.seconds:.1f} s, {run.cpu:.1f} CPU s", flush=True)
    return run


def end_of(consumer: Consumer, topic: str) -> int:
    """Return the number of records of a topic; 0 while it is being created."""
    if topic not in consumer.list_topics(timeout=30).topics:
        return 0
    try:
        return consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)[1]
    except KafkaException as error:
        if not error.args[0].retriable():
            raise
        return 0


def _report(found: dict[str, list[Run]], records: int) -> None:
    print(f"\n{records:,} records, medians {'records/s':>12} {'CPU us/record':>14}  times better than the peer: rate, CPU")
    for kind, runs in found.items():
        rate = statistics.median(records / run.seconds for run in runs)
        cost = statistics.median(run.cpu / records * 1e6 for run in runs)
        ratios = ""
        if kind in PEERS:
            pairs = list(zip(runs, found[PEERS[kind]], strict=True))
            faster = statistics.median(peer.seconds / run.seconds for run, peer in pairs)
            cheaper = statistics.median(peer.cpu / run.cpu for run, peer in pairs)
            ratios = f"{faster:8.2f} {cheaper:8.2f}"
        print(f"{kind:24} {rate:16,.0f} {cost:14.2f} {ratios}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--only", choices=("lines", "csv"), help="measure these only")
    return parser


if __name__ == "__main__":
    main()
