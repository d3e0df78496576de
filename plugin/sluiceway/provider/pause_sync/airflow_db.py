"""Reads and writes Airflow's database. Runs in the API server, the component that has access to it.

The only user of Airflow's database models, which are private: they change with Airflow's versions.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from airflow.assets.manager import asset_manager
from airflow.models.asset import AssetEvent, AssetModel
from airflow.models.dag import DagModel
from airflow.models.dagbag import DagPriorityParsingRequest
from airflow.models.dagrun import DagRun
from airflow.models.log import Log
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.serialized_dag import SerializedDagModel
from airflow.models.taskinstance import TaskInstance, clear_task_instances
from airflow.utils.session import create_session
from airflow.utils.sqlalchemy import with_row_locks
from airflow.utils.state import DagRunState, State, TaskInstanceState
from sqlalchemy import func, or_, select, update
from sqlalchemy.orm import Session

from sluiceway.provider.pause_sync.rules import ConnectorTasks, Toggle
from sluiceway.provider.ui.dag_facts import DagFacts, RunFacts

_OWNER = "sluiceway"
_SERVES = "sluiceway_serves"  # the audit log's event whose extra is the Connect cluster that the DAGs belong to from then on

# The audit log's events that set a paused flag, and the value; None if the entry's extra holds it. In order: the REST API
# (which the UI uses too), this module, and the command line.
_TOGGLES = {"patch_dag": None, "pause": True, "unpause": False, "cli_dag_pause": True, "cli_dag_unpause": False}
_CLEARABLE = (TaskInstanceState.FAILED, TaskInstanceState.UP_FOR_RETRY)
_UNFINISHED_RUNS = (DagRunState.QUEUED, DagRunState.RUNNING)
_EXECUTING = (TaskInstanceState.RUNNING, TaskInstanceState.RESTARTING)
_MAX_ENTRIES = 20  # read more than one: patch_dag is also logged for other changes


@dataclass(frozen=True, slots=True)
class DagFlag:
    """The paused flag of an active DAG, and its bundle."""

    dag_id: str
    paused: bool
    bundle: str | None

    def other_bundle(self, bundle: str) -> str | None:
        """Return the bundle that defines the DAG if that is another one; None also if Airflow has not noted it yet."""
        return None if self.bundle == bundle else self.bundle


@dataclass(frozen=True, slots=True)
class EndedRuns:
    """The DAGs of runs that ``end_runs`` has ended, and of those that it left because their task executes."""

    ended: Collection[str]
    executing: Collection[str]


class AirflowDatabase:
    """Airflow's metadata database. Each method is one short transaction and raises SQLAlchemy's errors."""

    def flags(self, dag_ids: Collection[str], bundle: str) -> dict[str, DagFlag]:
        """Return the flags of the active DAGs that have one of these ids or belong to this bundle, by DAG."""
        query = select(DagModel.dag_id, DagModel.is_paused, DagModel.bundle_name).where(
            DagModel.is_stale.is_(False), or_(DagModel.dag_id.in_(dag_ids), DagModel.bundle_name == bundle)
        )
        with create_session(scoped=False) as session:
            return {row.dag_id: DagFlag(row.dag_id, bool(row.is_paused), row.bundle_name) for row in session.execute(query)}

    def other_bundles(self, dag_ids: Collection[str], bundle: str) -> dict[str, str]:
        """Return the bundles of those of these DAGs that are active and of another bundle, by DAG."""
        flags = self.flags(dag_ids, bundle)
        return {dag: other for dag in dag_ids if (flag := flags.get(dag)) and (other := flag.other_bundle(bundle))}

    def served_since(self, cluster: str, *, claim: bool) -> int | None:
        """Return since when this Airflow has served a Connect cluster and no other one, in milliseconds since the epoch.

        None if it does not yet; ``claim`` notes in the audit log that it does from now on.
        """
        newest = select(Log).where(Log.event == _SERVES).order_by(Log.id.desc()).limit(1)
        with create_session(scoped=False) as session:
            entry = session.scalars(newest).first()
            if entry is None or entry.extra != cluster:
                if not claim:
                    return None
                entry = Log(event=_SERVES, owner=_OWNER, extra=cluster)
                session.add(entry)
                session.flush()
            assert entry.dttm is not None  # noqa: S101 (each entry has its time)
            return int(entry.dttm.timestamp() * 1000)

    def toggles(self, dag_ids: Collection[str]) -> dict[str, Toggle]:
        """Return the last change of paused flags in the audit log, by DAG, without DAGs that have none."""
        found: dict[str, Toggle] = {}
        with create_session(scoped=False) as session:
            for dag_id in dag_ids:
                query = select(Log.event, Log.extra, Log.dttm).where(Log.dag_id == dag_id, Log.event.in_(_TOGGLES))
                for event, extra, at in session.execute(query.order_by(Log.id.desc()).limit(_MAX_ENTRIES)):
                    paused = _TOGGLES[event] if _TOGGLES[event] is not None else _is_paused(extra)
                    if paused is not None and at is not None:
                        found[dag_id] = Toggle(paused, int(at.timestamp() * 1000))
                        break
        return found

    def set_paused(self, dag_id: str, paused: bool, why: str) -> None:
        """Set a DAG's paused flag, and record it in the audit log."""
        with create_session(scoped=False) as session:
            session.execute(update(DagModel).where(DagModel.dag_id == dag_id).values(is_paused=paused))
            extra = json.dumps({"is_paused": paused, "why": why})
            session.add(Log(event="pause" if paused else "unpause", owner=_OWNER, dag_id=dag_id, extra=extra))

    def gone(self, dag_ids: Collection[str]) -> list[str]:
        """Return those of these DAGs that Airflow knows, but has no file of any more."""
        query = select(DagModel.dag_id).where(DagModel.is_stale.is_(True), DagModel.dag_id.in_(dag_ids))
        with create_session(scoped=False) as session:
            return list(session.scalars(query))

    def dags(self, dag_ids: Collection[str]) -> dict[str, DagFacts]:
        """Return what Airflow knows about these DAGs and their newest runs, by DAG; without those that it does not know."""
        newest = select(func.max(DagRun.id)).where(DagRun.dag_id.in_(dag_ids)).group_by(DagRun.dag_id, DagRun.state)
        with create_session(scoped=False) as session:
            runs = list(session.scalars(select(DagRun).where(DagRun.id.in_(newest)).order_by(DagRun.id)))
            models = session.scalars(select(DagModel).where(DagModel.dag_id.in_(dag_ids)))
            active = {run.dag_id: _run_facts(run) for run in runs if run.state in _UNFINISHED_RUNS}
            last = {run.dag_id: _run_facts(run) for run in runs if run.state not in _UNFINISHED_RUNS}
            return {
                model.dag_id: DagFacts(
                    model.timetable_summary,
                    None if model.next_dagrun_create_after is None else model.next_dagrun_create_after.timestamp(),
                    bool(model.is_paused),
                    bool(model.is_stale),
                    bool(model.has_import_errors),
                    last.get(model.dag_id),
                    active.get(model.dag_id),
                )
                for model in models
            }

    def given_config(self, dag_id: str, task_id: str) -> dict[str, object] | None:
        """Return the argument ``config`` of a task in a DAG's file; None if it is no dict, or too long for Airflow to keep."""
        with create_session(scoped=False) as session:
            found = SerializedDagModel.get(dag_id, session=session)
            tasks = ((found.data if found is not None else None) or {}).get("dag", {}).get("tasks", [])
        configs = [task["__var"].get("config") for task in tasks if task.get("__var", {}).get("task_id") == task_id]
        return next((config for config in configs if isinstance(config, dict)), None)

    def clear_failed(self, dag_id: str, tasks: ConnectorTasks, why: str) -> list[str]:
        """Clear those failed tasks of a DAG's newest run that run these connectors. Return the ids of the tasks.

        Tasks that wait for a retry are cleared too, and what a failed task has kept from running. Running, queued and scheduled
        tasks are not. It is recorded in the audit log. Waits while the scheduler examines the run.
        """
        with create_session(scoped=False) as session:
            newest = select(DagRun).where(DagRun.dag_id == dag_id).order_by(DagRun.run_after.desc(), DagRun.id.desc()).limit(1)
            # Airflow clears the state of ended runs alone. A run that the scheduler is about to end would stay ended.
            run = session.scalars(with_row_locks(newest, session, of=DagRun)).first()
            if run is None:
                return []
            query = select(TaskInstance).where(
                TaskInstance.dag_id == dag_id, TaskInstance.run_id == run.run_id, TaskInstance.state.in_(_CLEARABLE)
            )
            failed = list(session.scalars(query))
            fields = _rendered_fields(session, run) if failed else {}
            keys = {(each.task_id, each.map_index): each for each in failed}
            cleared = [task for key, task in keys.items() if tasks.include(*key, fields.get(key))]
            if cleared:
                # Airflow fails those again whose other upstream tasks have failed.
                clear_task_instances([*cleared, *_blocked(session, run)], session)
                extra = json.dumps({"task_ids": [task.task_id for task in cleared], "why": why})
                session.add(Log(event="clear", owner=_OWNER, dag_id=dag_id, run_id=run.run_id, extra=extra))
            return [task.task_id for task in cleared]

    def clear_run(self, dag_id: str, run_id: str, why: str) -> bool | None:
        """Clear all tasks of a run that has ended; return whether it is there, None if it has not ended.

        It is recorded in the audit log. Waits while the scheduler examines the run.
        """
        with create_session(scoped=False) as session:
            wanted = select(DagRun).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id)
            run = session.scalars(with_row_locks(wanted, session, of=DagRun)).first()
            if run is None:
                return False
            if run.state in _UNFINISHED_RUNS:
                return None
            tasks = select(TaskInstance).where(TaskInstance.dag_id == dag_id, TaskInstance.run_id == run_id)
            clear_task_instances(list(session.scalars(tasks)), session)
            session.add(Log(event="clear", owner=_OWNER, dag_id=dag_id, run_id=run_id, extra=json.dumps({"why": why})))
            return True

    def end_runs(self, bundle: str, keep: Collection[str], why: str) -> EndedRuns:
        """End the unfinished runs of a bundle's DAGs with success, except those of DAGs in ``keep``.

        A run whose task executes is left: the task ends once its driver has drained. Each end is recorded in the audit log.
        """
        ended: list[str] = []
        executing: list[str] = []
        query = select(DagRun.id, DagRun.dag_id).join(DagModel, DagModel.dag_id == DagRun.dag_id)
        query = query.where(DagModel.bundle_name == bundle, DagRun.state.in_(_UNFINISHED_RUNS))
        with create_session(scoped=False) as session:
            for number, dag_id in session.execute(query).all():
                if dag_id not in keep:
                    (ended if _end_run(session, number, why) else executing).append(dag_id)
        return EndedRuns(ended, executing)

    def complete_until(self, uri: str) -> int | None:
        """Return the field ``complete_until`` of an asset's newest event; None if it has none."""
        with create_session(scoped=False) as session:
            asset = session.scalars(select(AssetModel).where(AssetModel.name == uri, AssetModel.uri == uri)).first()
            return None if asset is None else _complete_until(session, asset)

    def add_asset_events(self, uris: Collection[str], extra: Mapping[str, Any], partition: str | None = None) -> bool:
        """Add an event for each asset, for the assets of all names that a URI has, and have Airflow create the runs that wait.

        Args:
            uris: the assets; the first one's newest event says which partitions had their events.
            extra: of each event.
            partition: the key of the partition that is complete.

        Returns:
            Whether there are new events: a partition that had its own gets no other one.
        """
        with create_session(scoped=False) as session:
            assets = [asset for uri in uris for asset in _assets(session, uri)]
            if partition is not None:
                session.scalars(with_row_locks(select(AssetModel).where(AssetModel.id == assets[0].id), session)).one()
                known = _complete_until(session, assets[0])
                if known is not None and known >= extra["complete_until"]:
                    return False
            keys: dict[str, Any] = {}  # before Airflow 3.2, only the extra has it
            if partition is not None and hasattr(AssetEvent, "partition_key"):
                keys["partition_key"] = partition
            if partition is None:  # Airflow warns of each event without a key for DAGs that wait for partitions
                assets = [each for each in assets if not _is_awaited_by_partitions(each)]
            for asset in assets:
                asset_manager.register_asset_change(asset=asset, extra=dict(extra), session=session, **keys)
        return True

    def allow_runs(self, bundle: str) -> None:
        """Let Airflow create a run for each DAG of a bundle that has no unfinished one. The DAGs have one active run at most.

        Airflow notices the end of a run that its scheduler did not end, such as one marked by a user, only at the next parse of
        the DAG's file: until then a flag keeps it from creating another run.
        """
        unfinished = select(DagRun.id).where(DagRun.dag_id == DagModel.dag_id, DagRun.state.in_(_UNFINISHED_RUNS))
        flag = getattr(DagModel, "exceeds_max_non_backfill", None)
        if flag is None:  # before Airflow 3.2, which counts the runs each time
            return
        blocked = flag.is_(True)
        with create_session(scoped=False) as session:
            query = update(DagModel).where(DagModel.bundle_name == bundle, blocked, ~unfinished.exists())
            session.execute(query.values(exceeds_max_non_backfill=False), execution_options={"synchronize_session": False})

    def request_parsing(self, bundle: str, files: Collection[str]) -> None:
        """Have the DAG processor refresh a bundle at once, and parse these files of it first."""
        with create_session(scoped=False) as session:
            for file in files:
                session.merge(DagPriorityParsingRequest(bundle_name=bundle, relative_fileloc=file))


