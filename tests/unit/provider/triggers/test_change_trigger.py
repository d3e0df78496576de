"""The trigger that starts a source's run when its system has something new, with a fake system and a fake cluster."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, ClassVar

import pytest

from sluiceway.api import Mark, SourceConnector, SourceWatch
from sluiceway.config.worker import WorkerConfig
from sluiceway.connectors.verifiable.source import VerifiableSourceConnector
from sluiceway.errors import ConnectError, RetriableError
from sluiceway.provider.progress.cluster_view import ClusterKey, DriverSeen, SharedViews
from sluiceway.provider.triggers import ChangeTrigger, cluster_polling
from sluiceway.storage.model import ConnectorEntry, TargetState
from support.eventually import LIMIT, eventually

SECRET = "s3cret-of-the-database"
EVENT = {"connector": "c"}


class FakeWatch(SourceWatch):
    def __init__(self, password: str) -> None:
        self.password = password
        self.closed = False
        self.thread: int | None = None

    def mark(self) -> Mark:
        self.thread = threading.get_ident()
        found = System.mark
        if isinstance(found, Exception):
            raise found
        if callable(found):
            return found()
        return found

    def close(self) -> None:
        self.closed = True


class System(VerifiableSourceConnector):
    """A source whose system has what the test says."""

    mark: ClassVar[Any] = "a"
    watches: ClassVar[list[FakeWatch]] = []

    @classmethod
    def watch(cls, config: Mapping[str, str]) -> SourceWatch:
        cls.watches.append(FakeWatch(config.get("password", "")))
        return cls.watches[-1]


class Views(SharedViews):
    """A cluster with one connector."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.secrets = folder / "secrets.properties"
        self.secrets.write_text(f"password={SECRET}\n")
        self.worker = WorkerConfig.of(
            {
                "config.providers": "file",
                "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
            }
        )
        self.config: dict[str, str] | None = {
            "connector.class": f"{__name__}.System",
            "password": f"${{file:{self.secrets}:password}}",
        }
        self.target = TargetState.STARTED
        self.seen = DriverSeen(False)
        self.polls = 0

    def acquire(self, cluster: ClusterKey) -> None: ...

    def release(self, cluster: ClusterKey) -> None: ...

    def view(self, cluster: ClusterKey, overrides: Any) -> Any:
        return self

    def entry(self, name: str) -> ConnectorEntry | None:
        self.polls += 1
        return None if self.config is None else ConnectorEntry(name, self.config, self.target)

    def driver(self, name: str) -> DriverSeen:
        return self.seen

    def wait(self, polls: int = 20) -> None:
        until = self.polls + polls
        eventually(lambda: self.polls >= until, what="polls", latest=0.01)

    def run(self) -> None:
        """Run the connector once, to a clean end."""
        self.seen = DriverSeen(True, self.seen.generation + 1, False)
        self.wait(5)
        self.seen = DriverSeen(False, self.seen.generation, True)


@pytest.fixture
def views(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Views:
    made = Views(tmp_path)
    monkeypatch.setattr(cluster_polling, "_VIEWS", made)
    monkeypatch.setattr(ChangeTrigger, "log", logging.getLogger("trigger"))  # Airflow's goes to the standard output
    monkeypatch.setattr(System, "mark", "a")
    monkeypatch.setattr(System, "watches", [])
    return made


class Running:
    """A trigger in an event loop of a thread, as in a triggerer."""

    def __init__(self, trigger: ChangeTrigger) -> None:
        self.events: list[Any] = []
        self._trigger = trigger
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(),))

    async def _run(self) -> None:
        self._task = asyncio.current_task()
        with suppress(asyncio.CancelledError):
            async for event in self._trigger.run():
                self.events.append(event.payload)

    def __enter__(self) -> Running:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(lambda: self._task and self._task.cancel())
        self._thread.join(LIMIT)
        assert not self._thread.is_alive()
        self._loop.close()

    def fired(self, count: int) -> bool:
        return len(self.events) >= count


def trigger(patience: float = 1000.0) -> ChangeTrigger:
    """Return a trigger as Airflow revives it."""
    path, fields = ChangeTrigger("c", "/w.properties", 0.01, patience).serialize()
    assert resolve_name(path) is ChangeTrigger
    return ChangeTrigger(**json.loads(json.dumps(fields)))


def test_a_change_fires_once_and_in_a_thread_of_its_own(views: Views) -> None:
    with Running(trigger()) as running:
        eventually(lambda: running.fired(1), what="the event of the start")
        views.run()
        views.wait()
        assert running.events == [EVENT]
        System.mark = "b"
        eventually(lambda: running.fired(2), what="the event of the change")
        views.wait()
        assert running.events == [EVENT, EVENT]
        assert System.watches[0].thread not in (running._thread.ident, threading.get_ident(), None)
    [watch] = System.watches
    eventually(lambda: watch.closed, what="the end of the watch")


def test_a_system_that_hangs_delays_neither_the_loop_nor_its_end(views: Views) -> None:
    hangs = threading.Event()
    System.mark = staticmethod(lambda: hangs.wait(LIMIT))
    with Running(trigger()) as running:
        views.wait(50)
        assert running.events == []
    hangs.set()


