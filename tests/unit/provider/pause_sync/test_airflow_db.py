"""Tests of what is read from and written to Airflow's tables, on SQLite."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from types import SimpleNamespace

import pytest
from airflow.models import import_all_models
from airflow.models.asset import AssetEvent, AssetModel
from airflow.models.dag import DagModel
from airflow.models.dag_version import DagVersion
from airflow.models.dagbundle import DagBundleModel
from airflow.models.dagrun import DagRun
from airflow.models.log import Log
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.serialized_dag import SerializedDagModel
from airflow.models.taskinstance import TaskInstance
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization
from airflow.utils.state import DagRunState, TaskInstanceState
from sqlalchemy import create_engine, insert, select
from sqlalchemy.orm import Session
from sqlalchemy.pool import StaticPool
from uuid6 import uuid7

from sluiceway.operators import SourceConnectorOperator
from sluiceway.provider.pause_sync import airflow_db
from sluiceway.provider.pause_sync.airflow_db import AirflowDatabase, EndedRuns
from sluiceway.provider.pause_sync.rules import ConnectorTasks, Toggle
from sluiceway.provider.ui.dag_facts import DagFacts, RunFacts

_HAS_FLAG = hasattr(DagModel, "exceeds_max_non_backfill")


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    engine = create_engine("sqlite://", poolclass=StaticPool)
    import_all_models()
    Log.metadata.create_all(engine)
    with Session(engine) as made:

        @contextmanager
        def create_session(**_: object) -> Iterator[Session]:
            yield made

        monkeypatch.setattr(airflow_db, "create_session", create_session)
        yield made


def entry(session: Session, event: str, dag: str = "d", **extra: object) -> int:
    """Write an entry; return its time in milliseconds since the epoch."""
    made = Log(event=event, owner="ann", dag_id=dag, extra=json.dumps(extra))
    session.add(made)
    session.flush()
    assert made.dttm is not None
    return int(made.dttm.timestamp() * 1000)


def test_the_newest_entry_that_sets_the_flag_counts(session: Session) -> None:
    entry(session, "patch_dag", is_paused=True, method="PATCH")
    at = entry(session, "patch_dag", is_paused=False, method="PATCH")
    entry(session, "patch_dag", method="PATCH")
    entry(session, "trigger_dag_run", is_paused=True)
    entry(session, "patch_dag", dag="other", is_paused=True)
    assert AirflowDatabase().toggles(["d", "silent"]) == {"d": Toggle(False, at)}


@pytest.mark.parametrize(
    ("event", "paused"), [("pause", True), ("unpause", False), ("cli_dag_pause", True), ("cli_dag_unpause", False)]
)
def test_events_whose_names_imply_the_flag(session: Session, event: str, paused: bool) -> None:
    at = entry(session, event)
    assert AirflowDatabase().toggles(["d"]) == {"d": Toggle(paused, at)}


def test_an_invalid_entry_is_ignored(session: Session) -> None:
    session.add(Log(event="patch_dag", owner="ann", dag_id="d", extra="{no JSON"))
    session.add(Log(event="patch_dag", owner="ann", dag_id="d", extra="[1]"))
    session.flush()
    assert AirflowDatabase().toggles(["d"]) == {}


def test_another_cluster_is_served_from_its_claim_on(session: Session) -> None:
    database = AirflowDatabase()
    assert database.served_since("a", claim=False) is None
    first = database.served_since("a", claim=True)
    assert first is not None
    assert database.served_since("a", claim=False) == database.served_since("a", claim=True) == first
    second = database.served_since("b", claim=True)
    assert second is not None
    assert second >= first
    assert database.served_since("a", claim=False) is None
    again = database.served_since("a", claim=True)
    assert again is not None
    assert again >= second
    assert database.toggles(["d"]) == {}


def run(session: Session, dag: str, *tasks: TaskInstanceState | None, bundle: str = "connectors") -> DagRun:
    """Write a running DAG run with a task in each of these states."""
    if session.get(DagModel, dag) is None:
        session.merge(DagBundleModel(name=bundle))
        blocked = {"exceeds_max_non_backfill": True} if _HAS_FLAG else {}
        session.add(DagModel(dag_id=dag, bundle_name=bundle, fileloc="", is_stale=True, **blocked))
    made = DagRun(dag_id=dag, run_id=f"{dag}-{uuid7()}", run_type="scheduled", state=DagRunState.RUNNING)
    version = session.scalars(select(DagVersion).where(DagVersion.dag_id == dag)).first()
    version = version or DagVersion(dag_id=dag, version_number=1, bundle_name=bundle)
    session.add_all([made, version])
    session.flush()
    for number, state in enumerate(tasks):
        task = EmptyOperator(task_id=f"task{number}")
        made_task = TaskInstance(task, run_id=made.run_id, dag_version_id=version.id, state=state)  # type: ignore[arg-type]
        made_task.dag_id = dag
        session.add(made_task)
    session.flush()
    return made


def test_dags_of_other_bundles_are_found(session: Session) -> None:
    for dag, bundle, stale in (("a", "connectors", False), ("b", "team", False), ("c", "team", True)):
        session.merge(DagBundleModel(name=bundle))
        session.add(DagModel(dag_id=dag, bundle_name=bundle, fileloc="", is_stale=stale))
    session.flush()
    assert AirflowDatabase().other_bundles(["a", "b", "c", "d"], "connectors") == {"b": "team"}
    assert AirflowDatabase().other_bundles(["a"], "connectors") == {}


RENDERED = {
    "one": {"connector": "one", "config": None},
    "two": {"connector": "two", "config": {"name": "two", "password": "***"}},
    "check": {"sql": "select 1"},
}


@pytest.mark.parametrize("state", [TaskInstanceState.FAILED, TaskInstanceState.UP_FOR_RETRY])
@pytest.mark.parametrize(("asked", "cleared"), [("one", 0), ("two", 1), ("three", None)])
def test_a_restart_clears_the_task_of_its_connector_and_what_waited_for_it(
    session: Session, state: TaskInstanceState, asked: str, cleared: int | None
) -> None:
    made = run(session, "both", *[state] * 3, TaskInstanceState.UPSTREAM_FAILED, TaskInstanceState.RUNNING)
    for number, fields in enumerate(RENDERED.values()):
        session.execute(
            insert(RenderedTaskInstanceFields).values(
                dag_id="both", task_id=f"task{number}", run_id=made.run_id, map_index=-1, rendered_fields=fields
            )
        )
    session.flush()
    before = states(session, made)
    found = AirflowDatabase().clear_failed("both", ConnectorTasks({asked: None}, is_only=False), "asked")
    after = states(session, made)
    if cleared is None:
        assert (found, after) == ([], before)
        return
    assert found == [f"task{cleared}"]
    changed = {number for number, (old, new) in enumerate(zip(before[1:], after[1:], strict=True)) if old != new}
    assert changed == {cleared, 3}


def test_a_run_is_cleared_as_a_whole_once_it_has_ended(session: Session) -> None:
    made = run(session, "hourly", TaskInstanceState.SUCCESS, TaskInstanceState.SUCCESS)
    made.created_dag_version_id = session.scalars(select(DagVersion.id).where(DagVersion.dag_id == "hourly")).one()
    other = run(session, "hourly", TaskInstanceState.SUCCESS)
    database, before = AirflowDatabase(), states(session, other)
    made.state = DagRunState.RUNNING
    session.flush()
    assert database.clear_run("hourly", made.run_id, "late") is None
    assert states(session, made)[1:] == [TaskInstanceState.SUCCESS] * 2
    made.state = DagRunState.SUCCESS
    session.flush()
    assert database.clear_run("hourly", made.run_id, "late") is True
    assert states(session, made) == [DagRunState.QUEUED, None, None]
    assert states(session, other) == before
    assert database.clear_run("hourly", "gone", "late") is False
    assert database.clear_run("other", made.run_id, "late") is False


def test_the_newest_run_that_has_ended_and_the_one_that_has_not_are_found_for_each_dag(session: Session) -> None:
    ended = [run(session, "busy") for _ in range(3)]
    for made, state, second in zip(ended, (DagRunState.SUCCESS, DagRunState.FAILED, DagRunState.SUCCESS), (1, 2, 3), strict=True):
        made.state, made.end_date = state, datetime.fromtimestamp(second, timezone.utc)
    active = run(session, "busy")
    active.queued_at = datetime.fromtimestamp(9, timezone.utc)
    run(session, "other").state = DagRunState.FAILED
    model = session.get_one(DagModel, "busy")
    model.timetable_summary, model.is_paused, model.is_stale = "@hourly", True, False
    model.next_dagrun_create_after = datetime.fromtimestamp(3600, timezone.utc)
    session.get_one(DagModel, "other").has_import_errors = True
    session.flush()
    last, now = RunFacts("success", 3.0, ended[2].run_id), RunFacts("running", 9.0, active.run_id)
    found = AirflowDatabase().dags(["busy", "other", "unknown"])
    assert found["busy"] == DagFacts("@hourly", 3600.0, paused=True, gone=False, last=last, active=now)
    assert (found["other"].gone, found["other"].last and found["other"].last.state, found["other"].active) == (
        True,
        "failed",
        None,
    )
    assert (found["busy"].import_error, found["other"].import_error) == (False, True)
    assert found.keys() == {"busy", "other"}
    assert AirflowDatabase().dags([]) == {}


def test_the_config_in_a_dags_file_is_that_of_its_task(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"name": "a", "tasks.max": 1, "topic": "{{ ds }}"}
    with DAG("etl", schedule=None, max_active_runs=1) as dag:
        SourceConnectorOperator(task_id="load", config=config)
        SourceConnectorOperator(task_id="file", config="/etc/a.json")
        SourceConnectorOperator(task_id="named", connector="b")
        SourceConnectorOperator.partial(task_id="mapped").expand(config=[config])
    stored = SimpleNamespace(data=DagSerialization.to_dict(dag))
    monkeypatch.setattr(SerializedDagModel, "get", lambda dag_id, session: stored if dag_id == "etl" else None)
    given = AirflowDatabase().given_config
    assert given("etl", "load") == config
    assert [given("etl", task) for task in ("file", "named", "mapped", "none")] == [None] * 4
    assert given("gone", "load") is None


def test_a_dag_without_a_file_is_gone_and_one_that_airflow_does_not_know_is_not(session: Session) -> None:
    session.merge(DagBundleModel(name="dags"))
    for dag, stale in (("a", True), ("b", False)):
        session.add(DagModel(dag_id=dag, bundle_name="dags", fileloc="", is_stale=stale))
    session.flush()
    assert AirflowDatabase().gone(["a", "b", "c"]) == ["a"]


def states(session: Session, made: DagRun) -> list[str | None]:
    session.flush()
    session.expire_all()
    query = select(TaskInstance.state).where(TaskInstance.run_id == made.run_id).order_by(TaskInstance.task_id)
    return [made.state, *session.scalars(query)]


def test_runs_of_deleted_connectors_end_with_success_whatever_their_tasks_wait_for(session: Session) -> None:
    waiting = (
        TaskInstanceState.DEFERRED,
        TaskInstanceState.UP_FOR_RETRY,
        TaskInstanceState.UP_FOR_RESCHEDULE,
        TaskInstanceState.FAILED,
        None,
    )
    gone, kept, other = run(session, "gone", *waiting), run(session, "kept", None), run(session, "other", None, bundle="dags")
    ended = AirflowDatabase().end_runs("connectors", {"kept"}, "deleted")
    assert ended == EndedRuns(["gone"], [])
    assert states(session, gone) == ["success", "success", "success", "success", "failed", "success"]
    assert states(session, kept) == ["running", None]
    assert states(session, other) == ["running", None]
    assert gone.end_date is not None
    assert [(log.event, log.dag_id) for log in session.scalars(select(Log))] == [("success", "gone")]
    assert AirflowDatabase().end_runs("connectors", {"kept"}, "deleted") == EndedRuns([], [])


def test_a_run_whose_task_executes_is_left_until_the_task_has_ended(session: Session) -> None:
    made = run(session, "gone", TaskInstanceState.RUNNING)
    assert AirflowDatabase().end_runs("connectors", (), "deleted") == EndedRuns([], ["gone"])
    assert states(session, made) == ["running", "running"]


@pytest.mark.skipif(not _HAS_FLAG, reason="before 3.2, Airflow counts the runs instead")
def test_a_dag_without_an_unfinished_run_may_have_another(session: Session) -> None:
    marked, running, other = run(session, "marked"), run(session, "running"), run(session, "other", bundle="dags")
    marked.state = other.state = DagRunState.FAILED
    session.flush()
    AirflowDatabase().allow_runs("connectors")
    session.expire_all()
    assert not session.get_one(DagModel, "marked").exceeds_max_non_backfill, "otherwise it waits for the next parse"
    assert session.get_one(DagModel, "running").exceeds_max_non_backfill
    assert session.get_one(DagModel, "other").exceeds_max_non_backfill
    assert running.state == DagRunState.RUNNING


URI = "sluiceway://connectors/c"


def events(session: Session) -> list[tuple[str, object]]:
    query = (
        select(AssetModel.name, AssetEvent.extra).join(AssetEvent, AssetEvent.asset_id == AssetModel.id).order_by(AssetEvent.id)
    )
    return [(name, extra) for name, extra in session.execute(query.order_by(AssetEvent.id))]


def test_events_are_of_all_assets_with_a_uri_and_of_new_ones(session: Session) -> None:
    session.add(AssetModel(name="orders", uri="kafka://b:1/orders", group="asset", extra={}))
    session.flush()
    assert AirflowDatabase().add_asset_events([URI, "kafka://b:1/orders"], {"records": 5})
    assert [name for name, _ in events(session)] == [URI, "kafka://b:1/orders", "orders"]
    assert AirflowDatabase().add_asset_events([URI], {"records": 6})
    assert [extra for name, extra in events(session) if name == URI] == [{"records": 5}, {"records": 6}]
    assert session.scalars(select(AssetModel.name)).all().count(URI) == 1


def test_a_partition_has_its_events_once(session: Session) -> None:
    database = AirflowDatabase()
    assert database.complete_until(URI) is None
    assert database.add_asset_events([URI], {"complete_until": 20}, "ten")
    assert database.add_asset_events([URI], {"records": 1})
    assert database.complete_until(URI) == 20
    assert not database.add_asset_events([URI], {"complete_until": 20}, "ten")
    assert not database.add_asset_events([URI], {"complete_until": 10}, "zero")
    assert database.add_asset_events([URI], {"complete_until": 10, "records": 1})  # by a process that has not seen it
    assert not database.add_asset_events([URI], {"complete_until": 20}, "ten")
    assert database.add_asset_events([URI], {"complete_until": 30}, "twenty")
    assert len(events(session)) == 4
    if hasattr(AssetEvent, "partition_key"):
        assert session.scalars(select(AssetEvent.partition_key).order_by(AssetEvent.id)).all() == ["ten", None, None, "twenty"]


@pytest.mark.skipif(not hasattr(DagModel, "timetable_partitioned"), reason="before Airflow 3.2, no DAG waits for partitions")
def test_an_asset_that_a_dag_of_partitions_waits_for_has_no_event_without_a_key(session: Session) -> None:
    from airflow.models.asset import DagScheduleAssetReference

    session.add(AssetModel(name=URI, uri=URI, group="asset", extra={}))
    session.add(DagBundleModel(name="b"))
    session.flush()
    session.add(DagModel(dag_id="hours", bundle_name="b", timetable_partitioned=True, is_paused=True))
    session.flush()
    [asset] = session.scalars(select(AssetModel))
    session.add(DagScheduleAssetReference(asset_id=asset.id, dag_id="hours"))
    session.flush()
    session.expire_all()
    assert AirflowDatabase().add_asset_events([URI, "kafka://b:1/t"], {"records": 5})
    assert [name for name, _ in events(session)] == ["kafka://b:1/t"]
    assert AirflowDatabase().add_asset_events([URI], {"complete_until": 20}, "ten")
    assert [name for name, _ in events(session)] == ["kafka://b:1/t", URI]
