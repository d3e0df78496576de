"""Measures the file and table sinks beside Kafka Connect's FileStreamSink and Iceberg's own Connect sink, on one broker.

All sinks read the same records from a topic of 4 partitions: JSON of 652 bytes in a schema envelope, through the same four
transforms; the last two cases read the payloads alone, without a schema. Rounds alternate the order of the cases. The records
are in a transaction, which is committed when all tasks have their partitions. A run lasts from that commit until the target
holds every row, so start-up does not count. Then the target is read: each record must be in it exactly once.
CPU time is that of all processes of a side, user and system, without the broker's; memory is the highest PSS. The peers' JVMs
run through all rounds and are warm from the second; ours are new processes each time.

Run: python tests/benchmarks/bench_frames.py [--records N] [--rounds N] [--minutes N] [--only TEXT ...]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing.synchronize import Barrier
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench_engine import theirs
from confluent_kafka import ConsumerGroupState, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from sluiceway.errors import ConnectError
from sluiceway.stack import maven
from sluiceway.stack.broker import EmbeddedBroker
from support.engine import RunningTask
from support.peer import FILE_SINK, PeerStandalone, get_status
from support.sink_bench import FailedRunError, IcebergTable, Lines, Meter, ParquetFiles, Target, UpsertedTable

PARTITIONS = 4
GIVE_UP_SECONDS = 240
STALL_SECONDS = 30
COMMIT_MS = "3000"
ICEBERG_VERSION = "1.9.2"
ICEBERG_COORDINATES = (
    *(f"org.apache.iceberg:iceberg-{part}:{ICEBERG_VERSION}" for part in ("kafka-connect", "parquet")),
    *(f"org.apache.hadoop:hadoop-client-{part}:3.4.1" for part in ("api", "runtime")),
)
_LOGGING_AND_KAFKA = ("org.apache.kafka:*", "org.slf4j:*", "ch.qos.reload4j:*", "org.apache.logging.log4j:*")
_SMT = "org.apache.kafka.connect.transforms."
CHAIN = {
    "transforms": "insert,mask,rename,cast",
    "transforms.insert.type": _SMT + "InsertField$Value",
    "transforms.insert.timestamp.field": "ingested",
    "transforms.insert.offset.field": "koffset",
    "transforms.mask.type": _SMT + "MaskField$Value",
    "transforms.mask.fields": "customer",
    "transforms.mask.replacement": "***",
    "transforms.rename.type": _SMT + "ReplaceField$Value",
    "transforms.rename.renames": "note:remark",
    "transforms.cast.type": _SMT + "Cast$Value",
    "transforms.cast.spec": "amount:float32",
}
FIELDS = (
    {"field": "id", "type": "int64", "optional": False},
    {"field": "customer", "type": "string", "optional": False},
    {"field": "amount", "type": "double", "optional": True},
    {"field": "country", "type": "string", "optional": True},
    {"field": "at", "type": "int64", "optional": False, "name": "org.apache.kafka.connect.data.Timestamp", "version": 1},
    {"field": "note", "type": "string", "optional": True},
)
_SCHEMA = {"type": "struct", "optional": False, "name": "shop.Order", "version": 1, "fields": FIELDS}
_COUNTRIES = (b"DE", b"FR", b"IT", b"ES")


class StalledRunError(FailedRunError):
    """The last files are not full, because a rebalance in the middle ended others early. The run says nothing about speed."""


@dataclass(frozen=True)
class Case:
    """A sink to measure, and the peer to compare it with.

    ``payloads``: records without a schema. ``cores`` limits our processes. ``peer`` names the case to compare with.
    """

    name: str
    sink: str
    payloads: bool = False
    tasks: int = 1
    ours: bool = True
    cores: int | None = None
    rows: bool = False
    upsert: bool = False
    peer: str | None = None


FILES, TABLES, PLAIN = (
    "Kafka Connect FileStreamSink",
    "Iceberg's sink in Kafka Connect",
    "Kafka Connect FileStreamSink, no schema",
)
CASES = (
    Case("ParquetSink, 1 task on one core", "parquet", cores=1, peer=FILES),
    Case("ParquetSink, 1 task", "parquet", peer=FILES),
    Case("ParquetSink, 2 tasks", "parquet", tasks=2, peer=FILES),
    Case("ParquetSink, row form", "parquet", rows=True, peer=FILES),
    Case(FILES, "lines", ours=False),
    Case("IcebergSink, 1 task", "iceberg", peer=TABLES),
    Case("IcebergSink, 2 tasks", "iceberg", tasks=2, peer=TABLES),
    Case(TABLES, "iceberg", tasks=2, ours=False),
    Case("IcebergSink, upsert", "iceberg", upsert=True),
    Case("JsonFileSink, no schema", "json", payloads=True, peer=PLAIN),
    Case(PLAIN, "lines", payloads=True, ours=False),
)


@dataclass
class Result:
    """One case's figures, per round: records per second, records per CPU second, and the highest PSS in MB."""

    rates: list[float] = field(default_factory=list)
    per_cpu: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)


