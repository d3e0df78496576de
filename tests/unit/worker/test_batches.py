"""Tests of the micro-batches of a shared application's driver, with a fake status topic and runners."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError
from sluiceway.storage.factory import Stores
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from sluiceway.storage.model import State, Status, TargetState, TaskId
from sluiceway.worker import batch_messages
from sluiceway.worker.batch_messages import (
    BatchReport,
    BatchState,
    cancellation_key,
    decode_report,
    encode_report,
    report_key,
    request_key,
)
from sluiceway.worker.batches import Batches
from sluiceway.worker.connector_runner import RunnerOutcome
from support.eventually import eventually


class Topic(MemoryStatusBackingStore):
    """A fake status topic: what is written to it is read at once. ``down`` makes writes fail."""

    def __init__(self) -> None:
        super().__init__()
        self.listener: Callable[[bytes, bytes | None], None] = lambda key, value: None
        self.reports: list[BatchReport] = []
        self.down = False

    def on_message(self, listener: Callable[[bytes, bytes | None], None]) -> None:
        self.listener = listener

    def put_message(self, key: bytes, value: bytes | None) -> None:
        if self.down:
            raise ConnectError("no broker")
        if key == report_key("c") and value is not None:
            self.reports.append(decode_report(value))
        self.listener(key, value)


class Driver:
    """A started ``Batches`` with one connector, c."""

    def __init__(self) -> None:
        self.topic = Topic()
        self.configs = MemoryConfigBackingStore()
        self.configs.put_connector("c", {})
        self.batches = Batches(WorkerConfig.of({}), Stores(self.configs, self.topic, SimpleNamespace(start=lambda: None)))
        self.offsets: list[Any] = [({"p": 1}, {"o": 1})]
        self.batches._herder = SimpleNamespace(offsets=lambda name: self.offsets)  # type: ignore[assignment]

    def start(self) -> Driver:
        self.batches.start(lambda entry: True, lambda: None)
        return self

    def request(self, batch: str) -> None:
        self.topic.put_message(request_key("c"), batch.encode())

    def eventually_due(self, due: bool = True) -> None:
        eventually(lambda: self.batches.is_due("c") is due, what=f"due {due}")

    def end(self, *, batch_ended: bool = True, outcome: RunnerOutcome = RunnerOutcome.DONE) -> None:
        runner = SimpleNamespace(
            connector_name="c",
            batch_ended=batch_ended,
            outcome=outcome,
            records=7,
            failure="why" if outcome is not RunnerOutcome.DONE else None,
        )
        self.batches.ended(runner)  # type: ignore[arg-type]

    def last_report(self, state: BatchState) -> BatchReport:
        eventually(lambda: self.topic.reports[-1:] and self.topic.reports[-1].state is state, what=f"{state}")
        return self.topic.reports[-1]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    monkeypatch.setattr(batch_messages, "KafkaStatusBackingStore", Topic)
    made = Driver()
    yield made
    made.topic.down = False
    made.batches.close()


def test_a_request_is_served_once(driver: Driver) -> None:
    driver.start().request("1")
    driver.eventually_due()
    assert driver.last_report(BatchState.RUNNING).before == [({"p": 1}, {"o": 1})]
    driver.batches.launched("c")
    driver.end()
    assert not driver.batches.is_due("c")
    report = driver.last_report(BatchState.DONE)
    assert (report.id, report.records, report.before) == ("1", 7, [({"p": 1}, {"o": 1})])
    driver.request("1")
    driver.request("2")
    driver.eventually_due()
    assert [each.id for each in driver.topic.reports] == ["1", "1", "2"]


def test_a_failure_is_reported_with_the_traces_of_the_connector_and_its_tasks(driver: Driver) -> None:
    driver.start().request("1")
    driver.eventually_due()
    driver.topic.put_task(TaskId("c", 0), Status(State.FAILED, "w", 1, "boom"))
    driver.topic.put_task(TaskId("c", 1), Status(State.RUNNING, "w", 1))
    driver.end(batch_ended=False, outcome=RunnerOutcome.FAILED)
    assert driver.last_report(BatchState.FAILED).trace == "why\nTask 0: boom"


def test_a_canceled_batch_leaves_no_report_and_does_not_come_back(driver: Driver) -> None:
    driver.start().request("1")
    driver.eventually_due()
    driver.topic.put_message(cancellation_key("c"), b"1")
    assert not driver.batches.is_due("c")
    driver.end(batch_ended=False)
    driver.request("2")
    driver.eventually_due()
    assert [(each.id, each.state) for each in driver.topic.reports] == [("1", BatchState.RUNNING), ("2", BatchState.RUNNING)]


def test_a_later_request_waits_for_the_end_of_the_runner_of_the_first(driver: Driver) -> None:
    driver.start().request("1")
    driver.eventually_due()
    driver.batches.launched("c")
    driver.request("2")
    assert not driver.batches.is_due("c"), "the runner of the first must leave"
    driver.end(batch_ended=False)
    driver.eventually_due()
    assert driver.topic.reports[-1].id == "2"


def test_a_paused_connector_has_no_batch_until_it_is_resumed(driver: Driver) -> None:
    driver.configs.put_target_state("c", TargetState.PAUSED)
    driver.start().request("1")
    driver.configs.put_target_state("c", TargetState.STARTED)
    driver.eventually_due()


def test_the_batch_of_an_earlier_driver_keeps_its_first_offsets(driver: Driver) -> None:
    driver.topic.listener(report_key("c"), encode_report(BatchReport("1", BatchState.RUNNING, [({"p": 1}, {"o": 0})])))
    driver.request("1")
    driver.start().eventually_due()
    assert driver.topic.reports == []
    driver.end()
    report = driver.last_report(BatchState.DONE)
    assert (report.before, report.records) == ([({"p": 1}, {"o": 0})], None)


def test_a_batch_that_an_earlier_driver_has_ended_is_not_repeated(driver: Driver) -> None:
    driver.topic.listener(report_key("c"), encode_report(BatchReport("1", BatchState.FAILED)))
    driver.request("1")
    driver.start().request("2")
    driver.eventually_due()
    assert [each.id for each in driver.topic.reports] == ["2"]


def test_reports_wait_for_an_unreachable_cluster(driver: Driver) -> None:
    driver.start().request("1")
    driver.eventually_due()
    driver.topic.down = True
    driver.end()
    driver.topic.down = False
    assert driver.last_report(BatchState.DONE).records == 7
