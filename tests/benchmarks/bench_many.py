"""Measures what many small connectors cost in one shared application, beside a real Kafka Connect worker.

Half of the connectors are FileStreamSource, half FileStreamSink of the sources' topics. Each runs on a broker of its own:

* seconds from the first POST until all are RUNNING, and from the POST of one more until it is RUNNING;
* memory of all processes but the broker (PSS, MB) and their processor seconds a minute, idle and with a line a second and source;
* the broker's processor seconds a minute while all are idle;
* milliseconds from a line in a source's file to its record in the topic, and on to the line in the sink's file;
* with --busy, the same second by second while a connector of 100,000 records a second starts beside the others.

Run: python tests/benchmarks/bench_many.py [--connectors 1 10 50 200] [--seconds 30] [--peers sluiceway airflow connect] [--busy]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import psutil
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient, NewTopic

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sluiceway.herder import Herder
from sluiceway.spark.session import local_conf
from sluiceway.stack.broker import EmbeddedBroker
from sluiceway.storage.factory import Stores, open_stores
from support.clusters.daemons import command_of
from support.driver import submitted_application, worker_of, worker_properties, write_properties
from support.peer import FILE_SINK, FILE_SOURCE, PeerDistributed
from support.stack import RunningStack
from support.toggles import table

PATIENCE_SECONDS = 300.0
STRING = "org.apache.kafka.connect.storage.StringConverter"
VERIFIABLE_SOURCE = "org.apache.kafka.connect.tools.VerifiableSourceConnector"
BUSY_RECORDS, BUSY_LIMIT_MS, BUSY_SECONDS = 100_000, 50.0, 60.0
_MB = 1 << 20


class Runtime(Protocol):
    """Runs connectors: a shared application, or a Kafka Connect worker."""

    def create(self, name: str, config: Mapping[str, str]) -> None: ...

    def running(self) -> int:
        """Return how many connectors are RUNNING with all their tasks."""

    def roots(self) -> list[int]:
        """Return the processes whose descendants belong to it."""


class Application:
    """One shared application in local mode."""

    def __init__(self, bootstrap: str, folder: Path, stack: ExitStack) -> None:
        properties = worker_properties(bootstrap, "many", **{"status.storage.partitions": "5"})
        self._stores: Stores = stack.enter_context(open_stores(worker_of(properties)))
        self._herder = Herder(worker_of(properties), self._stores.config, self._stores.status, self._stores.offsets)
        file = write_properties(folder / "worker.properties", properties)
        self._driver = submitted_application("many", file, folder, master="local[64]", conf=local_conf())
        stack.callback(self._driver.stop, 60)
        self._started = False

    def create(self, name: str, config: Mapping[str, str]) -> None:
        self._herder.put_config(name, {"name": name, "sluiceway.application": "many", **config})
        if not self._started:
            self._started = True
            self._driver.start()

    def running(self) -> int:
        found = 0
        for name in self._stores.config.snapshot().names():
            status = self._herder.status(name)
            states = [status.connector.state.value, *(each.state.value for each in status.tasks.values())]
            found += len(states) > 1 and set(states) == {"RUNNING"}
        return found

    def roots(self) -> list[int]:
        return [self._driver.status().pid or 0]

    @property
    def log(self) -> Path:
        return self._driver.log


class _Rest:
    """Runs connectors by a REST API."""

    def __init__(self, url: str, stack: ExitStack) -> None:
        import httpx

        self._client = httpx.Client(base_url=url, timeout=60)
        stack.callback(self._client.close)

    def create(self, name: str, config: Mapping[str, str]) -> None:
        self._client.put(f"/connectors/{name}/config", json={"name": name, **config}).raise_for_status()

    def states(self) -> dict[str, list[str]]:
        """Return the states of each connector and of its tasks."""
        found = self._client.get("/connectors", params={"expand": "status"}).json()
        return {
            name: [each["status"]["connector"]["state"], *(task["state"] for task in each["status"]["tasks"])]
            for name, each in found.items()
        }

    def running(self) -> int:
        return sum(len(states) > 1 and set(states) == {"RUNNING"} for states in self.states().values())


class Peer(_Rest):
    """A distributed Kafka Connect worker."""

    def __init__(self, bootstrap: str, folder: Path, stack: ExitStack) -> None:
        self._worker = PeerDistributed(bootstrap, "peer", folder / "connect", ("peer-configs", "peer-offsets", "peer-status"))
        stack.callback(self._worker.stop)
        self._worker.start()
        super().__init__(self._worker.rest, stack)

    def roots(self) -> list[int]:
        return [self._worker.pid or 0]


class AirflowApplication(_Rest):
    """A shared application that a local Airflow starts. Airflow's own processes are not measured, but share files with ours."""

    def __init__(self, airflow: RunningStack, stack: ExitStack) -> None:
        super().__init__(airflow.addresses.rest, stack)
        self._airflow = airflow

    def create(self, name: str, config: Mapping[str, str]) -> None:
        super().create(name, {"sluiceway.application": "many", **config})

    def roots(self) -> list[int]:
        jvm = self._airflow.jvm("many")
        return [jvm.pid if jvm is not None else 0]


