"""Tests of what is read from Airflow's audit log about paused flags."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from airflow.models.log import Log
from sqlalchemy import create_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import StaticPool

from sluiceway.provider.pause_sync import airflow_db
from sluiceway.provider.pause_sync.airflow_db import AirflowDatabase
from sluiceway.provider.pause_sync.rules import Toggle


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    engine = create_engine("sqlite://", poolclass=StaticPool)
    Log.metadata.tables["log"].create(engine)
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
