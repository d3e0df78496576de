"""The mirror, over a config store in memory and a stand-in for Airflow's database."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError
from sluiceway.herder import Herder
from sluiceway.provider.pause_sync.airflow_db import DagFlag
from sluiceway.provider.pause_sync.pause_sync import Mirror
from sluiceway.provider.pause_sync.rules import Toggle
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from sluiceway.storage.model import TargetState
from support.eventually import eventually

BUNDLE = "connectors"


class Airflow:
    """Airflow's database: paused flags, and what was asked of the DAG processor."""

    def __init__(self, **paused: bool) -> None:
        self.dags = {dag: DagFlag(dag, flag, BUNDLE) for dag, flag in paused.items()}
        self.requests: list[list[str]] = []
        self.writes: list[tuple[str, bool]] = []
        self.audit: dict[str, Toggle] = {}
        self.asked: list[list[str]] = []
        self.down = False
        self.again: list[str] = []

    def flags(self, dag_ids: Collection[str], bundle: str) -> dict[str, DagFlag]:
        if self.down:
            raise ConnectionError("no database")
        return {dag: flag for dag, flag in self.dags.items() if dag in dag_ids or flag.bundle == bundle}

    def toggle(self, dag: str, paused: bool, bundle: str = BUNDLE) -> None:
        self.dags[dag] = DagFlag(dag, paused, bundle)

    def toggles(self, dag_ids: Collection[str]) -> dict[str, Toggle]:
        self.asked.append(list(dag_ids))
        return {dag: toggle for dag, toggle in self.audit.items() if dag in dag_ids}

    def set_paused(self, dag_id: str, paused: bool, why: str) -> None:
        self.writes.append((dag_id, paused))
        self.dags[dag_id] = DagFlag(dag_id, paused, self.dags[dag_id].bundle)

    def request_parsing(self, bundle: str, files: Collection[str]) -> None:
        assert bundle == BUNDLE
        self.requests.append(list(files))

    def run_again(self, dag_id: str, why: str) -> list[str]:
        self.again.append(dag_id)
        return ["run"]


class Lead:
    def __init__(self, leads: bool = True) -> None:
        self.leads = leads

    def held(self) -> bool:
        return self.leads

    def release(self) -> None:
        self.leads = False


class World:
    def __init__(self, airflow: Airflow) -> None:
        self.config = MemoryConfigBackingStore()
        self.airflow = airflow
        self.lead = Lead()
        self.herder = Herder(WorkerConfig.of({}), self.config, MemoryStatusBackingStore())

    def mirror(self, lead: Lead | None = None) -> Mirror:
        return Mirror(self.config, self.herder, self.airflow, lead or self.lead, bundle=BUNDLE, interval=0.01)

    def put(self, name: str, **keys: str) -> None:
        pairs = {key.replace("_", "."): value for key, value in keys.items()}
        self.config.put_connector(name, {"connector.class": "FileStreamSource", "topic": "t", **pairs})

    def target(self, name: str) -> TargetState:
        entry = self.config.snapshot().entry(name)
        assert entry is not None
        return entry.target_state


@pytest.fixture
def world() -> World:
    world = World(Airflow(c=False))
    world.put("c")
    return world


def test_a_person_pausing_and_resuming_the_dag_pauses_and_resumes_the_connector(world: World) -> None:
    mirror = world.mirror()
    mirror.step()
    world.airflow.toggle("c", True)
    mirror.step()
    assert world.target("c") is TargetState.PAUSED
    mirror.step()
    world.airflow.toggle("c", False)
    mirror.step()
    assert world.target("c") is TargetState.STARTED
    assert world.airflow.writes == []


def test_a_target_state_changed_in_the_topic_is_the_dags_paused_flag(world: World) -> None:
    mirror = world.mirror()
    mirror.step()
    for change in (world.herder.stop, world.herder.resume, world.herder.pause):
        change("c")
        mirror.step()
        mirror.step()
    assert world.airflow.writes == [("c", True), ("c", False), ("c", True)]
    assert world.target("c") is TargetState.PAUSED


