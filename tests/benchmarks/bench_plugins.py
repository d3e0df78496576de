"""Measures Java plugins here beside the same plugins in Kafka Connect 4.3.0, on one broker, PostgreSQL server, and file.

``mirror-python`` is the class in Python that a config of MirrorMaker's source gets here by default.

Both sides run one task with their own default settings. The rate covers 15 % to 95 % of the records, measured from outside
(the topic's end offset, the output file's size), so start-up does not count. CPU is that of the processes that run the task:
ours are a Python process and its Java process, the peer's is a worker. All are new in each round, so that each has its code to
compile. The sides alternate within each round, so the ratio is the median of the rounds' ratios.

Run: python tests/benchmarks/bench_plugins.py [--records N] [--rounds N] [--only CASE ...] [--checks] [--bootstrap HOST:PORT]
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from bench_engine import (
    CONVERTERS,
    GIVE_UP_SECONDS,
    LINE_BYTES,
    Result,
    measure,
    size,
    spread,
    struct,
    theirs,
    write_envelopes,
    write_lines,
)
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.java_plugins.hosts import close_shared_host
from sluiceway.stack.broker import EmbeddedBroker
from support.database import HOST, DatabaseForTest
from support.engine import RunningTask
from support.eventually import eventually
from support.java_plugins import CONNECT_FILE, DEBEZIUM_POSTGRES, fetch_runtime, first_task_config, plugin_folder
from support.peer import FILE_SINK, FILE_SOURCE, PeerStandalone
from support.plugin_checks import Case, Figures, Limit, Measurement, figure_of, show_checks
from support.postgres import PostgresServer, drop_slots
from support.published_plugins import MIRROR
from support.toggles import table

STRINGS, JSON = CONVERTERS["String"], CONVERTERS["Json, schemas"]
_TRANSFORMS = "org.apache.kafka.connect.transforms."
CHAIN = {
    "transforms": "hoist,host,at",
    "transforms.hoist.type": _TRANSFORMS + "HoistField$Value",
    "transforms.hoist.field": "line",
    "transforms.host.type": _TRANSFORMS + "InsertField$Value",
    "transforms.host.static.field": "host",
    "transforms.host.static.value": "web1",
    "transforms.at.type": _TRANSFORMS + "InsertField$Value",
    "transforms.at.timestamp.field": "at",
}
_WITHOUT_SCHEMAS = {f"{part}.converter.schemas.enable": "false" for part in ("key", "value")}
_DEBEZIUM = "io.debezium.connector.postgresql.PostgresConnector"
_MIRROR = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
_BYTES = dict.fromkeys(
    (f"{part}.converter" for part in ("key", "value", "header")), "org.apache.kafka.connect.converters.ByteArrayConverter"
)
_MIRRORED = {
    **_BYTES,
    **dict.fromkeys((f"{what}.enabled" for what in ("sync.topic.acls", "sync.topic.configs", "refresh.topics")), "false"),
    **dict.fromkeys(("replication.factor", "offset-syncs.topic.replication.factor"), "1"),
    "target.cluster.alias": "here",
}
_SINK_FACTOR = 2  # times the records: sinks are so fast that compiling their code would be much of the time
_DEBEZIUM_SHARE = 4  # of the records: each costs many times what a line does
_TRANSACTIONS = 20


def run_task(config: dict[str, str], bootstrap: str, plugin_path: str, java: str) -> None:
    """Run a task until it is killed; the entry point of its process."""
    use_plugin_path({"plugin.path": plugin_path, "plugin.java": java})
    task_config = config if "task.class" in config else first_task_config(config)
    close_shared_host()
    worker = {"bootstrap.servers": bootstrap, "offset.flush.interval.ms": "60000"}
    with RunningTask(task_config, worker, sink=config["connector.class"] == FILE_SINK) as task:
        print(task.join(within=GIVE_UP_SECONDS).trace or "", file=sys.stderr)


@contextmanager
def ours(config: dict[str, str], bootstrap: str, plugin_path: Path, java: str = "prefer") -> Iterator[psutil.Process]:
    """Run a connector's only task in a new process."""
    process = multiprocessing.get_context("spawn").Process(target=run_task, args=(config, bootstrap, str(plugin_path), java))
    process.start()
    try:
        yield psutil.Process(process.pid)
    finally:
        process.kill()
        process.join()


