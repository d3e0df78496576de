"""A source with ``airflow.schedule=on-change`` on a real Airflow: a file appears, and its records are in the topic."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from support.eventually import LIMIT, eventually
from support.kafka import Kafka
from support.stack import RunningStack

pytestmark = [pytest.mark.airflow, pytest.mark.long]

_NAME = "on-change"
_VARIABLE = "folder_of_changes"


class _Folder:
    """The watched folder, and the runs that its files have started."""

    def __init__(self, stack: RunningStack, path: Path) -> None:
        self._stack = stack
        self._path = path
        self._kafka = Kafka(stack.addresses.bootstrap)
        self._runs: set[str] = set()

    def write(self, name: str) -> float:
        """Write a file of ten lines under another name, and give it its own. Return when, in seconds since the epoch."""
        hidden = self._path / f"{name}.tmp"
        hidden.write_text("".join(f"{name}-{number}\n" for number in range(10)))
        hidden.rename(self._path / name)
        return (self._path / name).stat().st_ctime

    def runs(self) -> list[dict[str, Any]]:
        answer = self._stack.airflow.get(f"/dags/{_NAME}/dagRuns", params={"limit": 100, "order_by": "id"})
        return list(answer.raise_for_status().json()["dag_runs"]) if answer.status_code != 404 else []

    def await_run(self) -> dict[str, Any]:
        """Wait for a run that is new, and for the end of all runs. Return the first new one."""
        new = eventually(lambda: [each for each in self.runs() if each["dag_run_id"] not in self._runs], what="a run")
        self.await_end()
        return next(each for each in self.runs() if each["dag_run_id"] == new[0]["dag_run_id"])

    def await_end(self) -> None:
        eventually(lambda: self.runs() and all(each["state"] == "success" for each in self.runs()), what="the end of the runs")
        self._runs = {each["dag_run_id"] for each in self.runs()}

    def records(self) -> int:
        return self._kafka.count(_NAME)


def test_a_file_starts_the_run_that_reads_it(stack: RunningStack, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "watched"
    path.mkdir()
    stack.airflow.post("/variables", json={"key": _VARIABLE, "value": str(path)}).raise_for_status()
    watched = _Folder(stack, path)
    config = {
        "connector.class": "FolderSource",
        "paths": f"${{airflow:variable:{_VARIABLE}}}/*.txt",
        "mode": "files",
        "topic": _NAME,
        "value.converter": "StringConverter",
        "after.read": "delete",  # which must start no other run
        "airflow.mode": "micro-batch",
        "airflow.schedule": "on-change",
    }
    stack.connect.create(_NAME, config)
    eventually(lambda: stack.is_paused(_NAME) is False, what="the DAG")
    for number in range(1, 5):
        appeared = watched.write(f"{number}.txt")
        run = watched.await_run()
        assert (run["run_type"], run["triggered_by"]) == ("asset_triggered", "asset")
        seconds = {name: _moment(run[name]) - appeared for name in ("run_after", "queued_at", "start_date")}
        with capsys.disabled():
            print(f"\nfile {number}: " + ", ".join(f"{name} {each:.2f} s" for name, each in seconds.items()))
        assert watched.records() == 10 * number
    count = len(watched.runs())
    stack.set_paused(_NAME, True)
    watched.write("5.txt")
    eventually(lambda: stack.states(_NAME)[:1] == ("PAUSED",), what="the connector paused")
    assert len(watched.runs()) == count
    stack.set_paused(_NAME, False)
    watched.await_run()
    assert watched.records() == 50
    eventually(lambda: not list(path.iterdir()), within=LIMIT, what="an empty folder")
    print(f"{len(watched.runs())} runs")
    stack.connect.delete(_NAME)


def _moment(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
