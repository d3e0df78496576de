"""Tests of the pause sync, with a config store in memory and a stand-in for Airflow's database."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError
from sluiceway.herder import Herder
from sluiceway.provider.pause_sync.airflow_db import DagFlag, EndedRuns
from sluiceway.provider.pause_sync.pause_sync import PauseSync
from sluiceway.provider.pause_sync.rules import ConnectorTasks, Toggle
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from sluiceway.storage.model import TargetState
from support.eventually import eventually

BUNDLE = "connectors"
CLUSTER = "group connect"


class Airflow:
    """Airflow's database: paused flags, audit log, and requests to the DAG processor."""

    def __init__(self, **paused: bool) -> None:
        self.dags = {dag: DagFlag(dag, flag, BUNDLE) for dag, flag in paused.items()}
        self.requests: list[list[str]] = []
        self.writes: list[tuple[str, bool]] = []
        self.audit: dict[str, Toggle] = {}
        self.serves = (CLUSTER, 0)
        self.asked: list[list[str]] = []
        self.down = False
        self.down_once: dict[str, bool] = {}
        self.cleared: list[tuple[str, ...]] = []
        self.stale: set[str] = set()
        self.allowed = 0
        self.runs: dict[str, bool] = {}
        """Whether the task of a DAG's unfinished run executes."""

    def flags(self, dag_ids: Collection[str], bundle: str) -> dict[str, DagFlag]:
        if self.down:
            raise ConnectionError("no database")
        return {dag: flag for dag, flag in self.dags.items() if dag in dag_ids or flag.bundle == bundle}

    def toggle(self, dag: str, paused: bool, bundle: str = BUNDLE) -> None:
        self.dags[dag] = DagFlag(dag, paused, bundle)

    def served_since(self, cluster: str, *, claim: bool) -> int | None:
        if claim and self.serves[0] != cluster:
            self.serves = (cluster, max([now(), *(toggle.at + 1 for toggle in self.audit.values())]))
        return self.serves[1] if self.serves[0] == cluster else None

    def toggles(self, dag_ids: Collection[str]) -> dict[str, Toggle]:
        self.asked.append(list(dag_ids))
        return {dag: toggle for dag, toggle in self.audit.items() if dag in dag_ids}

    def set_paused(self, dag_id: str, paused: bool, why: str) -> None:
        self.writes.append((dag_id, paused))
        self.dags[dag_id] = DagFlag(dag_id, paused, self.dags[dag_id].bundle)

    def request_parsing(self, bundle: str, files: Collection[str]) -> None:
        assert bundle == BUNDLE
        self.requests.append(list(files))

    def clear_failed(self, dag_id: str, tasks: ConnectorTasks, why: str) -> list[str]:
        if self.down_once.pop(dag_id, False):
            raise ConnectionError("no database")
        self.cleared.append((dag_id, *tasks.by_config))
        return ["run"]

    def gone(self, dag_ids: Collection[str]) -> list[str]:
        return [dag for dag in self.stale if dag in dag_ids]

    def allow_runs(self, bundle: str) -> None:
        self.allowed += 1

    def end_runs(self, bundle: str, keep: Collection[str], why: str) -> EndedRuns:
        assert bundle == BUNDLE
        ended = [dag for dag, executes in self.runs.items() if dag not in keep and not executes]
        for dag in ended:
            del self.runs[dag]
        return EndedRuns(ended, [dag for dag in self.runs if dag not in keep])


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

    def sync(self, lead: Lead | None = None, cluster: str = CLUSTER) -> PauseSync:
        return PauseSync(
            self.config, self.herder, self.airflow, lead or self.lead, bundle=BUNDLE, cluster=lambda: cluster, interval=0.01
        )

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


def test_pausing_and_unpausing_the_dag_pauses_and_resumes_the_connector(world: World) -> None:
    sync = world.sync()
    sync.step()
    world.airflow.toggle("c", True)
    sync.step()
    assert world.target("c") is TargetState.PAUSED
    sync.step()
    world.airflow.toggle("c", False)
    sync.step()
    assert world.target("c") is TargetState.STARTED
    assert world.airflow.writes == []