def test_an_outage_is_logged_once_and_fires_nothing(views: Views, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), Running(trigger()) as running:
        eventually(lambda: running.fired(1), what="the event of the start")
        views.run()
        System.mark = RetriableError(f"db:5432 refuses port 4711 with {SECRET}")
        eventually(lambda: "trying again" in caplog.text, what="the warning")
        System.mark = RetriableError(f"db:5432 refuses port 4712 with {SECRET}")
        views.wait(100)
        System.mark = "a"
        eventually(lambda: "answers again" in caplog.text, what="the end of the outage")
        views.wait()
        assert running.events == [EVENT]
        System.mark = "b"
        eventually(lambda: running.fired(2), what="the event of the change")
    warnings = [each.getMessage() for each in caplog.records if "Connector c: " in each.getMessage()]
    assert len(warnings) == 2, warnings
    assert "RetriableError: db:5432 refuses port 4711 with ${file:" in warnings[0]
    assert len(System.watches) == 1, "an outage makes no other watch"


@pytest.mark.parametrize("error", [ValueError("a bug"), ConnectError("refused"), RecursionError()])
def test_no_error_of_a_connector_ends_the_trigger(views: Views, error: Exception) -> None:
    System.mark = error
    with Running(trigger()) as running:
        views.wait()
        System.mark = "a"
        eventually(lambda: running.fired(1), what="the event after the error")


def test_a_changed_config_is_watched_anew_and_fires(views: Views) -> None:
    assert views.config is not None
    with Running(trigger()) as running:
        eventually(lambda: running.fired(1), what="the event of the start")
        views.run()
        views.config = {**views.config, "airflow.tags": "x"}
        views.wait()
        assert (len(System.watches), running.events) == (1, [EVENT])
        views.config = {**views.config, "topic": "other"}
        eventually(lambda: running.fired(2), what="the event of the other config")
        assert [each.closed for each in System.watches] == [True, False]


def test_a_deleted_connector_fires_nothing_and_is_not_watched(views: Views) -> None:
    config = views.config
    with Running(trigger()) as running:
        eventually(lambda: running.fired(1), what="the event of the start")
        views.run()
        views.config = None
        eventually(lambda: System.watches[0].closed, what="the end of the watch")
        System.mark = "b"
        views.wait()
        assert running.events == [EVENT]
        views.config = config
        eventually(lambda: running.fired(2), what="the event of the connector that is there again")


def test_a_paused_connector_fires_after_its_resume(views: Views) -> None:
    views.target = TargetState.PAUSED
    with Running(trigger()) as running:
        views.wait()
        assert running.events == []
        views.target = TargetState.STARTED
        eventually(lambda: running.fired(1), what="the event after the resume")


def test_a_failed_run_is_required_again_after_the_patience(views: Views) -> None:
    with Running(trigger(patience=0.5)) as running:
        eventually(lambda: running.fired(1), what="the event of the start")
        views.seen = DriverSeen(False, 1, False)
        eventually(lambda: running.fired(2), what="the event after the patience")


def test_a_password_that_changed_is_read_again_after_an_error(views: Views) -> None:
    with Running(trigger()) as running:
        eventually(lambda: running.fired(1), what="the event of the start")
        views.secrets.write_text("password=another\n")
        System.mark = ConnectError("refuses the login")
        eventually(lambda: len(System.watches) == 2, what="the watch with the other password")
        System.mark = "a"
    assert [each.password for each in System.watches] == [SECRET, "another"]


def test_secrets_are_neither_in_the_arguments_nor_in_events_and_logs(views: Views, caplog: pytest.LogCaptureFixture) -> None:
    System.mark = ConnectError(f"{SECRET} is wrong")
    with caplog.at_level(logging.DEBUG), Running(trigger()) as running:
        eventually(lambda: "is wrong" in caplog.text, what="the error")
        System.mark = SECRET
        eventually(lambda: running.fired(1), what="the event")
        arguments = running._trigger.serialize()
    assert arguments == (
        "sluiceway.provider.triggers.ChangeTrigger",
        {"connector": "c", "worker_file": "/w.properties", "interval": 0.01, "patience": 1000.0},
    )
    assert SECRET not in f"{caplog.text}{running.events}{arguments}"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"connector.class": "Nonsense"}, "Nonsense"),
        ({"connector.class": "FileStreamSink"}, "is no source"),
        ({"connector.class": "VerifiableSource"}, "cannot tell whether its system has something new"),
        ({"password": "${file:/nowhere:password}"}, "/nowhere"),
    ],
)
def test_a_connector_that_cannot_be_watched_is_logged(
    views: Views, caplog: pytest.LogCaptureFixture, changes: dict[str, str], text: str
) -> None:
    views.config = {**(views.config or {}), **changes}
    with Running(trigger()) as running:
        eventually(lambda: text in caplog.text, what="the warning")
        views.wait()
        assert running.events == []


def test_the_watch_of_a_connector_that_has_none_is_refused() -> None:
    class Own(SourceConnector): ...

    with pytest.raises(ConnectError, match="Own cannot tell whether"):
        Own.watch({})
    assert Own.watch_refusal({}).startswith("Own cannot tell")
