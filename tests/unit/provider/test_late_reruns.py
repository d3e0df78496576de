"""Runs of intervals for which records came late, with Airflow's database and the ledgers in memory."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

import pytest

from sluiceway.config.intervals import Interval, IntervalRun
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import KafkaClientError
from sluiceway.herder import Herder
from sluiceway.provider.late_reruns import LateReruns
from sluiceway.storage.intervals import IntervalEntry, IntervalState
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore

_HOUR = Interval(0, 3_600_000)
_LATE = IntervalEntry(_HOUR, IntervalState.DONE, 1, runs=("r0", "r1"), rerun=1)
_SINK = {"connector.class": "ParquetSink", "topics": "t", "path": "/p", "airflow.interval.late": "rerun"}


class World:
    """The connector ``hourly``, another one whose late records are moved by the next run, and the run of an interval."""

    def __init__(self, **more: str) -> None:
        self.config = MemoryConfigBackingStore()
        herder = Herder(WorkerConfig.of({"bootstrap.servers": "b:1"}), self.config, MemoryStatusBackingStore())
        herder.create("hourly", {"name": "hourly", **_SINK, **more})
        herder.create("other", {"name": "other", **_SINK, "airflow.interval.late": "next"})
        herder.create("hourly.interval.0", {**_SINK, "name": "hourly.interval.0", **IntervalRun("hourly", _HOUR, 1).keys()})
        self.ledger = [_LATE]
        self.asked: list[str] = []
        self.cleared: list[tuple[str, str]] = []
        self.answer: bool | None = True
        self.leads, self.down = True, False
        self.reruns = self.process()

    def process(self) -> LateReruns:
        return LateReruns(self.config, self.intervals, self, lambda: self.leads)

    def intervals(self, name: str) -> Iterable[IntervalEntry]:
        if self.down:
            raise KafkaClientError("no broker", "_TRANSPORT")
        self.asked.append(name)
        return self.ledger

    def clear_run(self, dag_id: str, run_id: str, why: str) -> bool | None:
        assert why == "records of interval [1970-01-01T00:00:00Z, 1970-01-01T01:00:00Z) of connector hourly came late"
        self.cleared.append((dag_id, run_id))
        return self.answer


def test_the_newest_run_of_an_interval_is_cleared_once_for_each_attempt() -> None:
    world = World()
    world.reruns.step()
    world.reruns.step()
    assert world.cleared == [("hourly", "r1")]
    assert set(world.asked) == {"hourly"}
    world.ledger = [replace(_LATE, rerun=2)]  # another one has left late records to it, and the run was marked as failed
    world.reruns.step()
    world.reruns.step()
    assert len(world.cleared) == 2
    world.ledger = [replace(_LATE, attempt=2)]
    world.reruns.step()
    assert len(world.cleared) == 3


@pytest.mark.parametrize(
    "entry",
    [replace(_LATE, rerun=0), replace(_LATE, runs=()), replace(_LATE, state=IntervalState.RUNNING)],
    ids=["nothing is late", "no run", "running"],
)
def test_nothing_else_is_cleared(entry: IntervalEntry) -> None:
    world = World()
    world.ledger = [entry]
    world.reruns.step()
    assert world.cleared == []


def test_a_run_that_has_not_ended_is_cleared_later() -> None:
    world = World(**{"airflow.dag": "by-hand"})
    world.answer = None
    world.reruns.step()
    world.answer = True
    world.reruns.step()
    world.reruns.step()
    assert world.cleared == [("by-hand", "r1")] * 2


def test_a_run_that_is_gone_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.answer = False
    world.reruns.step()
    world.reruns.step()
    [line] = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert line.startswith("[hourly|worker] Late records of interval [1970-01-01T00:00:00Z, ")
    assert line.endswith("its run r1 is not in Airflow any more. A backfill moves them.")


def test_only_the_leader_clears_and_a_new_one_clears_again_what_waits() -> None:
    world = World()
    world.leads = False
    world.reruns.step()
    assert world.cleared == []
    world.leads = True
    world.reruns.step()
    world.process().step()
    assert len(world.cleared) == 2, "the database says whether the run has ended since"


def test_a_ledger_that_cannot_be_read_is_tried_again_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.down = True
    world.reruns.step()
    world.reruns.step()
    warnings = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert warnings == ["[hourly|worker] Runs of late records cannot be cleared: no broker"]
    world.down = False
    world.reruns.step()
    assert len(world.cleared) == 1