@dataclass
class Result:
    runtime: str
    connectors: int
    all_running: float
    next_running: float = 0.0
    memory: float = 0.0
    processes: int = 0
    threads: int = 0
    idle_cpu: float = 0.0
    broker_cpu: float = 0.0
    busy_cpu: float = 0.0
    to_topic: list[float] = field(default_factory=list)
    to_file: list[float] = field(default_factory=list)
    missing: int = 0


def connector(kind: str, number: int, folder: Path) -> dict[str, str]:
    source = kind == "source"
    return {
        "connector.class": FILE_SOURCE if source else FILE_SINK,
        "tasks.max": "1",
        "topic" if source else "topics": f"many-{number}",
        "file": str(folder / (f"in-{number}.txt" if source else f"out-{number}.txt")),
        "key.converter": STRING,
        "value.converter": STRING,
    }


def wait(condition: Callable[[], bool], what: str) -> float:
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > PATIENCE_SECONDS:
            raise SystemExit(f"gave up after {PATIENCE_SECONDS:g} s: {what}")
        time.sleep(0.05)
    return time.monotonic() - began


def measure(
    name: str, runtime: Runtime, broker: EmbeddedBroker, count: int, seconds: float, folder: Path, *, busy: bool
) -> Result:
    bootstrap = broker.start()  # its address: it runs
    pairs = max(1, count // 2)
    for number in range(pairs + 1):
        (folder / f"in-{number}.txt").touch()
        (folder / f"out-{number}.txt").touch()
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(f"many-{number}", 1, 1) for number in range(pairs + 1)]).values():
        future.result()
    began = time.monotonic()
    names = [("source", number) for number in range(pairs)] + ([("sink", number) for number in range(pairs)] if count > 1 else [])
    for kind, number in names:
        runtime.create(f"{kind}-{number}", connector(kind, number, folder))
    wait(lambda: runtime.running() >= len(names), f"{len(names)} connectors RUNNING")
    result = Result(name, len(names), time.monotonic() - began)
    print(f"{name}: {len(names)} connectors RUNNING after {result.all_running:.1f} s", flush=True)
    runtime.create(f"source-{pairs}", connector("source", pairs, folder))
    result.next_running = wait(lambda: runtime.running() > len(names), "the next connector RUNNING")
    time.sleep(15)
    result.idle_cpu, result.broker_cpu = idle(runtime, broker, seconds)
    result.memory, result.processes, result.threads = memory(runtime)
    lines, result.busy_cpu = latencies(runtime, bootstrap, pairs, seconds, folder)
    result.to_topic, result.to_file = seen(each.to_topic for each in lines), seen(each.to_file for each in lines)
    result.missing = len(lines) - len(result.to_topic)
    print(
        f"  ms to topic {percentiles(result.to_topic)}, to file {percentiles(result.to_file)}, {result.missing} missing",
        flush=True,
    )
    if busy:
        beside_busy(runtime, bootstrap, pairs, max(seconds, BUSY_SECONDS), folder)
    return result


def family(runtime: Runtime) -> list[psutil.Process]:
    found: dict[int, psutil.Process] = {}
    for root in runtime.roots():
        process = psutil.Process(root)
        found |= {each.pid: each for each in (process, *process.children(recursive=True))}
    return list(found.values())