def run_ours(config: dict[str, str], bootstrap: str, number: int, case: Case, start: Barrier) -> None:
    """Run one of our tasks when all have loaded their modules; the entry point of its process."""
    if case.cores is not None:
        os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[: case.cores]))
    if case.rows:
        from sluiceway.runtime.sink import sink_task_builder

        vars(sink_task_builder)["columns_available"] = lambda: False
    start.wait()
    with RunningTask(config, {"bootstrap.servers": bootstrap}, task=number) as task:
        result = task.join(within=GIVE_UP_SECONDS)
        if result.trace:
            print(result.trace, file=sys.stderr)
        threading.Event().wait()  # until the measuring process has read this one's costs, and kills it


@contextmanager
def ours(config: dict[str, str], bootstrap: str, case: Case) -> Iterator[list[int]]:
    """Run our tasks, each in a process, and yield the process ids."""
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(case.tasks)
    processes = [
        context.Process(target=run_ours, args=(config, bootstrap, number, case, start), daemon=True)
        for number in range(case.tasks)
    ]
    try:
        for process in processes:
            process.start()
        yield [process.pid for process in processes if process.pid is not None]
    finally:
        for process in processes:
            process.kill()
            process.join()


class Bench:
    def __init__(self, bootstrap: str, folder: Path, peers: Mapping[str, PeerStandalone], records: int) -> None:
        self.bootstrap = bootstrap
        self.folder = folder
        self.peers = peers
        self.records = records
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": "2"})  # it outlives the broker

    def run(self, case: Case) -> tuple[float, float, float]:
        """Run a case once; return records per second, records per CPU second, and the highest PSS in MB."""
        name, folder = f"frames-{uuid.uuid4().hex[:8]}", self.folder / "out"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        config, target = self.sink(case, name, folder)
        count = self.records // 4 if case.upsert else self.records
        producer = self.fill(f"{name}-records", case, count)
        with ExitStack() as stack:
            stack.callback(self.delete, f"{name}-records")
            if case.ours:
                pids = stack.enter_context(ours(config, self.bootstrap, case))
            else:
                peer = self.peers[case.sink]
                stack.enter_context(theirs(config, peer))
                pids = [peer.pid or 0]
            self.wait_for_group(f"connect-{name}", case.tasks)
            meter, begin = Meter(pids), time.monotonic()
            meter.start()
            producer.commit_transaction()
            self.wait_for_rows(case, name, target, count)
            seconds, cpu = time.monotonic() - begin, meter.stop()
        target.check(count // 2 if case.upsert else count)
        return count / seconds, count / cpu, meter.pss

    def sink(self, case: Case, name: str, folder: Path) -> tuple[dict[str, str], Target]:
        """Return a case's config, and what counts the rows in its target."""
        config = {"name": name, "topics": f"{name}-records", "tasks.max": str(case.tasks), **CHAIN}
        config |= {"consumer.override.isolation.level": "read_committed"}
        config |= {"key.converter": "org.apache.kafka.connect.storage.StringConverter"}
        config |= {"value.converter": "org.apache.kafka.connect.json.JsonConverter"}
        config |= {"value.converter.schemas.enable": str(not case.payloads).lower()}
        if case.sink == "iceberg":
            catalog = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db"} if case.ours else {"type": "hadoop"}
            catalog["warehouse"] = folder.as_uri()
            config |= {f"iceberg.catalog.{key}": value for key, value in catalog.items()}
            config |= {"connector.class": "org.apache.iceberg.connect.IcebergSinkConnector", "iceberg.tables": "db.orders"}
            config |= {f"iceberg.tables.{key}-enabled": "true" for key in ("auto-create", "evolve-schema")}
            config |= {"iceberg.control.topic": "control-" + name, "iceberg.control.commit.timeout-ms": "10000"}
            config |= {"iceberg.control.commit.interval-ms": COMMIT_MS}
            if case.upsert:
                config |= {"iceberg.tables.upsert-mode-enabled": "true", "iceberg.tables.default-id-columns": "id"}
            if not case.ours:
                self.create("control-" + name, 1)
            return config, UpsertedTable(folder) if case.upsert else IcebergTable(folder)
        if case.sink == "lines":
            return config | {"connector.class": FILE_SINK, "file": str(folder / "lines.txt")}, Lines(folder, "lines.txt")
        flush_size = str(self.records // PARTITIONS // 2)  # so that a file ends with the last record
        config |= {"path": str(folder), "flush.size": flush_size}
        if case.sink == "json":
            return config | {"connector.class": "JsonFileSink"}, Lines(folder / "topics", "*.json")
        return config | {"connector.class": "ParquetSink"}, ParquetFiles(folder / "topics")

    def wait_for_group(self, group: str, members: int) -> None:
        deadline = time.monotonic() + GIVE_UP_SECONDS
        while time.monotonic() < deadline:
            try:
                found = self.admin.describe_consumer_groups([group])[group].result(timeout=10)
            except Exception as error:  # noqa: BLE001 (the group does not exist yet)
                problem: object = error
            else:
                assigned = sum(len(member.assignment.topic_partitions) for member in found.members)
                if found.state is ConsumerGroupState.STABLE and len(found.members) == members and assigned == PARTITIONS:
                    return
                problem = found.state
            time.sleep(0.05)
        raise FailedRunError(f"group {group} has no partitions: {problem}")

    def wait_for_rows(self, case: Case, name: str, target: Target, count: int) -> None:
        deadline = time.monotonic() + GIVE_UP_SECONDS
        before, moved_at = 0, time.monotonic()
        while (done := target()) < count:
            if done != before:
                before, moved_at = done, time.monotonic()
            if time.monotonic() > deadline:
                state = "" if case.ours else json.dumps(get_status(self.peers[case.sink].rest, name))
                raise FailedRunError(f"{case.name}: gave up after {GIVE_UP_SECONDS} s at {done} of {count} rows {state}")
            if case.ours and done and time.monotonic() > moved_at + STALL_SECONDS:
                raise StalledRunError(f"{case.name}: {done} of {count} rows for {STALL_SECONDS} s")
            time.sleep(0.05)

    def create(self, topic: str, partitions: int) -> None:
        for created in self.admin.create_topics([NewTopic(topic, partitions, 1)]).values():
            created.result()

    def delete(self, topic: str) -> None:
        for deleted in self.admin.delete_topics([topic]).values():
            deleted.result()

    def fill(self, topic: str, case: Case, count: int) -> Producer:
        """Create a topic with records in a transaction, which the caller commits. Upserts get each id twice."""
        self.create(topic, PARTITIONS)
        settings = {"bootstrap.servers": self.bootstrap, "linger.ms": "50", "batch.size": "500000", "compression.type": "lz4"}
        settings |= {"transactional.id": topic, "transaction.timeout.ms": "600000", "log_level": "2"}
        producer = Producer({**settings, "queue.buffering.max.messages": "500000"})
        producer.init_transactions()
        producer.begin_transaction()
        head, tail = (b"", b"") if case.payloads else (envelope(), b"}")
        note = "".join(random.Random(7).choices("abcdefghijklmnopqrstuvwxyz ", k=4000)).encode()  # noqa: S311
        ids = count // 2 if case.upsert else count
        for number in range(count):
            value = head + payload(number, number % ids, note) + tail
            while True:
                try:
                    producer.produce(topic, value, b'"k%d"' % number, partition=number % PARTITIONS)
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.flush()
        return producer


def envelope() -> bytes:
    return b'{"schema":' + json.dumps(_SCHEMA, separators=(",", ":")).encode() + b',"payload":'


def payload(number: int, identity: int, note: bytes) -> bytes:
    start, at = number * 37 % 3900, 1_763_000_000_000 + number * 100
    values = identity, number * 7919 % 9_999_991, number % 5000, _COUNTRIES[number % 4], at, note[start : start + 96]
    return b'{"id":%d,"customer":"c%07d","amount":%d.25,"country":"%s","at":%d,"note":"%s"}' % values


def measure(bench: Bench, cases: list[Case], rounds: int, minutes: float) -> dict[str, Result]:
    """Run the cases in rounds, as many as fit into the time; return the results by the cases' names."""
    results = {case.name: Result() for case in cases}
    begin, longest = time.monotonic(), 0.0
    for number in range(rounds):
        started = time.monotonic()
        if number and started + longest > begin + minutes * 60:
            print(f"only {number} of {rounds} rounds: another one would not end within {minutes:g} minutes", flush=True)
            break
        for case in cases if number % 2 == 0 else reversed(cases):
            if case.name not in results:
                continue
            try:
                try:
                    rate, per_cpu, memory = bench.run(case)
                except StalledRunError as error:
                    print(f"round {number + 1} repeats a case that stalled. {error}", flush=True)
                    rate, per_cpu, memory = bench.run(case)
            except (FailedRunError, ConnectError) as error:  # the other cases' figures are still of use
                print(f"round {number + 1} {case.name} failed: {error}", flush=True)
                del results[case.name]
                continue
            result = results[case.name]
            result.rates.append(rate)
            result.per_cpu.append(per_cpu)
            result.memory.append(memory)
            print(
                f"round {number + 1} {case.name}: {rate:,.0f}/s, {1e6 / per_cpu:.1f} CPU s a million, {memory:,.0f} MB",
                flush=True,
            )
        longest = max(longest, time.monotonic() - started)
    return results


def show(results: dict[str, Result], cases: list[Case], records: int) -> None:
    print(f"\n{records:,} records ({records // 4:,} for upsert, each key twice); medians [lowest-highest];")
    print("ratios are medians of the rounds' ratios.")
    print(f"Iceberg commits every {int(COMMIT_MS) / 1000:g} s. Iceberg's own sink {ICEBERG_VERSION} has no upsert.")
    print(f"Load of the machine: {os.getloadavg()[0]:.1f}\n")
    print("| sink | records/s | to peer | CPU s a million | per CPU s, to peer | PSS MB |")
    print("|---|---|---|---|---|---|")
    for case in cases:
        if case.name not in results:
            print(f"| {case.name} | failed | | | | |")
            continue
        own, peer = results[case.name], results.get(case.peer or "")
        rates = f"{statistics.median(own.rates):,.0f} [{min(own.rates) / 1000:,.0f}k-{max(own.rates) / 1000:,.0f}k]"
        wall, cpu = (ratio(own.rates, peer.rates), ratio(own.per_cpu, peer.per_cpu)) if peer else ("", "")
        million = 1e6 / statistics.median(own.per_cpu)
        print(f"| {case.name} | {rates} | {wall} | {million:.1f} | {cpu} | {statistics.median(own.memory):,.0f} |")
    one, two = (results.get(f"ParquetSink, {which}") for which in ("1 task on one core", "2 tasks"))
    if one and two:
        print(f"\nParquetSink, one core to two: {ratio(two.rates, one.rates)}")


def ratio(own: list[float], other: list[float]) -> str:
    return f"{statistics.median(mine / theirs for mine, theirs in zip(own, other, strict=True)):.2f}x"


def iceberg_jars() -> list[Path]:
    """Return the jars of Iceberg's Connect sink with its dependencies, without those that Connect has."""
    return maven.resolve(ICEBERG_COORDINATES, exclude=_LOGGING_AND_KAFKA, title="Iceberg's Connect sink (about 85 MB)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=800_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=12, help="start no round that would end later than this")
    parser.add_argument("--only", nargs="*", default=[""], metavar="TEXT", help="cases whose names contain one of these")
    options = parser.parse_args()
    if options.records % 32:
        parser.error("--records must be a multiple of 32")
    cases = [case for case in CASES if any(text in case.name for text in options.only)]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # ends the broker and the workers too
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sluiceway-bench-")))
        broker = EmbeddedBroker(folder / "broker")
        stack.callback(broker.stop)
        bootstrap = broker.start()
        # Iceberg's sink is in the services that its jar lists; looking through all its dependencies takes a minute.
        worker = {"offset.flush.interval.ms": "60000", "plugin.discovery": "service_load"}
        peers: dict[str, PeerStandalone] = {}
        for sink in sorted({case.sink for case in cases if not case.ours}):
            jars = iceberg_jars() if sink == "iceberg" else ()
            peers[sink] = PeerStandalone(bootstrap, folder / f"peer-{sink}", [], worker, jars)
            stack.callback(peers[sink].stop)
            peers[sink].start(timeout=240)
        bench = Bench(bootstrap, folder, peers, options.records)
        show(measure(bench, cases, options.rounds, options.minutes), cases, options.records)


if __name__ == "__main__":
    main()
