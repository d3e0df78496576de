"""Tasks that share a process: in a shared application, on a local Spark master."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from sluiceway.herder import Herder
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.spark.session import local_conf
from sluiceway.stack.process import BackgroundProcess
from sluiceway.storage.factory import open_stores
from support.clusters.daemons import command_of
from support.counting import COUNT_SOURCE, plugin_folder
from support.driver import submitted_application, worker_of, worker_properties, write_properties
from support.eventually import LIMIT, eventually
from support.transactions import seen

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


class Application:
    """A shared application with its connectors."""

    def __init__(self, herder: Herder, driver: BackgroundProcess, topic: Callable[[str], str]) -> None:
        self.herder = herder
        self.driver = driver
        self.topic = topic

    def create(self, name: str, **config: str) -> None:
        plain = {"connector.class": COUNT_SOURCE, "topic": self.topic(name), "sluiceway.application": "shared"}
        self.herder.put_config(name, {"name": name, **plain, **config})

    def states(self, name: str) -> list[str]:
        status = self.herder.status(name)
        return [status.connector.state.value, *(task.state.value for task in status.tasks.values())]

    def eventually_running(self, *names: str, within: float = LIMIT) -> None:
        for name in names:
            eventually(partial(self._runs, name), within=within, what=self.story(name))

    def _runs(self, name: str) -> bool:
        return self.states(name) == ["RUNNING", "RUNNING"]

    def _counts(self, name: str, before: int) -> bool:
        return self.count(name) > before

    def story(self, name: str) -> str:
        return f"{name}: {self.herder.status(name)}\n{self.driver.log_tail(60)}"

    def count(self, name: str) -> int:
        offsets = self.herder.offsets(name)
        return int((offsets[0][1] or {})["count"]) if offsets else 0

    def eventually_counts(self, *names: str) -> None:
        """Wait until each connector moves records."""
        for name in names:
            eventually(partial(self._counts, name, self.count(name)), what=self.story(name))

    def workers(self) -> set[int]:
        """Return the Python workers that run something. Spark keeps others for later, which have a single thread."""
        family = psutil.Process(self.driver.status().pid).children(recursive=True)
        daemons = {each.pid for each in family if "local_daemon" in command_of(each)}
        return {each.pid for each in family if each.pid in daemons and each.ppid() in daemons and each.num_threads() > 1}


@pytest.fixture(scope="module")
def monkeypatch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def application(
    kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Application]:
    folder = tmp_path_factory.mktemp("hosts")
    group = folder.name
    properties = worker_properties(
        kafka_bootstrap,
        group,
        **{
            "plugin.path": str(plugin_folder(folder)),
            "task.shutdown.graceful.timeout.ms": "2000",
            "exactly.once.source.support": "enabled",
        },
    )
    monkeypatch.setattr(sys, "path", list(sys.path))
    use_plugin_path(properties)
    with open_stores(worker_of(properties)) as stores:
        herder = Herder(worker_of(properties), stores.config, stores.status, stores.offsets)
        file = write_properties(folder / "worker.properties", properties)
        driver = submitted_application("shared", file, folder, master="local[16]", conf=local_conf())
        running = Application(herder, driver, lambda name: f"{group}-{name}")
        running.create("a")
        running.create("b")
        driver.start()
        try:
            running.eventually_running("a", "b")
            yield running
        finally:
            driver.stop(timeout=60)


def test_tasks_share_one_process(application: Application) -> None:
    assert len(application.workers()) == 1, application.workers()
    application.eventually_counts("a", "b")


def test_a_task_pauses_resumes_restarts_and_goes_without_its_neighbors(application: Application) -> None:
    application.create("c")
    application.eventually_running("c")
    application.herder.pause("c")
    eventually(lambda: application.states("c") == ["PAUSED", "PAUSED"], what=application.story("c"))
    application.eventually_counts("a")
    application.herder.resume("c")
    application.eventually_running("c")
    application.eventually_counts("c")
    application.herder.restart("c", include_tasks=True)
    application.eventually_running("c")
    application.eventually_counts("c")
    before = application.count("c")
    application.herder.stop("c")
    eventually(lambda: application.states("c") == ["STOPPED"], what=application.story("c"))
    assert application.count("c") >= before
    application.herder.delete("c")
    application.eventually_counts("a", "b")
    assert len(application.workers()) == 1


def test_a_changed_config_reaches_the_host(application: Application) -> None:
    application.create("d")
    application.eventually_counts("d")
    application.create("d", topic="other-topic")
    application.eventually_running("d")
    application.eventually_counts("d")
    eventually(lambda: "other-topic" in application.herder.topics("d"), what=application.story("d"))
    application.herder.delete("d")


def test_a_task_that_fails_leaves_its_neighbors_alone(application: Application) -> None:
    application.create("f", topic="not a topic name")
    eventually(lambda: application.states("f") == ["RUNNING", "FAILED"], what=application.story("f"))
    application.eventually_counts("a", "b")
    assert len(application.workers()) == 1
    application.herder.delete("f")


def test_a_task_may_ask_for_a_process_of_its_own(application: Application) -> None:
    application.create("own", **{"sluiceway.task.isolation": "process"})
    application.eventually_counts("own")
    assert len(application.workers()) == 2, application.workers()
    application.herder.delete("own")
    eventually(lambda: len(application.workers()) == 1 or None, what="the end of the second process")


@pytest.mark.long
def test_a_task_that_uses_much_of_a_core_moves_to_a_process_of_its_own(application: Application) -> None:
    application.create("busy", burn="yes")
    application.eventually_running("busy")
    before = application.workers()
    eventually(lambda: len(application.workers()) > len(before), what=application.story("busy"))
    application.eventually_running("busy")
    application.eventually_counts("busy", "a")
    assert before <= application.workers(), "its neighbors' process stays"
    application.herder.delete("busy")


def test_the_tasks_of_a_killed_host_run_again(application: Application) -> None:
    eventually(lambda: len(application.workers()) == 1, what="a single process")
    (host,) = application.workers()
    psutil.Process(host).kill()
    eventually(lambda: application.workers() - {host}, what="another host")
    application.eventually_running("a", "b")
    application.eventually_counts("a", "b")


@pytest.mark.long
def test_a_task_that_hangs_costs_its_neighbors_some_seconds_only(application: Application, tmp_path: Path) -> None:
    hangs = tmp_path / "hangs"
    application.create("hanging", hang=str(hangs))
    application.eventually_counts("hanging")
    hangs.touch()
    application.herder.stop("hanging")
    eventually(lambda: application.states("hanging") == ["STOPPED"], what=application.story("hanging"))
    application.eventually_running("a", "b")
    application.eventually_counts("a", "b")
    hangs.unlink()
    application.herder.delete("hanging")


@pytest.mark.long
def test_a_task_that_ends_its_process_again_and_again_fails_alone(application: Application, tmp_path: Path) -> None:
    dies = tmp_path / "dies"
    application.create("dying", die=str(dies))
    application.eventually_counts("dying")
    dies.touch()
    eventually(lambda: application.states("dying")[1:] == ["FAILED"], what=application.story("dying"))
    application.eventually_running("a", "b")
    application.eventually_counts("a", "b")
    application.herder.delete("dying")


def test_all_that_moved_and_lost_tasks_have_written_is_there_once(application: Application, kafka_bootstrap: str) -> None:
    for name in ("a", "b"):
        application.herder.stop(name)
        eventually(lambda name=name: application.states(name) == ["STOPPED"], what=application.story(name))
        values = [int(message.value() or b"") for message in seen(kafka_bootstrap, application.topic(name))]
        assert values == list(range(1, application.count(name) + 1))