def family_of(process: psutil.Process) -> list[psutil.Process]:
    return [process, *process.children(recursive=True)]


def cpu_seconds(process: psutil.Process) -> float:
    """Return the CPU time of a process and its children."""
    times = [each.cpu_times() for each in family_of(process)]
    return sum(each.user + each.system for each in times)


class Bench:
    """The servers, and the cases to measure on them."""

    def __init__(self, bootstrap: str, folder: Path, peer: PeerStandalone, postgres: PostgresServer, records: int) -> None:
        self.bootstrap = bootstrap
        self.folder = folder
        self.plugin_path = folder / "plugins"
        self.peer = peer
        self.postgres = postgres
        self.records = records
        self.input = folder / "input.txt"
        self.watcher = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench"})
        self._filled: dict[str, str] = {}
        write_lines(self.input, records)

    def file_source(self, side: str, options: Mapping[str, str]) -> tuple[float, float]:
        name = self.topic("lines")
        config = {"name": name, "connector.class": FILE_SOURCE, "file": str(self.input), "topic": name, **options}
        return self._run(side, config, lambda: self.end(name), self.records)

    def file_sink(self, side: str, options: Mapping[str, str]) -> tuple[float, float]:
        structs, count = options is JSON, self.records * _SINK_FACTOR
        name, output = f"sink-{uuid.uuid4().hex[:8]}", self.folder / "output.txt"
        output.unlink(missing_ok=True)
        config = {"name": name, "connector.class": FILE_SINK, "file": str(output), **options}
        config["topics"] = self.filled("structs" if structs else "strings")
        width = len(struct_line()) if structs else LINE_BYTES
        try:
            return self._run(side, config, lambda: size(output) // width, count)
        finally:
            output.unlink(missing_ok=True)

    def mirror(self, side: str, options: Mapping[str, str]) -> tuple[float, float]:
        return self._mirror(side, options, "prefer")

    def python_mirror(self, side: str, options: Mapping[str, str]) -> tuple[float, float]:
        return self._mirror(side, options, "fallback")

    def _mirror(self, side: str, options: Mapping[str, str], java: str) -> tuple[float, float]:
        """Copy a topic to another one of the same broker, whose name begins with the source's alias."""
        topic, alias = self.filled("strings"), f"from{uuid.uuid4().hex[:8]}"
        remote = self.topic(f"{alias}.{topic}", exactly=True)
        servers = {f"{cluster}.cluster.bootstrap.servers": self.bootstrap for cluster in ("source", "target")}
        config = {"name": alias, "connector.class": _MIRROR, "topics": topic, "source.cluster.alias": alias, **servers, **options}
        return self._run(side, config, lambda: self.end(remote), self.records * _SINK_FACTOR, java)

    def snapshot(self, side: str, options: Mapping[str, str]) -> tuple[float, float]:
        return self._debezium(side, {**options, "snapshot.mode": "initial_only"}, streamed=False)

    def stream(self, side: str, options: Mapping[str, str]) -> tuple[float, float]:
        return self._debezium(side, {**options, "snapshot.mode": "no_data"}, streamed=True)

    def _debezium(self, side: str, options: Mapping[str, str], *, streamed: bool) -> tuple[float, float]:
        name = f"cdc_{uuid.uuid4().hex[:8]}"
        database, count = self.postgres.first, self.records // _DEBEZIUM_SHARE
        database.execute(f"create table {name} (id int primary key, name text, amount numeric(10, 2), note text, at timestamptz)")
        config = {**debezium_config(name, database), **options}
        topic = self.topic(f"{name}.public.{name}", exactly=True)
        if not streamed:
            insert(database, name, 0, count)
        sides = self._side(side, config)
        try:
            with sides as cpu:
                if streamed:
                    eventually(lambda: self._active(name), within=120, what="the replication slot to be in use")
                    for part in range(_TRANSACTIONS):
                        insert(database, name, part * count // _TRANSACTIONS, (part + 1) * count // _TRANSACTIONS)
                return measure(lambda: self.end(topic), cpu, count)
        finally:
            drop_slots(database, f"slot_name = '{name}'")
            database.execute(f"drop publication if exists {name}")
            database.execute(f"drop table {name}")

    def _active(self, slot: str) -> bool:
        return self.postgres.first.execute("select 1 from pg_replication_slots where active and slot_name = %s", slot) != []

    def _run(
        self, side: str, config: dict[str, str], progress: Callable[[], int], count: int, java: str = "prefer"
    ) -> tuple[float, float]:
        with self._side(side, config, java) as cpu:
            return measure(progress, cpu, count)

    @contextmanager
    def _side(self, side: str, config: dict[str, str], java: str = "prefer") -> Iterator[Callable[[], float]]:
        """Run a connector on a side; yields what returns the CPU seconds of its processes. ``java`` is our ``plugin.java``."""
        if side == "peer":
            with self.peer, theirs(config, self.peer) as cpu:
                yield cpu
        else:
            with ours(config, self.bootstrap, self.plugin_path, java) as process:
                yield lambda: cpu_seconds(process)

    def end(self, topic: str) -> int:
        """Return the end offset of a topic's only partition, 0 while its leader is not known."""
        try:
            return int(self.watcher.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)[1])
        except KafkaException:
            return 0

    def topic(self, name: str, *, exactly: bool = False) -> str:
        """Create a topic and return its name."""
        name = name if exactly else f"{name}-{uuid.uuid4().hex[:8]}"
        admin = AdminClient({"bootstrap.servers": self.bootstrap})  # kept in a variable: its futures end with it
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(30)
        return name

    def filled(self, kind: str) -> str:
        """Return a topic of strings or structs for sinks."""
        if kind not in self._filled:
            name = self._filled[kind] = self.topic(kind)
            if kind == "structs":
                write_envelopes(self.bootstrap, name, self.records * _SINK_FACTOR)
                return name
            for part in range(1, _SINK_FACTOR + 1):
                config = {
                    "name": f"{name}-{part}",
                    "connector.class": FILE_SOURCE,
                    "file": str(self.input),
                    "topic": name,
                    **STRINGS,
                }
                with ours(config, self.bootstrap, self.plugin_path, "fallback"):
                    eventually(lambda: self.end(name) >= self.records * part, within=GIVE_UP_SECONDS)  # noqa: B023
        return self._filled[kind]


def debezium_config(name: str, database: DatabaseForTest) -> dict[str, str]:
    """Return the config of a connector that reads the table of its name."""
    return {
        "name": name,
        "connector.class": _DEBEZIUM,
        "database.hostname": HOST,
        "database.port": str(database.port),
        "database.user": database.user,
        "database.password": database.password,
        "database.dbname": database.name,
        "topic.prefix": name,
        "plugin.name": "pgoutput",
        "slot.name": name,
        "publication.name": name,
        "publication.autocreate.mode": "filtered",
        "table.include.list": f"public.{name}",
    }


def struct_line() -> str:
    """Return the line that the file sink writes for a struct."""
    return f"Struct{{{','.join(f'{name}={value}' for name, value in struct(0).items())}}}\n"


def insert(database: DatabaseForTest, table: str, low: int, high: int) -> None:
    """Insert rows with the ids from ``low`` to before ``high`` in a transaction."""
    row = "n, 'customer ' || n, n % 10000 / 100.0, repeat('paid by card, delivered ', 3), now()"
    database.execute(f"insert into {table} select {row} from generate_series({low}, {high - 1}) n")  # noqa: S608 (our own names)


@dataclass
class Measured:
    """The results of a case's rounds."""

    case: Case
    ours: Result = field(default_factory=Result)
    peer: Result = field(default_factory=Result)

    def figures(self) -> Figures:
        ratio = statistics.median(own / other for own, other in zip(self.ours.rates, self.peer.rates, strict=True))
        return Figures(ratio, self.ours.cpu_per_million(), self.peer.cpu_per_million())

    def row(self) -> tuple[str, ...]:
        found = self.figures()
        return (
            self.case.name,
            spread(self.ours.rates),
            spread(self.peer.rates),
            f"{found.ratio:.2f}x",
            f">= {self.case.limit.ratio}x",
            f"{found.own_cpu:.2f}",
            f"{found.peer_cpu:.2f}",
            "yes" if figure_of(self.case, found).good else "NO",
        )


CASES = (
    Case("source-strings", "file_source", STRINGS, Limit(1.5, 4)),
    Case("source-json", "file_source", {**JSON, **CHAIN}, Limit(1.5, 8)),
    Case("sink-strings", "file_sink", STRINGS, Limit(1.0, 5)),
    Case("sink-json", "file_sink", JSON, Limit(1.0, 12)),
    Case("mirror", "mirror", _MIRRORED, Limit(1.0)),
    Case("mirror-python", "python_mirror", _MIRRORED, Limit(1.0)),
    Case("debezium-snapshot", "snapshot", {**JSON, **_WITHOUT_SCHEMAS}, Limit(1.0)),
    Case("debezium-stream", "stream", {**JSON, **_WITHOUT_SCHEMAS}, Limit(1.0)),
)


def compare(bench: Bench, cases: list[Case], rounds: int) -> list[Measured]:
    """Measure both sides of each case, in alternating order."""
    measured = [Measured(case) for case in cases]
    for number in range(rounds):
        for each in measured:
            for side in ("ours", "peer") if number % 2 == 0 else ("peer", "ours"):
                found = getattr(bench, each.case.method)(side, each.case.options)
                getattr(each, side).add(found)
                print(f"round {number + 1} {each.case.name}, {side}: {found[0]:,.0f}/s, {found[1]:.2f} cores", flush=True)
    return measured


def show(measured: list[Measured], records: int) -> None:
    sizes = f"{records:,} records (sinks {records * _SINK_FACTOR:,}, Debezium {records // _DEBEZIUM_SHARE:,})"
    print(f"\nRecords/s, median [lowest-highest], of {sizes}")
    print("CPU: seconds for a million records, of the task's processes")
    headings = ("case", "ours", "Kafka Connect", "ratio", "goal", "CPU ours", "CPU peer", "reached")
    print(table(headings, [each.row() for each in measured]))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=[case.name for case in CASES], help="measure these cases only")
    parser.add_argument("--checks", action="store_true", help="then run the tests of the other checks, and print all twelve")
    parser.add_argument("--bootstrap", help="use this broker instead of starting one")
    return parser.parse_args()