@pytest.mark.parametrize("bundle", ["team", None])
def test_a_dag_of_another_bundle_is_not_the_connectors(world: World, bundle: str | None) -> None:
    world.airflow.dags["c"] = DagFlag("c", False, bundle)
    world.put("d", airflow_dag="c")
    sync = world.sync()
    sync.step()
    world.herder.pause("c")
    sync.step()
    mine = bundle is None  # of an Airflow that has not noted it yet
    assert world.airflow.writes == ([("c", True)] if mine else [])
    assert world.target("d") is (TargetState.PAUSED if mine else TargetState.STARTED)
    world.herder.pause("d")  # a connector that the other DAG runs
    sync.step()
    assert world.airflow.dags["c"].paused


def test_a_change_of_the_target_state_sets_the_dags_paused_flag(world: World) -> None:
    sync = world.sync()
    sync.step()
    for change in (world.herder.stop, world.herder.resume, world.herder.pause):
        change("c")
        sync.step()
        sync.step()
    assert world.airflow.writes == [("c", True), ("c", False), ("c", True)]
    assert world.target("c") is TargetState.PAUSED


def test_a_toggle_right_after_that_of_the_sync_is_a_users(world: World) -> None:
    sync = world.sync()
    sync.step()
    world.herder.pause("c")
    sync.step()
    world.airflow.toggle("c", False)
    sync.step()
    assert world.target("c") is TargetState.STARTED
    world.airflow.toggle("c", True)
    sync.step()
    world.herder.resume("c")
    sync.step()
    assert world.airflow.writes == [("c", True), ("c", False)]


def test_at_startup_the_topic_wins(world: World) -> None:
    world.airflow.toggle("c", True)
    world.sync().step()
    assert world.airflow.writes == [("c", False)]
    assert world.target("c") is TargetState.STARTED


def now() -> int:
    return time.time_ns() // 1_000_000


@pytest.mark.parametrize("unpaused_after", [True, False])
def test_at_startup_the_latest_change_wins(world: World, unpaused_after: bool) -> None:
    before = Toggle(False, now() - 1000)
    world.herder.pause("c")
    world.airflow.audit["c"] = Toggle(False, now() + 1000) if unpaused_after else before
    sync = world.sync()
    sync.step()
    assert world.target("c") is (TargetState.STARTED if unpaused_after else TargetState.PAUSED)
    assert world.airflow.writes == ([] if unpaused_after else [("c", True)])
    sync.step()
    assert world.airflow.asked == [["c"], []], "the audit log is read once"


def test_a_flag_that_the_audit_log_does_not_explain_does_not_win(world: World) -> None:
    world.airflow.toggle("c", True)  # such as a new DAG
    world.airflow.audit["c"] = Toggle(False, now() + 1000)
    world.sync().step()
    assert world.airflow.writes == [("c", False)]


@pytest.mark.parametrize("leads", [True, False])
def test_a_toggle_for_connectors_of_another_cluster_does_not_win(world: World, leads: bool) -> None:
    """Such as that of a twin, after connectors moved away, which ran there, and were left STOPPED here."""
    world.herder.stop("c")
    world.airflow.audit["c"] = Toggle(False, now() + 1000)
    world.airflow.serves = ("another group", 0)
    sync = world.sync(Lead(leads))
    sync.step()
    assert world.target("c") is TargetState.STOPPED
    assert world.airflow.writes == ([("c", True)] if leads else [])
    assert (world.airflow.serves[0] == CLUSTER) is leads
    if leads:
        world.sync(cluster="another group").step()  # back again, without a toggle meanwhile
        assert world.target("c") is TargetState.STOPPED


def test_a_pause_from_before_the_connector_was_created_again_does_not_win(world: World) -> None:
    world.airflow.audit["c"] = Toggle(True, now() - 1000)
    world.airflow.toggle("c", True)
    world.config.remove_connector("c")
    world.put("c")
    world.sync().step()
    assert world.airflow.writes == [("c", False)]


def test_a_connector_that_is_created_again_starts_though_its_former_dag_was_paused(world: World) -> None:
    sync = world.sync()
    world.herder.pause("c")
    sync.step()
    sync.step()
    world.config.remove_connector("c")
    sync.step()
    world.put("c")
    sync.step()
    assert world.airflow.writes == [("c", True), ("c", False)]


def test_what_was_agreed_with_a_deleted_connector_does_not_apply_to_its_successor(world: World) -> None:
    sync = world.sync()
    sync.step()
    world.config.remove_connector("c")
    sync.step()
    world.airflow.toggle("c", True)
    world.put("c")
    sync.step()
    assert world.airflow.writes == [("c", False)]
    assert world.target("c") is TargetState.STARTED


