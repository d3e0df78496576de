"""A driver process that is terminated, orphaned or killed, and the connector's status afterwards."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import httpx
import psutil
import pytest

from sluiceway.cli.main import main
from sluiceway.config.worker import WorkerConfig
from sluiceway.herder import Herder
from sluiceway.kafka.kafka_based_log import KafkaBasedLog, LogRecord
from sluiceway.provider.driver.internal_topics import KafkaInternalTopics
from sluiceway.provider.driver.submission import Submission
from sluiceway.stack.ports import free_port
from sluiceway.stack.process import BackgroundProcess
from sluiceway.storage.codec import ConnectorStatusRecord, TaskStatusRecord, decode_status_record
from sluiceway.storage.factory import open_stores
from sluiceway.storage.model import LeaseOwner, TaskId
from support.clusters.daemons import command_of
from support.driver import submitted_driver, worker_of, worker_properties, write_properties
from support.eventually import LIMIT, eventually
from support.freeze import freeze

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

OWNER = LeaseOwner("dag", "scheduled__2024-01-01T00:00:00+00:00", "run", 2)


class Running:
    """A source connector on a driver with a local Spark master."""

    def __init__(
        self, herder: Herder, name: str, driver: BackgroundProcess, worker: WorkerConfig, second: Callable[[], BackgroundProcess]
    ) -> None:
        self.herder = herder
        self.name = name
        self.driver = driver
        self.worker = worker
        self.second = second

    def start(self) -> None:
        self.driver.start()
        self.eventually_states(("RUNNING", ["RUNNING"]))

    def states(self) -> tuple[str, list[str]]:
        status = self.herder.status(self.name)
        return status.connector.state.value, [task.state.value for task in status.tasks.values()]

    def eventually_states(self, wanted: tuple[str, list[str]], within: float = LIMIT) -> None:
        eventually(lambda: self.states() == wanted, within=within, what=f"{wanted}\n{self.driver.log_tail(40)}")

    def processes(self) -> tuple[psutil.Process, psutil.Process]:
        """Return Spark's JVM and the Python driver below it."""
        jvm = psutil.Process(self.driver.status().pid)
        python = next(child for child in jvm.children() if "driver_app.py" in command_of(child))
        return jvm, python


def workers_of(running: Running) -> list[psutil.Process]:
    """Return the Python workers that run the tasks."""
    jvm, python = running.processes()
    return [p for p in jvm.children(recursive=True) if "pyspark" in command_of(p) and p.pid != python.pid]


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


Start = Callable[..., Running]


@pytest.fixture
def start(kafka_bootstrap: str, unique: Callable[[str], str], tmp_path: Path, parent: subprocess.Popen[bytes]) -> Iterator[Start]:
    """Create a connector and start its driver; SIGCONT ends a SIGSTOP at the end."""
    with contextlib.ExitStack() as stack:

        def run(config: Mapping[str, str], *, master: str = "local[2]", **settings: str) -> Running:
            properties = worker_properties(kafka_bootstrap, unique("driver"), **settings)
            worker = worker_of(properties)
            worker_file = write_properties(tmp_path / "worker.properties", properties)
            stores = stack.enter_context(open_stores(worker))
            herder = Herder(worker, stores.config, stores.status, stores.offsets)
            name = unique("source")
            herder.create(name, config)

            def driver(folder: Path) -> BackgroundProcess:
                made = submitted_driver(name, worker_file, folder, master=master)
                made.command += ["--parent-pid", str(parent.pid)]
                made.command += Submission(name, worker_file, "long-running", {}, owner=OWNER).arguments(None)[-2:]
                stack.callback(made.stop)
                return made

            made = Running(herder, name, driver(tmp_path), worker, lambda: driver(tmp_path / "second"))
            made.start()
            return made

        yield run


@pytest.fixture
def running(start: Start, tmp_path: Path, unique: Callable[[str], str]) -> Running:
    source = tmp_path / "in.txt"
    source.write_text("a\n")
    return start({"connector.class": "FileStreamSource", "file": str(source), "topic": unique("lines")})


