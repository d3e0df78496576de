"""Micro-batches that Airflow tasks request from a shared application, on a local Spark master."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.herder import Herder
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.provider.driver.internal_topics import KafkaInternalTopics
from sluiceway.provider.driver.warm_batch import RequestedBatch
from sluiceway.spark.session import local_conf
from sluiceway.stack.process import BackgroundProcess
from sluiceway.storage.factory import open_stores
from sluiceway.worker.batch_messages import BatchReport, BatchState
from support.clusters.daemons import command_of
from support.counting import COUNT_SOURCE, plugin_folder
from support.driver import submitted_application, worker_of, worker_properties, write_properties
from support.eventually import LIMIT, eventually

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


class Application:
    """A shared application with its connectors."""

    def __init__(
        self, worker: WorkerConfig, herder: Herder, driver: BackgroundProcess, folder: Path, unique: Callable[[str], str]
    ) -> None:
        self.herder = herder
        self.driver = driver
        self.topics = KafkaInternalTopics(worker)
        self._folder = folder
        self._unique = unique

    def create(self, *, delay: float = 0.0, until: str = "3", mode: str = "micro-batch") -> str:
        name = self._unique("batch")
        self.until(name, until)
        config = {
            "name": name,
            "connector.class": COUNT_SOURCE,
            "topic": name,
            "sluiceway.application": "warm",
            "airflow.mode": mode,
            "limit": str(self._folder / name),
            "delay": str(delay),
        }
        self.herder.put_config(name, config)
        return name

    def until(self, name: str, until: str) -> None:
        (self._folder / name).write_text(until)

    def count(self, name: str) -> int:
        offsets = self.herder.offsets(name)
        return int((offsets[0][1] or {})["count"]) if offsets else 0

    def states(self, name: str) -> list[str]:
        status = self.herder.status(name)
        return [status.connector.state.value, *(task.state.value for task in status.tasks.values())]

    def request(self, name: str) -> RequestedBatch:
        batch = RequestedBatch(name, "warm", f"{int(time.time() * 1000):013d}-{name}")
        with self.topics.warm_batch(batch) as warm:
            warm.request()
        return batch

    def ended(self, batch: RequestedBatch, within: float = LIMIT) -> BatchReport:
        return eventually(lambda: self.topics.batch_seen(batch).ended, within=within, what=self.driver.log_tail(60))

    def run(self, name: str) -> BatchReport:
        """Request a batch and wait for its end as an Airflow task does."""
        batch = RequestedBatch(name, "warm", f"{int(time.time() * 1000):013d}-{name}")
        with self.topics.warm_batch(batch) as warm:
            warm.request()
            assert warm.await_end(60, lambda: False), self.driver.log_tail(60)
        return self.ended(batch)

    def kill(self) -> None:
        family = [psutil.Process(self.driver.status().pid)]
        family += family[0].children(recursive=True)
        python = next(each for each in family if "driver_app.py" in command_of(each) and each != family[0])
        python.kill()
        eventually(lambda: not self.driver.is_running(), what="the end of the application")


@pytest.fixture(scope="module")
def application(
    kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory, unique: Callable[[str], str]
) -> Iterator[Application]:
    folder = tmp_path_factory.mktemp("warm")
    more = {"plugin.path": str(plugin_folder(folder)), "task.shutdown.graceful.timeout.ms": "2000"}
    properties = worker_properties(kafka_bootstrap, unique("warm"), **more)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", list(sys.path))
        use_plugin_path(properties)
        worker = worker_of(properties)
        with open_stores(worker) as stores:
            file = write_properties(folder / "worker.properties", properties)
            driver = submitted_application("warm", file, folder, master="local[16]", conf=local_conf())
            herder = Herder(worker, stores.config, stores.status, stores.offsets)
            running = Application(worker, herder, driver, folder, unique)
            neighbor = running.create(until="1000000000", delay=0.2, mode="long-running")
            driver.start()
            try:
                eventually(lambda: running.states(neighbor) == ["RUNNING", "RUNNING"], what=driver.log_tail(60))
                yield running
            finally:
                driver.stop(timeout=60)


def test_a_batch_moves_the_available_records_and_the_next_one_what_came_since(application: Application) -> None:
    name = application.create(until="3")
    assert application.states(name) == ["UNASSIGNED"], "it waits for a request"
    first = application.run(name)
    assert (first.state, first.records, first.before, first.trace) == (BatchState.DONE, 3, [], None)
    assert application.states(name) == ["UNASSIGNED", "UNASSIGNED"]
    application.until(name, "5")
    second = application.run(name)
    assert (second.records, second.before) == (2, [({"count": "er"}, {"count": 3})])
    assert application.count(name) == 5


def test_a_failed_batch_reports_its_trace_and_the_next_one_starts_at_once(application: Application) -> None:
    name = application.create(until="fail")
    failed = application.run(name)
    assert failed.state is BatchState.FAILED
    assert "ValueError: the file says so" in (failed.trace or "")
    assert application.states(name)[1] == "FAILED"
    application.until(name, "2")
    assert application.run(name).records == 2


@pytest.mark.long
def test_a_canceled_batch_drains_and_does_not_continue(application: Application) -> None:
    name = application.create(until="1000", delay=0.1)
    batch = application.request(name)
    eventually(lambda: application.count(name) > 0, what=application.driver.log_tail(60))
    application.topics.cancel_batch(batch)
    eventually(lambda: application.states(name) == ["UNASSIGNED", "UNASSIGNED"], what=application.driver.log_tail(60))
    moved = application.count(name)
    application.until(name, "0")
    assert application.run(name).before == [({"count": "er"}, {"count": moved})], "nothing moved after the drain"
    assert application.topics.batch_seen(batch).superseded


@pytest.mark.long
def test_a_second_request_drains_the_batch_of_the_first(application: Application) -> None:
    name = application.create(until="1000", delay=0.1)
    first = application.request(name)
    eventually(lambda: application.count(name) > 0, what=application.driver.log_tail(60))
    application.until(name, "20")
    second = application.ended(application.request(name))
    assert second.state is BatchState.DONE
    assert application.count(name) == 20
    assert application.topics.batch_seen(first).ended is None


@pytest.mark.long
def test_a_batch_of_a_paused_connector_continues_after_the_resume(application: Application) -> None:
    name = application.create(until="15", delay=0.1)
    batch = application.request(name)
    eventually(lambda: application.count(name) > 0, what=application.driver.log_tail(60))
    application.herder.pause(name)
    eventually(lambda: application.states(name) == ["PAUSED", "PAUSED"], what=application.driver.log_tail(60))
    assert application.topics.batch_seen(batch).ended is None
    application.herder.resume(name)
    assert application.ended(batch).state is BatchState.DONE
    assert application.count(name) == 15


@pytest.mark.long
def test_the_next_driver_continues_the_batch_of_one_that_was_killed(application: Application) -> None:
    name = application.create(until="40", delay=0.1)
    batch = application.request(name)
    eventually(lambda: application.count(name) > 0, what=application.driver.log_tail(60))
    application.kill()
    assert application.topics.batch_seen(batch).ended is None
    application.driver.start()
    report = application.ended(batch)
    assert (report.state, report.records, report.before) == (BatchState.DONE, None, []), "its start is that of the first driver"
    assert application.count(name) == 40