def test_a_hand_written_dag_is_found_by_the_key_in_its_connectors_config() -> None:
    world = World(Airflow())
    world.airflow.toggle("mine", False, "dags-folder")
    world.put("a", airflow_dag="mine")
    world.put("b", airflow_dag="mine")
    sync = world.sync()
    sync.step()
    world.airflow.toggle("mine", True, "dags-folder")
    sync.step()
    assert [world.target("a"), world.target("b")] == [TargetState.PAUSED] * 2
    assert world.airflow.requests == []


def test_the_sync_waits_for_a_dag_that_airflow_does_not_have_yet(world: World) -> None:
    del world.airflow.dags["c"]
    sync = world.sync()
    world.herder.pause("c")
    sync.step()
    assert world.airflow.writes == []
    world.airflow.toggle("c", False)
    sync.step()
    assert world.airflow.writes == [("c", True)]


def test_the_bundle_is_parsed_only_when_a_dag_appears_changes_or_disappears(world: World) -> None:
    sync = world.sync()
    sync.step()
    world.put("new")
    sync.step()
    world.put("c")  # nothing that the DAG shows has changed
    sync.step()
    world.put("c", airflow_tags="x")
    sync.step()
    world.config.remove_connector("new")
    sync.step()
    assert world.airflow.requests == [["connector-new.py"], ["connector-c.py"], ["connector-new.py"]]


def test_changes_while_no_api_server_ran_are_handled_at_startup() -> None:
    world = World(Airflow(gone=False, known=False))
    world.put("known")
    world.put("unseen")
    world.sync().step()
    assert world.airflow.requests == [["connector-gone.py", "connector-unseen.py"]]


def test_only_the_process_with_the_lock_acts_and_its_successor_knows_what_was_agreed(world: World) -> None:
    waiting = Lead(leads=False)
    leader, other = world.sync(), world.sync(waiting)
    leader.step()
    other.step()
    world.airflow.toggle("c", True)
    world.put("new")
    other.step()
    assert (world.target("c"), world.airflow.requests) == (TargetState.STARTED, [])
    waiting.leads = True
    other.step()
    assert world.target("c") is TargetState.PAUSED


