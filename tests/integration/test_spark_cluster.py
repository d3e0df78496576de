"""Drivers on a real Spark standalone cluster: tasks run on the worker's executors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.exit_codes import APPLICATION_ENDED
from sluiceway.herder import Herder
from sluiceway.stack.process import BackgroundProcess
from sluiceway.storage.factory import open_stores
from sluiceway.storage.model import State, Status
from support.clusters.daemons import command_of
from support.clusters.standalone import SparkCluster
from support.driver import submitted_driver, worker_of, worker_properties, write_properties
from support.eventually import LIMIT, eventually
from support.exactly_once import VERIFIABLE, judged
from support.kafka import Kafka

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

ONE_EXECUTOR = {"spark.cores.max": "2", "spark.executor.cores": "2", "spark.executor.memory": "700m"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    made = SparkCluster(tmp_path_factory.mktemp("spark"))
    made.start()
    yield made
    made.stop()


def python_processes_of(executors: list[int]) -> list[str]:
    """Return the command lines of the Python workers below the executors."""
    found = []
    for executor in executors:
        for child in psutil.Process(executor).children(recursive=True):
            found.append(command_of(child))
    return [command for command in found if "pyspark" in command]


@pytest.mark.parametrize("of", [pytest.param(("source", "sink"), marks=pytest.mark.long), ("sink",)], ids=" and ".join)
def test_connectors_run_on_the_clusters_executors_and_drain(
    of: tuple[str, ...], cluster: SparkCluster, kafka: Kafka, unique: Callable[[str], str], tmp_path: Path
) -> None:
    properties = worker_properties(kafka.bootstrap, unique("cluster"))
    worker_file = write_properties(tmp_path / "worker.properties", properties)
    source_file, sink_file = tmp_path / "in.txt", tmp_path / "out.txt"
    lines = [f"line {n}" for n in range(20_000)]
    source_file.write_text("".join(f"{line}\n" for line in lines))
    topic = unique("lines")
    configs = {
        "source": {"connector.class": "FileStreamSource", "file": str(source_file), "topic": topic},
        "sink": {"connector.class": "FileStreamSink", "file": str(sink_file), "topics": topic},
    }
    names = {kind: unique(kind) for kind in of}
    if "source" not in of:
        kafka.create(topic)
        kafka.produce(topic, *lines)
    worker = worker_of(properties)
    drivers: list[BackgroundProcess] = []
    with open_stores(worker) as stores:
        herder = Herder(worker, stores.config, stores.status, stores.offsets)
        for kind, name in names.items():
            herder.create(name, configs[kind])
        try:
            for name in names.values():
                driver = submitted_driver(name, worker_file, tmp_path, master=cluster.url, conf=ONE_EXECUTOR)
                driver.start()
                drivers.append(driver)

            def copied() -> bool:
                assert all(driver.is_running() for driver in drivers), "\n".join(driver.log_tail(60) for driver in drivers)
                return sink_file.exists() and sink_file.read_bytes() == source_file.read_bytes()

            eventually(copied, what="equal files")
            workers = python_processes_of(cluster.executor_pids())
            assert len(workers) >= len(of), "the loops are not on the worker's executors"
            for name in names.values():
                herder.pause(name)
            for driver in drivers:
                eventually(lambda each=driver: not each.is_running(), what=f"{driver.name} ends")
            for name in names.values():
                eventually(lambda each=name: herder.status(each).connector.state.value == "PAUSED", what=f"{name} PAUSED")
        finally:
            for driver in drivers:
                driver.stop()


class Connector:
    """A connector whose driver runs in client mode."""

    def __init__(self, name: str, worker: WorkerConfig, herder: Herder, driver: BackgroundProcess) -> None:
        self.name = name
        self.worker = worker
        self.herder = herder
        self.driver = driver

    def tasks(self) -> dict[int, Status]:
        return dict(self.herder.status(self.name).tasks)

    def states(self) -> list[str]:
        return [task.state.value for task in self.tasks().values()]

    def eventually(self, condition: Callable[[], object], what: str, within: float = LIMIT, *, ended: bool = False) -> None:
        def checked() -> object:
            assert ended or self.driver.is_running(), f"the driver ended while waiting for: {what}"
            return condition()

        try:
            eventually(checked, within=within, what=what)
        except AssertionError as error:
            raise AssertionError(f"{error}; statuses: {self.tasks()}\n{self.driver.log_tail(60)}") from None


Start = Callable[..., Connector]


@pytest.fixture
def start(kafka_bootstrap: str, unique: Callable[[str], str], tmp_path: Path) -> Iterator[Start]:
    """Create a connector and start its driver on a master."""
    with contextlib.ExitStack() as stack:

        def run(config: dict[str, str], master: str, conf: dict[str, str] | None = None, **settings: str) -> Connector:
            properties = worker_properties(kafka_bootstrap, unique("cluster"), **settings)
            worker = worker_of(properties)
            stores = stack.enter_context(open_stores(worker))
            herder = Herder(worker, stores.config, stores.status, stores.offsets)
            name = unique("connector")
            herder.create(name, config)
            worker_file = write_properties(tmp_path / "worker.properties", properties)
            driver = submitted_driver(name, worker_file, tmp_path, master=master, conf=conf)
            stack.callback(driver.stop)
            driver.start()
            return Connector(name, worker, herder, driver)

        yield run


@pytest.mark.long
def test_a_task_waits_for_a_slot_and_starts_as_soon_as_there_is_one(
    start: Start, unique: Callable[[str], str], tmp_path: Path
) -> None:
    config = {"connector.class": "FileStreamSink", "file": str(tmp_path / "out.txt"), "topics": unique("t"), "tasks.max": "3"}
    sink = start(config, "local[2]", **{"sluiceway.slots.timeout.ms": "3000"})

    def waiting() -> list[str]:
        return [task.trace or "" for task in sink.tasks().values() if task.state is State.UNASSIGNED and task.trace]

    sink.eventually(lambda: sorted(sink.states()) == ["RUNNING", "RUNNING", "UNASSIGNED"] and waiting(), "one task waits", 90)
    assert "Waits for a slot: the application has 2 slot(s) on local[2], all in use" in waiting()[0]
    assert sink.herder.status(sink.name).connector.state is State.RUNNING
    sink.eventually(lambda: sink.driver.log.read_text().count(" wait for a slot") >= 2, "a second warning")
    sink.herder.patch_config(sink.name, {"tasks.max": "2"})
    sink.eventually(lambda: sink.states() == ["RUNNING", "RUNNING"], "two slots are enough for two tasks")


def verifiable(unique: Callable[[str], str], **more: str) -> dict[str, str]:
    json = "org.apache.kafka.connect.json.JsonConverter"
    converters = {f"{kind}.converter": json for kind in ("key", "value")}
    no_schemas = {f"{kind}.converter.schemas.enable": "false" for kind in ("key", "value")}
    return {"connector.class": VERIFIABLE, "topic": unique("numbers"), "throughput": "50", **converters, **no_schemas, **more}


TWO_EXECUTORS = {"spark.cores.max": "2", "spark.executor.cores": "1", "spark.executor.memory": "512m"}


@pytest.mark.long  # tests/clusters/test_standalone.py has a slice of it
def test_lost_executors_and_workers_cost_no_record_and_are_reported(
    cluster: SparkCluster, start: Start, unique: Callable[[str], str]
) -> None:
    config = verifiable(unique, **{"tasks.max": "2"})
    # On a busy machine, new executors take longer than a minute.
    settings = {"exactly.once.source.support": "enabled", "sluiceway.slots.timeout.ms": "300000"}
    source = start(config, cluster.url, TWO_EXECUTORS, **settings)
    source.eventually(lambda: source.states() == ["RUNNING", "RUNNING"], "RUNNING", 120)

    def generations() -> list[int]:
        return [task.generation for task in source.tasks().values()]

    def running_again(before: list[int]) -> bool:
        return source.states() == ["RUNNING", "RUNNING"] and generations() > before

    def lost(cause: str) -> None:
        source.eventually(
            lambda: any(task.state is State.UNASSIGNED and cause in (task.trace or "") for task in source.tasks().values()),
            f"UNASSIGNED: {cause}",
        )

    before = generations()
    psutil.Process(cluster.executor_pids()[0]).kill()
    lost("Command exited with code 137")
    source.eventually(lambda: running_again(before), "RUNNING after the loss of an executor")
    before = generations()
    cluster.kill_worker()
    lost("")
    cluster.start_worker()
    source.eventually(lambda: running_again(before) and min(generations()) > max(before), "RUNNING on the new worker", 90)
    source.herder.pause(source.name)
    source.eventually(lambda: not source.driver.is_running(), "the driver's end", 40, ended=True)
    verdict = judged(dict(source.worker.raw), config["topic"])
    assert (verdict.lost, verdict.duplicated) == (0, 0), str(verdict)
    assert verdict.total > 100


@pytest.mark.long
def test_a_driver_whose_application_is_killed_ends_with_an_exit_code_of_its_own(
    cluster: SparkCluster, start: Start, unique: Callable[[str], str]
) -> None:
    known = set(cluster.applications())
    source = start(verifiable(unique), cluster.url, ONE_EXECUTOR)
    source.eventually(lambda: source.states() == ["RUNNING"], "RUNNING", 120)
    submit = psutil.Process(source.driver.status().pid)
    [application] = set(cluster.applications()) - known
    cluster.kill_application(application)
    assert submit.wait(LIMIT) == APPLICATION_ENDED, source.driver.log_tail(60)
    status = source.herder.status(source.name)
    assert (status.connector.state, source.states()) == (State.UNASSIGNED, ["UNASSIGNED"])
    for told in (status.connector, status.tasks[0]):
        assert "The Spark application has ended" in (told.trace or "")