def cpu(runtime: Runtime) -> dict[psutil.Process, float]:
    found = {}
    for each in family(runtime):
        try:
            times = each.cpu_times()
        except psutil.Error:
            continue
        found[each] = times.user + times.system
    return found


def idle(runtime: Runtime, broker: EmbeddedBroker, seconds: float) -> tuple[float, float]:
    """Return processor seconds a minute of the runtime and of the broker while nothing happens; print each process's."""
    began, before, served = time.monotonic(), cpu(runtime), psutil.Process(broker.status().pid).cpu_times()
    time.sleep(seconds)
    minutes = (time.monotonic() - began) / 60
    serving = psutil.Process(broker.status().pid).cpu_times()
    used = {process: (spent - before.get(process, 0.0)) / minutes for process, spent in cpu(runtime).items()}
    for process, spent in used.items():
        print(f"  {spent:5.2f} CPU s/min  {command_of(process)[-60:]}", flush=True)
    return sum(used.values()), (serving.user + serving.system - served.user - served.system) / minutes


def memory(runtime: Runtime) -> tuple[float, int, int]:
    processes = family(runtime)
    rows = []
    for each in processes:
        with suppress(psutil.Error):  # it has just ended
            rows.append((each.memory_full_info().pss / _MB, each.num_threads(), command_of(each)[-60:]))
    rows.sort()
    for pss, threads, command in rows:
        print(f"  {pss:7.1f} MB {threads:4d} threads  {command}", flush=True)
    return sum(row[0] for row in rows), len(rows), sum(row[1] for row in rows)


@dataclass(frozen=True, slots=True)
class Line:
    """A line in a source's file. ``at`` is in seconds since the first one; the others in milliseconds, None if not seen."""

    at: float
    to_topic: float | None
    to_file: float | None


class Watcher:
    """Notes when lines arrive in the topics and in the sinks' files, on threads of its own."""

    def __init__(self, bootstrap: str, pairs: int, folder: Path) -> None:
        self._pairs, self._folder = pairs, folder
        self.in_topic: dict[str, float] = {}
        self.in_file: dict[str, float] = {}
        self._end = threading.Event()
        # From the beginning, because the assignment may be known before the consumer has a position.
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "watch", "auto.offset.reset": "earliest", "fetch.wait.max.ms": 10}
        )
        assigned = threading.Event()
        self._consumer.subscribe([f"many-{number}" for number in range(pairs)], on_assign=lambda *_: assigned.set())
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._topics, self._files)]
        for thread in self._threads:
            thread.start()
        if not assigned.wait(60):
            raise SystemExit("the benchmark's own consumer was assigned no partitions")

    def close(self) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()
        self._consumer.close()

    def _topics(self) -> None:
        while not self._end.is_set():
            message = self._consumer.poll(0.1)
            if message is not None and message.error() is None:
                self.in_topic[(message.value() or b"").decode()] = time.time()

    def _files(self) -> None:
        readers = [(self._folder / f"out-{number}.txt").open() for number in range(self._pairs)]
        while not self._end.is_set():
            for reader in readers:
                while line := reader.readline():
                    self.in_file.setdefault(line.rstrip(), time.time())
            time.sleep(0.002)


def latencies(
    runtime: Runtime, bootstrap: str, pairs: int, seconds: float, folder: Path, middle: Callable[[], None] = lambda: None
) -> tuple[list[Line], float]:
    """Append a line a second to each source's file; return the lines and CPU s/min. Calls ``middle`` after a third of it."""
    watcher = Watcher(bootstrap, pairs, folder)
    written: dict[str, tuple[float, float]] = {}
    began, before = time.monotonic(), sum(cpu(runtime).values())
    outs = [(folder / f"in-{number}.txt").open("a") for number in range(pairs)]
    for second in range(int(seconds)):
        if second == int(seconds) // 3:
            middle()
        for number, out in enumerate(outs):
            due = second + number / pairs
            time.sleep(max(0.0, began + due - time.monotonic()))
            line = f"{number}-{second}"
            out.write(f"{line}\n")
            written[line] = due, time.time()
            out.flush()
    busy = (sum(cpu(runtime).values()) - before) / (time.monotonic() - began) * 60
    time.sleep(5)
    watcher.close()

    def since(seen: Mapping[str, float], line: str, at: float) -> float | None:
        return 1000 * (seen[line] - at) if line in seen else None

    lines = [
        Line(due, since(watcher.in_topic, line, at), since(watcher.in_file, line, at)) for line, (due, at) in written.items()
    ]
    return lines, busy


