"""``sluiceway migrate`` moves ten connectors, Java plugins among them, from a real Kafka Connect cluster and back under load."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from sluiceway.java_plugins.runtime_jars import fetched_home
from sluiceway.stack.ports import free_port
from sluiceway.stack.process import BackgroundProcess
from support import java_plugins, peer
from support.database import DatabaseForTest
from support.driver import submitted_application, worker_properties, write_properties
from support.eventually import NEVER, eventually
from support.growing_file import GrowingFile
from support.java_plugins import DEBEZIUM_POSTGRES, compiled_plugin, debezium_postgres, fetch_runtime, plugin_folder
from support.migration import complete, file_sink, file_source, lines_of
from support.transactions import seen

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.peer, pytest.mark.long, pytest.mark.timeout(3600)]

Names = Callable[[str], str]

_STRING = "org.apache.kafka.connect.storage.StringConverter"
_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
_JSON = "org.apache.kafka.connect.json.JsonConverter"
_CONVERTERS = ("key.converter", "value.converter")
_OWN = "org.sluiceway.tests.migration"
_PLUGINS = {
    "connect-mirror": ("org.apache.kafka:connect-mirror:4.3.0",),
    "debezium-postgres": DEBEZIUM_POSTGRES,
}

_SERVICES = {
    "org.apache.kafka.connect.source.SourceConnector": [f"{_OWN}.NumbersSource"],
    "org.apache.kafka.connect.sink.SinkConnector": [f"{_OWN}.LinesSink"],
}


class Rows:
    """A table into which a thread inserts a row every 50 ms."""

    def __init__(self, database: DatabaseForTest) -> None:
        self._database = database
        self._end = threading.Event()
        self.inserted = 0
        database.execute("create table people (id int primary key, name text)")
        self._thread = threading.Thread(target=self._insert, daemon=True)
        self._thread.start()

    def _insert(self) -> None:
        with closing(self._database.connect()) as connection, closing(connection.cursor()) as cursor:
            while not self._end.wait(0.05):
                cursor.execute("insert into people values (%s, %s)", (self.inserted + 1, f"name {self.inserted + 1}"))
                self.inserted += 1

    def close(self) -> set[int]:
        self._end.set()
        self._thread.join()
        return set(range(1, self.inserted + 1))


class Connectors:
    """Ten connectors, what they read, and the checks of what they write."""

    def __init__(self, folder: Path, bootstrap: str, database: DatabaseForTest, unique: Names) -> None:
        self.bootstrap = bootstrap
        self.prefix = unique("migrate")
        self.slot = self.prefix.replace("-", "_")
        self.files = {name: GrowingFile(folder / f"{name}.txt") for name in ("python", "smt")}
        self.outputs = {name: folder / f"{name}.out" for name in ("python", "java", "mirror", "stopped")}
        self.paused = folder / "paused.txt"
        self.paused.write_text("never read\n")
        self.rows = Rows(database)
        topics = {name: f"{self.prefix}.{name}" for name in ("python", "java", "smt", "paused")}
        configs = {
            "python-source": file_source(self.files["python"].path, topics["python"]),
            "python-sink": file_sink(self.outputs["python"], topics["python"]),
            "java-source": {"connector.class": f"{_OWN}.NumbersSource", "topic": topics["java"]},
            "java-sink": {**file_sink(self.outputs["java"], topics["java"]), "connector.class": f"{_OWN}.LinesSink"},
            "smt": file_source(self.files["smt"].path, topics["smt"], **_smts()),
            "mirror": _mirror(bootstrap, topics["python"]),
            "mirror-sink": file_sink(self.outputs["mirror"], f"m.{topics['python']}"),
            "debezium": debezium_postgres(
                database, self.prefix, self.slot, table_include_list="public.people", poll_interval_ms="100"
            ),
            "paused": file_source(self.paused, topics["paused"]),
            "stopped": file_sink(self.outputs["stopped"], topics["python"]),
        }
        self.configs: dict[str, Mapping[str, str]] = {f"{self.prefix}-{name}": config for name, config in configs.items()}
        self.states = dict.fromkeys(self.configs, "RUNNING")
        self.states |= {f"{self.prefix}-paused": "PAUSED", f"{self.prefix}-stopped": "STOPPED"}

    def create(self, rest: str) -> None:
        for name, config in self.configs.items():
            peer.put_config(rest, name, config)
            peer.wait_for_state(rest, name, "RUNNING")
        for name, verb in ((f"{self.prefix}-paused", "pause"), (f"{self.prefix}-stopped", "stop")):
            peer.change_state(rest, name, verb)
        eventually(lambda: self.seen_states(rest) == self.states, what="the states")

    def seen_states(self, rest: str) -> dict[str, str]:
        """Return the state of each connector: that of its tasks if it has some."""
        found = {}
        for name in self.configs:
            states = peer.states(rest, name)
            found[name] = next((state for state in states if state != states[0]), states[0]) if states else ""
        return found

    def grow(self) -> None:
        """Wait until all sources have read something new, and sinks have written it."""
        before = len(lines_of(self.outputs["java"]))
        for file in self.files.values():
            file.grows(100)
        eventually(lambda: len(lines_of(self.outputs["java"])) > before, what="lines of Java plugins")

    def check(self) -> Counter[str]:
        """Check that no record is lost, and return how many are there more than once, by what wrote them."""
        lines = {name: file.close() for name, file in self.files.items()}
        rows = self.rows.close()
        again: Counter[str] = Counter()
        for name in ("python", "mirror"):
            again[name] = len(complete(self.outputs[name], lines["python"])) - len(lines["python"])
        numbers = [int(line.removeprefix("line ")) for line in lines_of(self.outputs["java"])]
        assert set(numbers) == set(range(1, max(numbers) + 1)), "each number up to the last"
        again["java"] = len(numbers) - max(numbers)
        again["smt"] = self._complete_topic(f"{self.prefix}.smt", _hoisted, lines["smt"])
        again["debezium"] = self._complete_topic(f"{self.prefix}.public.people", _row_id, sorted(rows))
        stopped = lines_of(self.outputs["stopped"])
        assert len(stopped) < len(lines["python"]), "it has stopped"
        return again

    def _complete_topic(self, topic: str, read: Callable[[bytes], object], expected: Sequence[object]) -> int:
        def values() -> list[object]:
            return [read(message.value() or b"") for message in seen(self.bootstrap, topic)]

        found = eventually(lambda: each if set(expected) <= set(each := values()) else None, what=f"all of {topic}")
        return len(found) - len(expected)


def _hoisted(value: bytes) -> object:
    document = json.loads(value)
    assert document["origin"] == "here"
    return document["line"]


def _row_id(value: bytes) -> object:
    return json.loads(value)["after"]["id"]


def _smts() -> dict[str, str]:
    transforms = "org.apache.kafka.connect.transforms"
    return {
        "transforms": "hoist,origin",
        "transforms.hoist.type": f"{transforms}.HoistField$Value",
        "transforms.hoist.field": "line",
        "transforms.origin.type": f"{transforms}.InsertField$Value",
        "transforms.origin.static.field": "origin",
        "transforms.origin.static.value": "here",
        "value.converter": _JSON,
        "value.converter.schemas.enable": "false",
    }


def _mirror(bootstrap: str, topics: str) -> dict[str, str]:
    return {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": "m",
        "target.cluster.alias": "t",
        "source.cluster.bootstrap.servers": bootstrap,
        "target.cluster.bootstrap.servers": bootstrap,
        "topics": topics,
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "sync.topic.acls.enabled": "false",
        "refresh.topics.interval.seconds": "2",
        **dict.fromkeys(_CONVERTERS, _BYTES),
    }


@pytest.fixture(scope="module")
def plugin_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    fetch_runtime()
    folder = tmp_path_factory.mktemp("plugins")
    for name, coordinates in _PLUGINS.items():
        plugin_folder(folder, name, coordinates)
    sources = sorted((Path(java_plugins.__file__).parent / "java" / "migration").glob("*.java"))
    compiled_plugin(folder, "numbers", sources, _SERVICES)
    return folder


@pytest.fixture
def connectors(tmp_path: Path, kafka_bootstrap: str, postgresql: DatabaseForTest, unique: Names) -> Iterator[Connectors]:
    made = Connectors(tmp_path, kafka_bootstrap, postgresql, unique)
    yield made
    for file in made.files.values():
        file.close()
    made.rows.close()
    slots = "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = %s and not active"
    postgresql.execute(slots, made.slot)


@pytest.fixture
def theirs(tmp_path: Path, kafka_bootstrap: str, unique: Names, plugin_path: Path) -> Iterator[str]:
    """The address of a Kafka Connect cluster."""
    group = unique("theirs")
    topics = (f"{group}-configs", f"{group}-offsets", f"{group}-status")
    extra = {"plugin.path": str(plugin_path), "plugin.discovery": "service_load", **dict.fromkeys(_CONVERTERS, _STRING)}
    with peer.PeerDistributed(kafka_bootstrap, group, tmp_path / "peer", topics, extra) as worker:
        yield worker.rest


@pytest.fixture(params=["prefer", "fallback"])
def preference(request: pytest.FixtureRequest) -> str:
    """Whether Sluiceway prefers Java plugins, or its own connectors of the same names."""
    return str(request.param)


@pytest.fixture
def ours(tmp_path: Path, kafka_bootstrap: str, unique: Names, plugin_path: Path, preference: str) -> Iterator[str]:
    """The address of ``sluiceway rest``, with a shared application on a local Spark master."""
    port = free_port()
    own = {
        "listeners": f"http://127.0.0.1:{port}",
        "plugin.path": str(plugin_path),
        "plugin.java": preference,
        "sluiceway.application.default": "all",
        "sluiceway.heartbeat.interval.ms": "1000",
    }
    file = write_properties(tmp_path / "worker.properties", worker_properties(kafka_bootstrap, unique("ours"), **own))
    command: list[str | Path] = [sys.executable, "-m", "sluiceway.cli.main", "rest", file]
    rest = BackgroundProcess("rest", command, tmp_path, env={"KAFKA_HOME": str(fetched_home())})
    with ExitStack() as stack:
        stack.callback(rest.stop)
        rest.start()
        eventually(lambda: peer.rest_answers(f"http://127.0.0.1:{port}"), what="the REST API")
        # An application without connectors ends.
        peer.put_config(f"http://127.0.0.1:{port}", unique("idle"), file_source(tmp_path / "none.txt", unique("none")))
        application = submitted_application("all", file, tmp_path, master="local[16]")
        stack.callback(application.stop, timeout=60)
        application.start()
        yield f"http://127.0.0.1:{port}"


def migrate(theirs: str, ours: str, *arguments: str, code: int = 0) -> str:
    """Run the command and return what it prints."""
    command = [sys.executable, "-m", "sluiceway.cli.main", "migrate", "--from", theirs, "--to", ours, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=NEVER, check=False)
    assert done.returncode == code, f"{done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


def kill_at(theirs: str, ours: str, *arguments: str, line: str) -> None:
    """Run the command, and kill it when it has printed a line."""
    command = [sys.executable, "-m", "sluiceway.cli.main", "migrate", "--from", theirs, "--to", ours, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        printed = []
        for each in process.stdout:
            printed.append(each.strip())
            if line in each:
                os.kill(process.pid, signal.SIGKILL)
                return
        raise AssertionError(f"the command never printed {line!r}: {printed}")


def test_ten_connectors_move_to_sluiceway_and_back_without_a_lost_record(
    connectors: Connectors, theirs: str, ours: str, preference: str
) -> None:
    connectors.create(theirs)
    report = {each["name"]: each for each in json.loads(migrate(theirs, ours, "--json"))["connectors"]}
    language = {name: each["plugins"][0]["implementation"] for name, each in report.items()}
    names = {"java-source", "java-sink", *(("debezium", "mirror") if preference == "prefer" else ())}
    assert {name for name in language if language[name] == "java"} == {f"{connectors.prefix}-{name}" for name in names}
    assert connectors.prefix in migrate(theirs, ours)

    connectors.grow()
    for place in ("debezium: offsets copied", "python-sink: stopped on the source", "mirror: state set on the target"):
        kill_at(theirs, ours, "--execute", "--connectors", f"{connectors.prefix}-{place.partition(':')[0]}", line=place)
    print(migrate(theirs, ours, "--execute", "--all"))
    assert set(connectors.seen_states(theirs).values()) == {"STOPPED"}
    eventually(lambda: connectors.seen_states(ours) == connectors.states, what="the states")
    for name, config in connectors.configs.items():
        assert peer.get_config(ours, name) == peer.get_config(theirs, name) == {**config, "name": name}
    connectors.grow()

    print(migrate(theirs, ours, "--back", "--execute", "--connectors", ",".join(connectors.configs)))
    assert set(connectors.seen_states(ours).values()) == {"STOPPED"}
    eventually(lambda: connectors.seen_states(theirs) == connectors.states, what="the states")
    connectors.grow()
    print("records that are there more than once:", dict(connectors.check()))
