"""Measures the time from a commit to its record in the topic, beside real Debezium in Kafka Connect 4.3.0, on the same servers.

A client commits single rows at an even rate. The time of a commit is taken before it is sent, that of its record is the time at
which the broker appends it. Both sides are one standalone worker with default settings; they take turns.

Run: python tests/benchmarks/bench_cdc_latency.py [--rate N] [--seconds N] [--rounds N] [--without-peer]
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import time
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from bench_cdc import OURS, Bench, opened
from confluent_kafka.admin import NewTopic

from support.cdc_bench import Source
from support.eventually import eventually
from support.kafka import Kafka
from support.peer import delete_connector, put_config, states
from support.toggles import table as text_table

_GOAL_P50, _GOAL_P95 = 15.0, 50.0  # milliseconds
_WARM_SECONDS = 5
_FIRST_ID = 1_000_000_000  # of rows that are not measured
_JSON = {f"{part}.converter": "org.apache.kafka.connect.json.JsonConverter" for part in ("key", "value")}
_PLAIN = {f"{part}.converter.schemas.enable": "false" for part in ("key", "value")}


class LatencyBench:
    """Measures connectors on the servers of ``bench``."""

    def __init__(self, bench: Bench, rate: int, seconds: int) -> None:
        self._bench = bench
        self._rate = rate
        self._rows = rate * (seconds + _WARM_SECONDS)

    def run(self, source: Source, side: str) -> list[float]:
        """Return the latencies after the warm-up in milliseconds, in ascending order."""
        bench, rest = self._bench, self._bench.workers[side].rest
        name = f"latency_{uuid.uuid4().hex[:8]}"
        topic = source.topic(name)
        kafka = Kafka(bench.bootstrap)
        times = {"message.timestamp.type": "LogAppendTime"}
        bench.admin.create_topics([NewTopic(topic, 1, 1, config=times)])[topic].result(30)
        source.create(name)
        try:
            put_config(rest, name, {**source.config(name), **_JSON, **_PLAIN, "snapshot.mode": "no_data"})
            eventually(lambda: states(rest, name) == ["RUNNING", "RUNNING"], within=120, what="a running task")
            ids = itertools.count(_FIRST_ID)
            eventually(lambda: self._arrives(source, name, next(ids)), within=120, what="the first record")
            begun = bench.end(topic)
            commits = self._commit(source, name)
            eventually(lambda: bench.end(topic) - begun >= self._rows, within=120, what="all records")
            time.sleep(1)  # of the first rows, some may have arrived since
            messages = kafka.read(topic, bench.end(topic))
            appended = {json.loads(message.key())["id"]: message.timestamp()[1] for message in messages}
            return sorted(appended[row] - commits[row] for row in range(self._rate * _WARM_SECONDS, self._rows))
        finally:
            delete_connector(rest, name)
            eventually(lambda: bench.dropped(source, name), within=60, what="the slot to be free")
            bench.admin.delete_topics([topic])[topic].result(30)

    def _arrives(self, source: Source, name: str, number: int) -> bool:
        source.insert(name, number, number + 1)
        return self._bench.end(source.topic(name)) > 0

    def _commit(self, source: Source, name: str) -> list[float]:
        """Commit rows at the rate; return the time before each commit in milliseconds since the epoch."""
        times = []
        with source.database.connect() as connection, connection.cursor() as cursor:
            if source.kind == "PostgreSQL":
                cursor.execute("set synchronous_commit = on")  # else the server's log gets commits up to 0.6 s later
            start = time.perf_counter()
            for row in range(self._rows):
                time.sleep(max(0.0, start + row / self._rate - time.perf_counter()))
                times.append(time.time_ns() / 1e6)
                cursor.execute(f"insert into {name} select {source.row} from {source.numbers(row, row + 1)}")  # noqa: S608
        return times


def _cells(name: str, latencies: list[list[float]]) -> list[str]:
    at = [[each[int(len(each) * share)] for each in latencies] for share in (0.5, 0.95, 0.99)]
    p50, p95, p99 = (statistics.median(values) for values in at)
    reached = "yes" if p50 <= _GOAL_P50 and p95 <= _GOAL_P95 else "NO"
    return [name, f"{p50:.1f} ms", f"{p95:.1f} ms", f"{p99:.1f} ms", f"{max(each[-1] for each in latencies):.0f} ms", reached]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=1000, help="commits per second")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without-peer", action="store_true", help="measure our side only")
    options = parser.parse_args()
    measured: dict[tuple[str, str], list[list[float]]] = {}
    with opened(0, {"PostgreSQL", "MariaDB"}, peer=not options.without_peer) as bench:
        runs = LatencyBench(bench, options.rate, options.seconds)
        for number in range(options.rounds):
            for kind, source in bench.sources.items():
                for side in bench.workers:
                    latencies = runs.run(source, side)
                    measured.setdefault((kind, side), []).append(latencies)
                    half = latencies[len(latencies) // 2]
                    print(f"round {number + 1} {kind}, {side}: p50 {half:.1f} ms, most {latencies[-1]:.0f} ms", flush=True)
    print(f"\n{options.rate:,} commits per second; goal for {OURS}: p50 {_GOAL_P50:g} ms, p95 {_GOAL_P95:g} ms")
    rows = [_cells(f"{kind}, {side}", found) for (kind, side), found in measured.items()]
    print(text_table(("case", "p50", "p95", "p99", "most", "reached"), rows))


if __name__ == "__main__":
    main()
