"""Lines of a tap for each CPU second of the task: SingerSource to a topic, beside the tap's own rate into /dev/null.

The tap is ``cat`` of a file of messages as a tap of a database prints them: seven fields, one of them a decimal, a timestamp,
and a nested one, with a STATE after every thousand. So the tap costs next to nothing, and the rate is the task's limit. CPU
seconds are those of the task's process, with its threads for reading and sending, without the tap and the broker.

Run: python tests/benchmarks/bench_singer_source.py [--records N] [--rounds N]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench_folder_source import end_of

from sluiceway.stack.broker import EmbeddedBroker
from support.engine import RunningTask, batch_forms
from support.kafka import worker_for

GIVE_UP_SECONDS = 600.0
SCHEMA = {
    "properties": {
        "id": {"type": "integer"},
        "customer": {"type": ["null", "string"]},
        "ratio": {"type": ["null", "number"]},
        "paid": {"type": ["null", "boolean"]},
        "at": {"type": ["null", "string"], "format": "date-time"},
        "total": {"type": ["null", "number"], "multipleOf": 0.01},
        "tags": {"type": ["null", "array"]},
    }
}


class Run(NamedTuple):
    """The seconds of one run, and the CPU seconds of this process."""

    seconds: float
    cpu: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        broker = EmbeddedBroker(folder / "broker")
        bootstrap = broker.start(timeout=GIVE_UP_SECONDS)
        try:
            taps = {count: written(folder, count) for count in (5000, options.records)}
            for schemas in ("false", "true"):
                run(bootstrap, taps[5000], 5000, schemas)  # warms up
                runs = [run(bootstrap, taps[options.records], options.records, schemas) for _ in range(options.rounds)]
                rates = [options.records / each.cpu for each in runs]
                fastest = options.records / min(each.seconds for each in runs)
                print(
                    f"JSON with schemas={schemas}: {statistics.median(rates):,.0f} lines/CPU s "
                    f"({min(rates):,.0f} to {max(rates):,.0f}), {fastest:,.0f} lines/s"
                )
        finally:
            broker.stop()


def written(folder: Path, count: int) -> Path:
    """Write a tap that prints so many records, and return its path."""
    messages, tap = folder / f"{count}.jsonl", folder / f"tap-{count}"
    with messages.open("w") as out:
        out.write(json.dumps({"type": "SCHEMA", "stream": "orders", "schema": SCHEMA, "key_properties": ["id"]}) + "\n")
        for number in range(count):
            record = {
                "id": number,
                "customer": f"customer {number % 1000}",
                "ratio": number / 7,
                "paid": number % 2 == 0,
                "at": f"2026-01-01T{number // 3600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d}.123000+00:00",
                "total": number / 4,
                "tags": ["a", "b"],
            }
            extracted = "2026-01-01T00:00:00.000000Z"
            out.write(json.dumps({"type": "RECORD", "stream": "orders", "record": record, "time_extracted": extracted}) + "\n")
            if number % 1000 == 999:
                out.write(json.dumps({"type": "STATE", "value": {"bookmarks": {"orders": {"id": number}}}}) + "\n")
    tap.write_text(f"#!/bin/sh\nexec cat {messages}\n")
    tap.chmod(0o755)
    started = time.perf_counter()
    subprocess.run([str(tap)], stdout=subprocess.DEVNULL, check=True)
    print(f"The tap prints {count:,} records in {time.perf_counter() - started:.2f} s", flush=True)
    return tap


def run(bootstrap: str, tap: Path, records: int, schemas: str) -> Run:
    """Return the costs of one run of the tap into a new topic."""
    name = f"bench-{uuid.uuid4().hex[:8]}"
    worker = worker_for(bootstrap, lambda prefix: f"{prefix}-{uuid.uuid4().hex[:8]}")
    config = {
        "name": name,
        "connector.class": "SingerSource",
        "singer.tap": str(tap),
        "singer.catalog.option": "none",
        "topic.prefix": f"{name}-",
        "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "1",
    }
    for part in ("key", "value"):
        config |= {f"{part}.converter": "JsonConverter", f"{part}.converter.schemas.enable": schemas}
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    before, started = cpu(), time.perf_counter()
    with RunningTask(config, worker.raw, bounded=True) as task:
        result = task.join(GIVE_UP_SECONDS)
        assert not result.failed, result.trace
    made = Run(time.perf_counter() - started, cpu() - before)
    if end_of(consumer, f"{name}-orders") != records:
        raise SystemExit(f"The topic has {end_of(consumer, f'{name}-orders')} records instead of {records}")
    consumer.close()
    print(f"  {records:,} records in {made.seconds:.1f} s, {made.cpu:.2f} CPU s {batch_forms(name) or ''}", flush=True)
    return made


def cpu() -> float:
    """Return the CPU seconds of this process and all its threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
