"""One Airflow that serves two Connect clusters in turn, as while connectors move from one to the other and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluiceway.stack import up
from support.eventually import eventually
from support.stack import RunningStack

pytestmark = [pytest.mark.airflow, pytest.mark.long]

NAME = "twin"


def _group(name: str) -> dict[str, str]:
    topics = {f"{kind}.storage.topic": f"{name}-{kind}s" for kind in ("config", "offset", "status")}
    return {"group.id": name, **topics}


def test_a_twin_that_was_left_stopped_is_not_started_by_the_switch_of_the_other(tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text("a\n")
    config = {"connector.class": "FileStreamSource", "file": str(source), "topic": "twins"}
    home = tmp_path / "stack"
    home.mkdir()
    stack = RunningStack(home, worker=_group("first"))
    try:
        stack.connect.create(NAME, config)
        stack.await_states(NAME, "RUNNING", "RUNNING")
        stack.connect.stop(NAME)  # as a move does
        eventually(lambda: stack.is_paused(NAME), what="the DAG paused")
        up.down(home=stack.home)
        stack.worker = _group("second")
        stack.up()
        stack.connect.create(NAME, config)
        eventually(lambda: stack.is_paused(NAME) is False, what="the DAG unpaused for the other cluster's connector")
        stack.await_states(NAME, "RUNNING", "RUNNING")
        up.down(home=stack.home)
        stack.worker = _group("first")
        stack.up()
        eventually(lambda: stack.is_paused(NAME), what="the DAG paused again")
        assert stack.states(NAME) == ("STOPPED",)
        assert stack.driver(NAME) is None
    finally:
        stack.close()