def seen(times: Iterable[float | None]) -> list[float]:
    return [each for each in times if each is not None]


def beside_busy(runtime: Runtime, bootstrap: str, pairs: int, seconds: float, folder: Path) -> None:
    """Print the p95 latency of the lines, second by second, while a connector of 100,000 records a second starts beside them."""
    topic = "many-busy"
    config = {"connector.class": VERIFIABLE_SOURCE, "tasks.max": "1", "topic": topic, "throughput": str(BUSY_RECORDS)}
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(topic, 1, 1)]).values():
        future.result()
    lines, _ = latencies(runtime, bootstrap, pairs, seconds, folder, lambda: runtime.create("busy", config))
    late = 0
    start = int(seconds) // 3
    for second in range(int(seconds)):
        times = sorted(seen(each.to_topic for each in lines if int(each.at) == second))
        p95 = times[int(0.95 * len(times))] if times else float("inf")
        late += p95 > BUSY_LIMIT_MS and second >= start
        print(f"  second {second - start:4d} of the busy connector: p95 {p95:7.1f} ms, {len(times)} lines", flush=True)
    watched = Consumer({"bootstrap.servers": bootstrap, "group.id": "count"})
    _, end = watched.get_watermark_offsets(KafkaPartition(topic, 0), timeout=30)
    watched.close()
    print(f"beside {end / (seconds - start):,.0f} records a second: p95 above {BUSY_LIMIT_MS:g} ms in {late} seconds", flush=True)


def percentiles(values: list[float]) -> str:
    if len(values) < 2:
        return "-"
    cuts = statistics.quantiles(values, n=20)
    return f"{statistics.median(values):.0f} / {cuts[18]:.0f}"


def run(name: str, count: int, seconds: float, *, busy: bool) -> Result:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-many-")))
        if name == "airflow":
            airflow = RunningStack(folder / "stack", postgres=True)
            stack.callback(airflow.close)
            airflow.await_class_archive()
            application = AirflowApplication(airflow, stack)
            return measure(name, application, EmbeddedBroker(folder / "stack" / "broker"), count, seconds, folder, busy=busy)
        broker = EmbeddedBroker(folder / "broker")
        stack.callback(broker.stop)
        bootstrap = broker.start()
        runtime: Runtime = Application(bootstrap, folder, stack) if name == "sluiceway" else Peer(bootstrap, folder, stack)
        return measure(name, runtime, broker, count, seconds, folder, busy=busy)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connectors", type=int, nargs="+", default=[1, 10, 50, 200])
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--peers", nargs="+", default=["sluiceway", "connect"])
    parser.add_argument("--busy", action="store_true", help="then start a connector of 100,000 records a second beside them")
    options = parser.parse_args()
    results = [run(name, count, options.seconds, busy=options.busy) for count in options.connectors for name in options.peers]
    headings = ("", "connectors", "s to RUNNING", "next one, s", "PSS MB", "processes", "threads")
    costs = ("CPU s/min idle", "broker's", "at 1/s", "ms to topic p50 / p95", "ms to file", "missing")
    rows = [
        [
            each.runtime,
            str(each.connectors),
            f"{each.all_running:.1f}",
            f"{each.next_running:.2f}",
            f"{each.memory:.0f}",
            str(each.processes),
            str(each.threads),
            f"{each.idle_cpu:.1f}",
            f"{each.broker_cpu:.1f}",
            f"{each.busy_cpu:.1f}",
            percentiles(each.to_topic),
            percentiles(each.to_file),
            str(each.missing),
        ]
        for each in results
    ]
    print(f"\n{time.strftime('%Y-%m-%d')}, {os.cpu_count()} processors, load at the end {os.getloadavg()[0]:.1f}")
    print(table((*headings, *costs), rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
