"""Seconds of an exact run over one hour of a topic that has 24, beside the same run over a topic that has that hour alone.

Both topics have three partitions, with records a little out of order. The sink writes lines to a file, with one task in a process
of its own, so that what it costs to find the hour is seen most. The ratio is that of the rounds' medians.

Run: python tests/benchmarks/bench_intervals.py [--records N] [--rounds N]
"""

from __future__ import annotations

import argparse
import contextlib
import random
import statistics
import sys
import tempfile
import time
import uuid
from pathlib import Path

from confluent_kafka import Producer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sluiceway.config.intervals import Interval
from sluiceway.config.worker import WorkerConfig
from sluiceway.stack.broker import EmbeddedBroker
from support.eventually import LIMIT
from support.intervals import IntervalMover
from support.kafka import Kafka, worker_for

HOURS, HOUR = 24, 3_600_000
WANTED = 12
PARTITIONS = 3
_FIRST = 1_767_225_600_000  # 2026-01-01
_DISORDER = 5_000  # milliseconds
_AT_MOST = 1.2


def main() -> None:
    options = _parser().parse_args()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        broker = EmbeddedBroker(folder / "broker")
        bootstrap = broker.start(timeout=LIMIT)
        stack.callback(broker.stop)
        kafka = Kafka(bootstrap)
        worker = worker_for(bootstrap, lambda prefix: f"{prefix}-bench")
        topics = {"the hour alone": "alone", f"{HOURS} hours": "all"}
        for topic, hours in (("alone", range(WANTED, WANTED + 1)), ("all", range(HOURS))):
            kafka.create(topic, PARTITIONS, retention_ms="-1")
            _fill(bootstrap, topic, hours, options.records)
        seconds: dict[str, list[float]] = {kind: [] for kind in topics}
        for number in range(options.rounds):
            for kind, topic in topics.items():
                seconds[kind].append(_move(worker, topic, folder / f"{topic}-{number}", options.records))
    for kind, found in seconds.items():
        spread = f"{min(found):.2f} to {max(found):.2f} s"
        print(f"{kind}: {statistics.median(found):.2f} s for {options.records:,} records ({spread})")
    alone, every = (statistics.median(found) for found in seconds.values())
    print(f"the hour of {HOURS * options.records:,} records takes {every / alone:.2f} times as long as alone; at most {_AT_MOST}")
    if every > _AT_MOST * alone:
        raise SystemExit(1)


def _fill(bootstrap: str, topic: str, hours: range, records: int) -> None:
    """Write so many records to each hour."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.messages": 1_000_000})
    chance = random.Random(1)  # noqa: S311 (test data)
    for hour in hours:
        start = _FIRST + hour * HOUR
        for number in range(records):
            moment = min(max(start + number * HOUR // records + chance.randrange(_DISORDER), start), start + HOUR - 1)
            while True:
                try:
                    producer.produce(topic, b"a line of %d %d" % (hour, number), partition=number % PARTITIONS, timestamp=moment)
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.poll(0)
        print(f"{topic}: hour {hour} is written", file=sys.stderr, flush=True)
    assert producer.flush(LIMIT) == 0


def _move(worker: WorkerConfig, topic: str, file: Path, records: int) -> float:
    """Move the hour; return the seconds from the run's begin to its end."""
    config = {"connector.class": "FileStreamSink", "file": str(file), "value.converter": "StringConverter"}
    mover = IntervalMover(worker, {"name": f"bench-{uuid.uuid4().hex[:8]}", "topics": topic, **config})
    start = _FIRST + WANTED * HOUR
    began = time.monotonic()
    entry = mover.move(Interval(start, start + HOUR), "run")
    seconds = time.monotonic() - began
    assert entry is not None
    assert entry.records == records, entry
    with file.open("rb") as lines:
        assert sum(1 for _ in lines) == records
    file.unlink()
    return seconds


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000, help="of an hour")
    parser.add_argument("--rounds", type=int, default=3)
    return parser


if __name__ == "__main__":
    main()
