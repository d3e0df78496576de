"""Upgrades a stack of 0.1.0 that has a paused connector, a running connector and a deferred task."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluiceway.stack.addresses import recorded
from support.eventually import eventually
from support.guard import Guard
from support.stack import RunningStack, end

pytestmark = [pytest.mark.airflow, pytest.mark.long, pytest.mark.timeout(1200)]

ROOT = Path(__file__).parents[2]
RELEASE = "df745f4"
"""The commit of 0.1.0."""

SOURCE, SINK, GATE = "upgraded-source", "upgraded-sink", "upgraded_gate"

_UP_OR_DOWN = """
import sys
from pathlib import Path
from sluiceway.stack import up
getattr(up, sys.argv[1])(home=Path(sys.argv[2]))
"""

_DAG = f'''
"""An Airflow DAG written for 0.1.0."""
from airflow.sdk import DAG
from sluiceway.provider.connection_hook import KafkaConnectHook
from sluiceway.sensors import ConnectorStateSensor

with DAG("{GATE}", schedule=None, is_paused_upon_creation=False):
    ConnectorStateSensor(task_id="gate", connector="{SOURCE}", deferrable=True)
'''


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the import package of 0.1.0."""
    folder = tmp_path_factory.mktemp("release")
    archive = ["git", "-C", str(ROOT), "archive", RELEASE, "plugin", "operators", "sensors", "dags"]
    done = subprocess.run(archive, capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"needs the commit of 0.1.0; run on a full clone: {done.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as files:
        files.extractall(folder, filter="data")
    package = (folder / "plugin").rename(folder / "sluiceway")
    for name in ("operators", "sensors", "dags"):
        shutil.move(folder / name, package / name)
    return folder


class Release:
    """The stack's commands, with the code of 0.1.0."""

    def __init__(self, code: Path, home: Path) -> None:
        self._code = code
        self._home = home

    def up(self) -> RunningStack:
        """Start the stack, and return access to it."""
        self._run("up")
        return RunningStack(self._home, running=recorded(self._home))

    def down(self) -> None:
        self._run("down")

    def _run(self, command: str) -> None:
        arguments = [sys.executable, "-c", _UP_OR_DOWN, command, str(self._home)]
        subprocess.run(arguments, env={**os.environ, "PYTHONPATH": str(self._code)}, check=True, cwd=self._code)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """Return the stack's folder, with a hand-written DAG; whatever runs there ends with the test."""
    folder = tmp_path / "stack"
    dags = folder / "airflow" / "dags"
    dags.mkdir(parents=True)
    (dags / "gate.py").write_text(_DAG)
    guard = Guard(end, folder)
    yield folder
    guard.close()


def _await_copy(source: Path, copy: Path) -> None:
    eventually(lambda: copy.exists() and copy.read_text() == source.read_text(), what="the copy")


def test_a_stack_of_0_1_0_continues_after_the_upgrade(release: Path, home: Path, tmp_path: Path) -> None:
    source, copy = tmp_path / "source.txt", tmp_path / "copy.txt"
    source.write_text("before\n")
    old = Release(release, home)
    before = old.up()
    before.connect.create(SOURCE, {"connector.class": "FileStreamSource", "file": str(source), "topic": "upgraded"})
    before.connect.create(SINK, {"connector.class": "FileStreamSink", "file": str(copy), "topics": "upgraded"})
    _await_copy(source, copy)
    before.connect.pause(SOURCE)
    before.await_states(SOURCE, "PAUSED", "PAUSED")
    eventually(lambda: before.is_paused(SOURCE), what="the paused DAG")
    eventually(lambda: before.dag(GATE), what="the hand-written DAG")
    before.airflow.post(f"/dags/{GATE}/dagRuns", json={"logical_date": None}).raise_for_status()
    eventually(lambda: before.task_states(GATE) == ["deferred"], what="the deferred task")
    stub = next((home / "airflow" / "bundles").rglob(f"connector-{SOURCE}.py"))
    assert "sluiceway.provider.connector_dag import" in stub.read_text(), "0.1.0 generated it"
    before.close()
    old.down()

    after = RunningStack(home)
    source.write_text("before\nafter\n")
    after.await_states(SINK, "RUNNING", "RUNNING")
    assert after.states(SOURCE) == ("PAUSED", "PAUSED")
    assert after.is_paused(SOURCE)
    assert after.task_states(GATE) == ["deferred"]
    assert copy.read_text() == "before\n"
    after.connect.resume(SOURCE)
    _await_copy(source, copy)
    eventually(lambda: after.task_states(GATE) == ["success"], what="the end of the deferred task")
    eventually(lambda: "provider.dag_bundle.connector_dag import" in stub.read_text(), what="the new file")
    after.close()
