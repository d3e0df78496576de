"""A restart that is requested while Airflow's scheduler examines the run, on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from airflow.models import import_all_models
from airflow.models.dag import DagModel
from airflow.models.dag_version import DagVersion
from airflow.models.dagbundle import DagBundleModel
from airflow.models.dagrun import DagRun
from airflow.models.log import Log
from airflow.models.taskinstance import TaskInstance
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.utils.sqlalchemy import with_row_locks
from airflow.utils.state import DagRunState, TaskInstanceState
from sqlalchemy import create_engine, select, text
from sqlalchemy.engine import Engine
from sqlalchemy.orm import Session

from sluiceway.provider.pause_sync import airflow_db
from sluiceway.provider.pause_sync.airflow_db import AirflowDatabase
from sluiceway.provider.pause_sync.rules import ConnectorTasks
from support.eventually import eventually
from support.postgres import PostgresServer

DAG = "orders"


@pytest.fixture
def engine(postgresql_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """A metadata database with a running run, whose only task has failed."""
    postgresql_server.execute("create database airflow")
    made = create_engine(postgresql_server.airflow("airflow")["DATABASE__SQL_ALCHEMY_CONN"])
    import_all_models()
    Log.metadata.create_all(made)
    with Session(made) as session:
        session.add(DagBundleModel(name="dags-folder"))
        session.flush()
        session.add(DagModel(dag_id=DAG, bundle_name="dags-folder", fileloc=""))
        version = DagVersion(dag_id=DAG, version_number=1, bundle_name="dags-folder")
        session.add(version)
        session.flush()
        run = DagRun(dag_id=DAG, run_id="r", run_type="manual", state=DagRunState.RUNNING)
        run.created_dag_version_id = version.id
        session.add(run)
        task = TaskInstance(
            EmptyOperator(task_id="run"),  # type: ignore[arg-type]
            run_id="r",
            dag_version_id=version.id,
            state=TaskInstanceState.FAILED,
        )
        task.dag_id = DAG
        session.add(task)
        session.commit()

    @contextmanager
    def create_session(**_: object) -> Iterator[Session]:
        with Session(made) as session, session.begin():
            yield session

    monkeypatch.setattr(airflow_db, "create_session", create_session)
    yield made
    made.dispose()
    postgresql_server.execute("drop database airflow with (force)")


def _waits_for_a_lock(engine: Engine) -> bool:
    with engine.connect() as connection:
        return bool(connection.scalar(text("select count(*) from pg_locks where not granted")))


def test_a_run_that_the_scheduler_ends_meanwhile_runs_again(engine: Engine) -> None:
    with Session(engine) as scheduler, ThreadPoolExecutor(1) as pause_sync:
        run = scheduler.scalars(with_row_locks(select(DagRun), scheduler, of=DagRun)).one()
        clearing = pause_sync.submit(AirflowDatabase().clear_failed, DAG, ConnectorTasks({DAG: "run"}, is_only=True), "asked")
        eventually(lambda: clearing.done() or _waits_for_a_lock(engine), what="a wait for the scheduler")
        run.state = DagRunState.FAILED
        scheduler.commit()
        assert clearing.result(60) == ["run"]
    with Session(engine) as session:
        assert session.scalars(select(TaskInstance.state)).one() is None
        assert session.scalars(select(DagRun.state)).one() == DagRunState.QUEUED
