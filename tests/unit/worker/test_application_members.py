"""Tests of which connectors a shared application's driver hosts, and when."""

from __future__ import annotations

from dataclasses import replace

from sluiceway.config.worker import WorkerConfig
from sluiceway.storage.memory import MemoryStatusBackingStore
from sluiceway.storage.model import ClusterState, ConnectorEntry, State, Status
from sluiceway.worker.application_members import ApplicationMembers, is_empty

ENTRY = ConnectorEntry("c", {}, application="small")
ELSEWHERE = replace(ENTRY, application=None)


class Members(ApplicationMembers):
    def __init__(self, **properties: str) -> None:
        self.statuses = MemoryStatusBackingStore()
        self.time = 1000.0
        worker = WorkerConfig.of({key.replace("_", "."): value for key, value in properties.items()})
        super().__init__("small", worker, "host:1", self.statuses, clock=lambda: self.time)

    def status(self, state: State, worker: str = "host:2") -> None:
        self.statuses.put_connector("c", Status(state, worker, 1))


def test_a_connector_that_was_always_a_member_is_taken_over_at_once() -> None:
    members = Members()
    members.status(State.RUNNING)
    assert members.hosts(ENTRY)
    assert members.is_free(ENTRY)


def test_a_connector_from_elsewhere_is_taken_once_its_driver_has_released_it() -> None:
    members = Members()
    members.status(State.RUNNING)
    assert not members.hosts(ELSEWHERE)
    assert members.hosts(ENTRY)
    assert not members.is_free(ENTRY)
    members.status(State.UNASSIGNED)
    assert members.is_free(ENTRY)
    members.status(State.RUNNING)
    assert members.is_free(ENTRY), "it is a member now"


def test_a_driver_that_does_not_release_a_connector_is_fenced_after_a_minute() -> None:
    members = Members()
    members.status(State.RUNNING)
    members.hosts(ELSEWHERE)
    assert not members.is_free(ENTRY)
    members.time += 61
    assert members.is_free(ENTRY)


def test_with_a_limit_of_tasks_a_connector_is_hosted_once_it_was_placed() -> None:
    members = Members(sluiceway_application_max_tasks="2")
    assert not members.hosts(ENTRY)
    assert members.hosts(replace(ENTRY, placed="small"))
    assert not members.hosts(replace(ENTRY, placed="small-2", application="small-2"))


def test_an_application_without_connectors_is_empty() -> None:
    assert is_empty(ClusterState({"c": ELSEWHERE}), "small")
    assert not is_empty(ClusterState({"c": ENTRY}), "small")