def team_names(dag_ids: Collection[str]) -> dict[str, str | None]:
    """Return the teams of DAGs, by DAG; without those that have none. Empty before Airflow 3.2, which has no teams of DAGs."""
    names = getattr(DagModel, "get_dag_id_to_team_name_mapping", None)
    return names(list(dag_ids)) if names is not None else {}


def _assets(session: Session, uri: str) -> list[AssetModel]:
    """Return the assets with a URI; the one whose name it is comes first, and is created if it is not there."""
    found = list(session.scalars(select(AssetModel).where(AssetModel.uri == uri).order_by(AssetModel.id)))
    if not any(each.name == uri for each in found):
        found.append(AssetModel(name=uri, uri=uri, group="asset", extra={}))
        session.add(found[-1])
        session.flush()
    return sorted(found, key=lambda each: each.name != uri)


def _complete_until(session: Session, asset: AssetModel) -> int | None:
    newest = select(AssetEvent.extra).where(AssetEvent.asset_id == asset.id).order_by(AssetEvent.id.desc()).limit(_MAX_ENTRIES)
    found = (extra.get("complete_until") for extra in session.scalars(newest))
    return max((each for each in found if isinstance(each, int)), default=None)


def _is_awaited_by_partitions(asset: AssetModel) -> bool:
    return any(getattr(each.dag, "timetable_partitioned", False) for each in asset.scheduled_dags)