@contextmanager
def opened(records: int, bootstrap: str | None = None) -> Iterator[Bench]:
    """Start the servers, and stop them at the end."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sluiceway-bench-")))
        if bootstrap is None:
            broker = EmbeddedBroker(folder / "broker")
            bootstrap = broker.start()
            stack.callback(broker.stop)
        fetch_runtime()
        plugin_folder(folder / "plugins", "connect-file", CONNECT_FILE)
        plugin_folder(folder / "plugins", "debezium-postgres", DEBEZIUM_POSTGRES)
        plugin_folder(folder / "plugins", "mirror", MIRROR)
        postgres = stack.enter_context(PostgresServer())
        worker = {"offset.flush.interval.ms": "60000", "plugin.path": str(folder / "plugins"), "plugin.discovery": "service_load"}
        bench = Bench(bootstrap, folder, PeerStandalone(bootstrap, folder / "peer", [], worker), postgres, records)
        stack.callback(bench.watcher.close)
        yield bench


def main() -> None:
    options = arguments()
    cases = [case for case in CASES if options.only is None or case.name in options.only]
    figures: dict[str, Measurement] = {}
    with opened(options.records, options.bootstrap) as bench:
        measured = compare(bench, cases, options.rounds)
        figures.update((each.case.name, figure_of(each.case, each.figures())) for each in measured)
        if options.checks:
            from bench_plugins_start import figures_of, rounds_of

            figures.update(figures_of(rounds_of(bench, options.rounds)))
    show(measured, options.records)
    if options.checks and not show_checks(figures):
        raise SystemExit("A check does not hold.")


if __name__ == "__main__":
    main()