def test_a_toggle_right_after_the_mirrors_own_is_a_persons(world: World) -> None:
    mirror = world.mirror()
    mirror.step()
    world.herder.pause("c")
    mirror.step()
    world.airflow.toggle("c", False)
    mirror.step()
    assert world.target("c") is TargetState.STARTED
    world.airflow.toggle("c", True)
    mirror.step()
    world.herder.resume("c")
    mirror.step()
    assert world.airflow.writes == [("c", True), ("c", False)]


def test_at_start_up_the_topic_wins(world: World) -> None:
    world.airflow.toggle("c", True)
    world.mirror().step()
    assert world.airflow.writes == [("c", False)]
    assert world.target("c") is TargetState.STARTED


def now() -> int:
    return time.time_ns() // 1_000_000


@pytest.mark.parametrize("unpaused_after", [True, False])
def test_at_start_up_whoever_spoke_last_wins(world: World, unpaused_after: bool) -> None:
    before = Toggle(False, now() - 1000)
    world.herder.pause("c")
    world.airflow.audit["c"] = Toggle(False, now() + 1000) if unpaused_after else before
    mirror = world.mirror()
    mirror.step()
    assert world.target("c") is (TargetState.STARTED if unpaused_after else TargetState.PAUSED)
    assert world.airflow.writes == ([] if unpaused_after else [("c", True)])
    mirror.step()
    assert world.airflow.asked == [["c"], []], "the audit log is asked once"


def test_a_flag_that_the_audit_log_does_not_explain_does_not_win(world: World) -> None:
    world.airflow.toggle("c", True)  # as a DAG that has just appeared may be
    world.airflow.audit["c"] = Toggle(False, now() + 1000)
    world.mirror().step()
    assert world.airflow.writes == [("c", False)]


def test_a_pause_from_before_the_connector_was_made_again_does_not_win(world: World) -> None:
    world.airflow.audit["c"] = Toggle(True, now() - 1000)
    world.airflow.toggle("c", True)
    world.config.remove_connector("c")
    world.put("c")
    world.mirror().step()
    assert world.airflow.writes == [("c", False)]


def test_a_connector_that_comes_again_starts_though_its_former_dag_was_paused(world: World) -> None:
    mirror = world.mirror()
    world.herder.pause("c")
    mirror.step()
    mirror.step()
    world.config.remove_connector("c")
    mirror.step()
    world.put("c")
    mirror.step()
    assert world.airflow.writes == [("c", True), ("c", False)]


def test_what_was_agreed_with_a_connector_that_is_gone_says_nothing_of_its_successor(world: World) -> None:
    mirror = world.mirror()
    mirror.step()
    world.config.remove_connector("c")
    mirror.step()
    world.airflow.toggle("c", True)
    world.put("c")
    mirror.step()
    assert world.airflow.writes == [("c", False)]
    assert world.target("c") is TargetState.STARTED


def test_a_hand_written_dag_is_found_by_the_key_in_its_connectors_config() -> None:
    world = World(Airflow())
    world.airflow.toggle("mine", False, "dags-folder")
    world.put("a", airflow_dag="mine")
    world.put("b", airflow_dag="mine")
    mirror = world.mirror()
    mirror.step()
    world.airflow.toggle("mine", True, "dags-folder")
    mirror.step()
    assert [world.target("a"), world.target("b")] == [TargetState.PAUSED] * 2
    assert world.airflow.requests == []


def test_a_dag_that_airflow_does_not_have_yet_is_waited_for(world: World) -> None:
    del world.airflow.dags["c"]
    mirror = world.mirror()
    world.herder.pause("c")
    mirror.step()
    assert world.airflow.writes == []
    world.airflow.toggle("c", False)
    mirror.step()
    assert world.airflow.writes == [("c", True)]


def test_the_bundle_is_looked_at_when_a_dag_appears_changes_or_goes_and_else_not(world: World) -> None:
    mirror = world.mirror()
    mirror.step()
    world.put("new")
    mirror.step()
    world.put("c")  # nothing that the DAG shows has changed
    mirror.step()
    world.put("c", airflow_tags="x")
    mirror.step()
    world.config.remove_connector("new")
    mirror.step()
    assert world.airflow.requests == [["connector-new.py"], ["connector-c.py"], ["connector-new.py"]]