@pytest.mark.long
def test_describe_shows_the_times_of_the_start(running: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    eventually(lambda: "Start, in seconds: " in running.driver.log_tail(100), what=running.driver.log_tail(40))
    command = ["describe", "connector", running.name, "--timing", "--worker", str(tmp_path / "worker.properties")]
    eventually(lambda: main(command) == 0, what="the times in the status topic")
    printed = capsys.readouterr().out
    steps = ("driver's JVM started", "Python driver started", "Spark context created", "tasks RUNNING", "first record")
    assert [step for step in steps if step not in printed] == []


def test_other_users_cannot_call_a_driver_a_killed_worker_is_replaced_and_sigterm_drains(running: Running) -> None:
    topics = KafkaInternalTopics(running.worker)
    eventually(lambda: topics.driver(running.name).owner == OWNER, what="the task that started the driver")
    _, python = running.processes()
    ports = [each.laddr.port for each in python.net_connections("tcp") if each.status == psutil.CONN_LISTEN]
    assert len(ports) == 2, "those of metrics and of accumulators; Py4J would call objects for who reaches one for callbacks"
    for worker in workers_of(running):
        worker.kill()
    eventually(lambda: "starting it again" in running.driver.log.read_text(), what="the loss is noticed")
    running.eventually_states(("RUNNING", ["RUNNING"]))
    python.terminate()
    eventually(lambda: not running.driver.is_running(), what="the driver's end")
    running.eventually_states(("UNASSIGNED", ["UNASSIGNED"]))


def test_a_driver_that_airflow_or_spark_ends_drains_and_the_next_one_runs(running: Running) -> None:
    topics = KafkaInternalTopics(running.worker)
    assert topics.end_driver(running.name)
    eventually(lambda: not running.driver.is_running(), what="the driver ends")
    assert "Stopping without a commit" not in running.driver.log_tail(200)
    assert running.states() == ("UNASSIGNED", ["UNASSIGNED"])
    assert not topics.end_driver(running.name)
    running.driver = running.second()
    running.start()
    jvm, python = running.processes()
    said_before = running.driver.log_tail(10_000)
    jvm.terminate()
    eventually(lambda: not running.driver.is_running() and not python.is_running(), what="the driver's end")
    running.eventually_states(("UNASSIGNED", ["UNASSIGNED"]))
    said = running.driver.log_tail(10_000)[len(said_before) :]
    assert "Stopping: Spark's JVM is shutting down" in said
    assert "Traceback" not in said, said
    assert "was lost" not in said, "the task was drained before Spark ended it"


@pytest.mark.long
def test_a_driver_without_its_submitter_drains_and_ends(running: Running, parent: subprocess.Popen[bytes]) -> None:
    parent.kill()
    parent.wait()
    eventually(lambda: not running.driver.is_running(), what="the driver's end")
    running.eventually_states(("UNASSIGNED", ["UNASSIGNED"]))


def test_a_killed_jvm_ends_the_driver_and_the_status_is_updated(running: Running) -> None:
    jvm, python = running.processes()
    jvm.kill()
    running.eventually_states(("UNASSIGNED", ["UNASSIGNED"]))
    eventually(lambda: not python.is_running() or python.status() == psutil.STATUS_ZOMBIE, what="the Python driver's end")


def test_a_killed_python_driver_does_not_stay_running_in_the_status(running: Running) -> None:
    _, python = running.processes()
    python.kill()
    eventually(lambda: not running.driver.is_running(), what="the JVM's end")
    assert "TimeoutException" not in running.driver.log.read_text(), "the JVM has waited for nobody"
    # No process is left to report it: the reader notices the missing heartbeats.
    running.eventually_states(("UNASSIGNED", ["UNASSIGNED"]))


_PLUGIN = """
from sluiceway.connectors.file.source import FileStreamSourceConnector

class Mine(FileStreamSourceConnector):
    java_class = None
"""


@pytest.mark.long
def test_a_driver_and_its_tasks_have_the_plugin_path_and_log_levels(
    start: Start, tmp_path: Path, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = unique("plugin").replace("-", "_")
    folder, source = tmp_path / "plugins", tmp_path / "in.txt"
    folder.mkdir()
    (folder / f"{module}.py").write_text(_PLUGIN)
    source.write_text("a\n")
    monkeypatch.syspath_prepend(folder)  # for this process's herder
    config = {"connector.class": f"{module}.Mine", "file": str(source), "topic": unique("lines")}
    running = start(config, **{"plugin.path": str(folder)})
    running.herder.set_cluster_log_level(f"connector.{running.name}", "DEBUG")
    for context in ("worker", "task-0"):
        line = f"[{running.name}|{context}] [worker] Log level of connector.{running.name} is DEBUG"
        eventually(lambda line=line: line in running.driver.log.read_text(), what=line)


def written_by(worker: WorkerConfig, name: str) -> list[tuple[int, str]]:
    """Return partition and worker of each record about a connector and its tasks in the status topic, in order."""
    found: list[LogRecord] = []
    log = KafkaBasedLog(worker, worker.status_topic, worker.number("status.storage.partitions"), "test", found.append)
    log.start()
    log.stop()
    reports = []
    for record in found:
        said = decode_status_record(record.key, record.value)
        of = (
            said.connector
            if isinstance(said, ConnectorStatusRecord)
            else said.task
            if isinstance(said, TaskStatusRecord)
            else None
        )
        if said is not None and of in (name, TaskId(name, 0)) and said.status is not None:  # type: ignore[union-attr]
            reports.append((record.partition, said.status.worker_id))  # type: ignore[union-attr]
    return reports


@pytest.mark.long
def test_a_driver_suspended_during_a_takeover_ends_and_writes_nothing_more(running: Running) -> None:
    jvm, python = running.processes()
    suspended = [jvm, *jvm.children(recursive=True)]
    try:
        for process in suspended:
            freeze(process.pid)
        first = running.herder.status(running.name).connector.worker_id
        second = running.second()
        second.start()

        def taken_over() -> bool:
            status = running.herder.status(running.name)
            return status.tasks[0].worker_id != first and running.states() == ("RUNNING", ["RUNNING"])

        eventually(taken_over, what=f"the second driver\n{second.log_tail(40)}")
    finally:
        for process in suspended:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGCONT)
    eventually(lambda: not running.driver.is_running(), what=f"the first one's end\n{running.driver.log_tail(40)}")
    assert "Stopping without a commit" in running.driver.log.read_text()
    assert not python.is_running() or python.status() == psutil.STATUS_ZOMBIE
    reports = written_by(running.worker, running.name)
    for partition in {number for number, _ in reports}:
        workers = [worker for number, worker in reports if number == partition]
        assert first not in workers[next(n for n, worker in enumerate(workers) if worker != first) :]
    assert running.states() == ("RUNNING", ["RUNNING"])


MOCK = {"connector.class": "sluiceway.connectors.mock.source.MockSourceConnector", "failure.kind": "hang"}


@pytest.mark.long
def test_a_task_whose_poll_never_returns_is_abandoned_and_its_slot_is_freed(start: Start) -> None:
    running = start({**MOCK, "failure.in": "poll"}, master="local[1]", **{"task.shutdown.graceful.timeout.ms": "1000"})
    before = workers_of(running)
    running.herder.restart_task(TaskId(running.name, 0))
    eventually(lambda: "was given up: its process was ended" in running.driver.log.read_text(), what="it is given up")
    # There is one slot: the task could not run again if it were still taken.
    running.eventually_states(("RUNNING", ["RUNNING"]))
    assert [p for p in before if p.is_running() and p.status() != psutil.STATUS_ZOMBIE and "daemon" not in command_of(p)] == []
    running.herder.pause(running.name)
    eventually(lambda: not running.driver.is_running(), what=f"the driver's end\n{running.driver.log_tail(40)}")
    running.eventually_states(("PAUSED", ["PAUSED"]))
    assert "task.shutdown.graceful.timeout.ms (1 s)" in (running.herder.status(running.name).tasks[0].trace or "")


@pytest.mark.long
def test_a_task_whose_stop_never_returns_does_not_block_its_driver(start: Start) -> None:
    running = start({**MOCK, "failure.in": "stop"}, **{"task.shutdown.graceful.timeout.ms": "1000"})
    running.herder.stop(running.name)
    eventually(lambda: not running.driver.is_running(), what=f"the driver's end\n{running.driver.log_tail(40)}")
    running.eventually_states(("STOPPED", []))


def test_standalone_mode_ends_with_a_message_when_its_jvm_dies(
    kafka_bootstrap: str, unique: Callable[[str], str], tmp_path: Path
) -> None:
    source = tmp_path / "in.txt"
    source.write_text("a\n")
    worker = {"offset.storage.file.filename": str(tmp_path / "offsets"), "listeners": f"http://127.0.0.1:{free_port()}"}
    files = [
        write_properties(tmp_path / "worker.properties", {**worker_properties(kafka_bootstrap, unique("alone")), **worker}),
        write_properties(
            tmp_path / "source.properties",
            {"name": unique("source"), "connector.class": "FileStreamSource", "file": str(source), "topic": unique("lines")},
        ),
    ]
    command = [sys.executable, "-m", "sluiceway.cli.main", "standalone", *map(str, files)]
    with (tmp_path / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            children = psutil.Process(process.pid)
            jvm = eventually(
                lambda: [p for p in children.children(recursive=True) if "SparkSubmit" in command_of(p)],
                what="the JVM",
            )[0]
            eventually(lambda: "RUNNING" in str(_status(worker["listeners"])), what="the connector RUNNING")
            jvm.kill()
            assert process.wait(timeout=LIMIT) == 1
        finally:
            process.kill()
    assert "Sluiceway ended: Spark's JVM has ended" in (tmp_path / "log").read_text()


def _status(address: str) -> object:
    with contextlib.suppress(httpx.HTTPError):
        return httpx.get(f"{address}/connectors?expand=status").json()
    return None