def test_a_connector_that_cannot_be_changed_does_not_block_the_others(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.put("d")
    world.airflow.toggle("d", False)

    class Stubborn(Herder):
        def pause(self, name: str, *, by_move: bool = False) -> None:
            if name == "c":
                raise ConnectError("deleted since")
            super().pause(name)

    world.herder = Stubborn(WorkerConfig.of({}), world.config, MemoryStatusBackingStore())
    sync = world.sync()
    sync.step()
    world.airflow.toggle("c", True)
    world.airflow.toggle("d", True)
    sync.step()
    assert world.target("d") is TargetState.PAUSED
    assert "[c|worker] Cannot change the target state" in caplog.text


def test_a_user_who_toggles_again_while_the_sync_acts_gets_the_last_toggle(world: World) -> None:
    class Slow(Herder):
        def pause(self, name: str, *, by_move: bool = False) -> None:
            super().pause(name, by_move=by_move)
            world.airflow.toggle(name, False)  # unpaused in the UI in between

    world.herder = Slow(WorkerConfig.of({}), world.config, MemoryStatusBackingStore())
    sync = world.sync()
    sync.step()
    world.airflow.toggle("c", True)
    sync.step()
    sync.step()
    assert world.target("c") is TargetState.STARTED
    assert world.airflow.writes == []


def test_a_target_state_that_changes_while_the_sync_acts_is_followed(world: World) -> None:
    class SlowAirflow(Airflow):
        def set_paused(self, dag_id: str, paused: bool, why: str) -> None:
            super().set_paused(dag_id, paused, why)
            if paused:
                world.herder.resume(dag_id)

    world.airflow = SlowAirflow(c=False)
    sync = world.sync()
    sync.step()
    world.herder.pause("c")
    sync.step()
    sync.step()
    assert world.airflow.writes == [("c", True), ("c", False)]
    assert world.target("c") is TargetState.STARTED


def test_a_restart_request_clears_the_dag_run_once(world: World) -> None:
    sync = world.sync()
    sync.step()
    world.herder.restart("c")
    sync.step()
    sync.step()
    assert world.airflow.cleared == [("c", "c")]


def test_a_restart_request_is_served_after_an_outage_of_the_database(world: World) -> None:
    sync = world.sync()
    sync.step()
    world.herder.restart("c")
    world.airflow.down_once["c"] = True
    with pytest.raises(ConnectionError):
        sync.step()
    for _ in range(2):
        sync.step()
    assert world.airflow.cleared == [("c", "c")]


def test_a_restart_request_clears_the_tasks_of_its_connector_alone_and_no_paused_dag(world: World) -> None:
    for name in ("a", "b"):
        world.put(name, airflow_dag="both")
    world.airflow.toggle("both", False, "dags-folder")
    world.herder.pause("c")
    sync = world.sync()
    sync.step()
    for name in ("a", "c"):
        world.herder.restart(name)
    sync.step()
    assert world.airflow.cleared == [("both", "a")]


def test_connectors_whose_dag_is_gone_are_named_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("a", "b"):
        world.put(name, airflow_dag="both")
    world.put("new", airflow_dag="not-parsed-yet")
    world.airflow.toggle("both", False, "dags-folder")
    sync = world.sync()
    sync.step()
    for _ in range(2):
        flag = world.airflow.dags.pop("both")
        world.airflow.stale.add("both")
        for _ in range(3):
            sync.step()
        [line] = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
        assert line.startswith("DAG both is gone, but its connectors are not: a, b. ")
        caplog.clear()
        world.airflow.stale.clear()
        world.airflow.dags["both"] = flag
        sync.step()
    assert world.target("a") is TargetState.STARTED


def test_only_the_process_with_the_lock_clears_dags_and_its_successor_ignores_old_requests(world: World) -> None:
    lead = Lead(leads=False)
    sync = world.sync(lead)
    sync.step()
    world.herder.restart("c")
    sync.step()
    lead.leads = True
    sync.step()
    assert world.airflow.cleared == []


def test_an_outage_is_logged_once_and_survived(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.airflow.down = True
    sync = world.sync()
    with caplog.at_level(logging.ERROR):
        sync.start()
        eventually(lambda: "cannot read DAGs" in caplog.text)
        world.herder.pause("c")
        world.airflow.down = False
        eventually(lambda: world.airflow.writes == [("c", True)])
    sync.stop()
    assert caplog.text.count("cannot read DAGs") == 1
    assert not world.lead.leads


def test_the_run_of_a_deleted_connector_ends_once_its_task_has_ended(world: World) -> None:
    sync = world.sync()
    world.airflow.runs = {"c": True, "kept": False}
    world.config.put_connector("kept", {"name": "kept"})
    sync.step()
    world.config.remove_connector("c")
    sync.step()
    assert world.airflow.runs == {"c": True, "kept": False}, "the task drains its driver"
    world.airflow.runs["c"] = False
    sync.step()
    assert world.airflow.runs == {"kept": False}


def test_a_run_that_airflow_creates_before_it_has_removed_the_dag_ends_too(world: World) -> None:
    sync = world.sync()
    sync.step()
    world.config.remove_connector("c")
    sync.step()
    world.airflow.runs = {"c": False}
    sync.step()
    assert world.airflow.runs == {}
    world.airflow.dags.clear()
    sync.step()
    world.airflow.end_runs = lambda *_: pytest.fail("a needless query")  # type: ignore[method-assign]
    sync.step()


def test_the_run_of_a_shared_application_ends_with_its_last_connector(world: World) -> None:
    world.config.put_connector("c", {"name": "c", "sluiceway.application": "small"})
    world.airflow.runs = {"application_x7Esmall": False}
    sync = world.sync()
    sync.step()
    assert world.airflow.runs
    world.config.remove_connector("c")
    sync.step()
    assert not world.airflow.runs


def test_runs_of_connectors_deleted_while_no_api_server_ran_end_at_startup(world: World) -> None:
    world.airflow.runs = {"gone": False}
    follower = world.sync(Lead(False))
    follower.step()
    assert world.airflow.runs, "only the process with the lock acts"
    world.sync().step()
    assert not world.airflow.runs


def test_airflow_may_create_a_run_at_once_after_a_deletion_and_from_time_to_time(world: World) -> None:
    sync = world.sync()
    world.airflow.dags.clear()
    sync.step()
    sync.step()
    assert world.airflow.allowed == 1
    world.config.remove_connector("c")
    sync.step()
    assert world.airflow.allowed == 2
    world.sync(Lead(False)).step()
    assert world.airflow.allowed == 2, "only the process with the lock acts"