def test_what_happened_while_no_api_server_ran_is_made_up_for_at_start_up() -> None:
    world = World(Airflow(gone=False, known=False))
    world.put("known")
    world.put("unseen")
    world.mirror().step()
    assert world.airflow.requests == [["connector-gone.py", "connector-unseen.py"]]


def test_only_the_leader_acts_and_a_successor_knows_what_was_agreed(world: World) -> None:
    waiting = Lead(leads=False)
    leader, other = world.mirror(), world.mirror(waiting)
    leader.step()
    other.step()
    world.airflow.toggle("c", True)
    world.put("new")
    other.step()
    assert (world.target("c"), world.airflow.requests) == (TargetState.STARTED, [])
    waiting.leads = True
    other.step()
    assert world.target("c") is TargetState.PAUSED


def test_a_connector_that_cannot_be_changed_does_not_hold_up_the_others(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.put("d")
    world.airflow.toggle("d", False)

    class Stubborn(Herder):
        def pause(self, name: str) -> None:
            if name == "c":
                raise ConnectError("deleted in this very moment")
            super().pause(name)

    world.herder = Stubborn(WorkerConfig.of({}), world.config, MemoryStatusBackingStore())
    mirror = world.mirror()
    mirror.step()
    world.airflow.toggle("c", True)
    world.airflow.toggle("d", True)
    mirror.step()
    assert world.target("d") is TargetState.PAUSED
    assert "[c|worker] Cannot change the target state" in caplog.text


def test_a_person_who_changes_their_mind_while_the_mirror_acts_gets_their_last_will(world: World) -> None:
    class Slow(Herder):
        def pause(self, name: str) -> None:
            super().pause(name)
            world.airflow.toggle(name, False)  # resumed in the UI in the meantime

    world.herder = Slow(WorkerConfig.of({}), world.config, MemoryStatusBackingStore())
    mirror = world.mirror()
    mirror.step()
    world.airflow.toggle("c", True)
    mirror.step()
    mirror.step()
    assert world.target("c") is TargetState.STARTED
    assert world.airflow.writes == []


def test_a_target_state_that_changes_while_the_mirror_acts_is_followed(world: World) -> None:
    class SlowAirflow(Airflow):
        def set_paused(self, dag_id: str, paused: bool, why: str) -> None:
            super().set_paused(dag_id, paused, why)
            if paused:
                world.herder.resume(dag_id)

    world.airflow = SlowAirflow(c=False)
    mirror = world.mirror()
    mirror.step()
    world.herder.pause("c")
    mirror.step()
    mirror.step()
    assert world.airflow.writes == [("c", True), ("c", False)]
    assert world.target("c") is TargetState.STARTED


def test_a_restart_by_rest_runs_the_dag_again_once(world: World) -> None:
    mirror = world.mirror()
    mirror.step()
    world.herder.restart("c")
    mirror.step()
    mirror.step()
    assert world.airflow.again == ["c"]


def test_a_restart_runs_no_dag_again_that_is_paused_or_has_other_connectors(world: World) -> None:
    for name in ("a", "b"):
        world.put(name, airflow_dag="both")
    world.airflow.toggle("both", False, "dags-folder")
    world.herder.pause("c")
    mirror = world.mirror()
    mirror.step()
    for name in ("a", "c"):
        world.herder.restart(name)
    mirror.step()
    assert world.airflow.again == []


def test_only_the_leader_runs_a_dag_again_and_a_successor_forgets_old_restarts(world: World) -> None:
    lead = Lead(leads=False)
    mirror = world.mirror(lead)
    mirror.step()
    world.herder.restart("c")
    mirror.step()
    lead.leads = True
    mirror.step()
    assert world.airflow.again == []


def test_an_outage_is_logged_once_and_outlived(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.airflow.down = True
    mirror = world.mirror()
    with caplog.at_level(logging.ERROR):
        mirror.start()
        eventually(lambda: "cannot look" in caplog.text)
        world.herder.pause("c")
        world.airflow.down = False
        eventually(lambda: world.airflow.writes == [("c", True)])
    mirror.stop()
    assert caplog.text.count("cannot look") == 1
    assert not world.lead.leads