def _run_facts(run: DagRun) -> RunFacts:
    at = run.end_date or run.queued_at or run.start_date or run.run_after
    return RunFacts(str(run.state), at.timestamp(), run.run_id)


def _rendered_fields(session: Session, run: DagRun) -> dict[tuple[str, int], dict[str, object]]:
    """Return the values of the templated fields of a run's tasks, by task id and map index."""
    fields = RenderedTaskInstanceFields
    query = select(fields.task_id, fields.map_index, fields.rendered_fields).where(
        fields.dag_id == run.dag_id, fields.run_id == run.run_id
    )
    return {(task, index): values for task, index, values in session.execute(query)}


def _blocked(session: Session, run: DagRun) -> list[TaskInstance]:
    """Return the tasks of a run that have not run because a task before them has failed."""
    query = select(TaskInstance).where(
        TaskInstance.dag_id == run.dag_id,
        TaskInstance.run_id == run.run_id,
        TaskInstance.state == TaskInstanceState.UPSTREAM_FAILED,
    )
    return list(session.scalars(query))


def _end_run(session: Session, number: int, why: str) -> bool:
    """End a run and its unfinished tasks with success, and return True; return False if one of its tasks executes."""
    run = session.scalars(with_row_locks(select(DagRun).where(DagRun.id == number), session, of=DagRun)).one()
    tasks = select(TaskInstance).where(TaskInstance.dag_id == run.dag_id, TaskInstance.run_id == run.run_id)
    unfinished = [task for task in session.scalars(tasks) if task.state not in State.finished]
    if any(task.state in _EXECUTING for task in unfinished):
        return False
    for task in unfinished:
        task.set_state(TaskInstanceState.SUCCESS, session=session)
        task.trigger_id = None  # otherwise the triggerer continues the wait of a deferred task
    run.set_state(DagRunState.SUCCESS)
    extra = json.dumps({"task_ids": [task.task_id for task in unfinished], "why": why})
    session.add(Log(event="success", owner=_OWNER, dag_id=run.dag_id, run_id=run.run_id, extra=extra))
    return True


def _is_paused(extra: str | None) -> bool | None:
    try:
        fields = json.loads(extra or "{}")
    except ValueError:
        return None
    paused = fields.get("is_paused") if isinstance(fields, dict) else None
    return paused if isinstance(paused, bool) else None
