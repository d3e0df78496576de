"""Connectors that share an application by default, on a real Airflow: their DAGs look and work as those of any other."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.eventually import eventually
from support.stack import RunningStack

pytestmark = [pytest.mark.airflow, pytest.mark.long]

APPLICATION = "application_x7Esmall"
NAMES = ("first", "second", "third")


@pytest.fixture(scope="module")
def sharing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    worker = {"sluiceway.application.default": "small", "offset.flush.interval.ms": "1000"}
    running = RunningStack(tmp_path_factory.mktemp("sharing"), worker=worker)
    yield running
    running.close()


def config(folder: Path, name: str, **more: str) -> dict[str, str]:
    path = folder / f"{name}.txt"
    if not path.exists():
        path.write_text("1\n2\n")
    return {"connector.class": "FileStreamSource", "file": str(path), "topic": name, **more}


def test_connectors_share_an_application_and_each_lives_alone(sharing: RunningStack, folder: Path) -> None:
    for name in NAMES:
        sharing.connect.create(name, config(folder, name))
    sharing.connect.create("apart", config(folder, "apart", **{"sluiceway.application": "none"}))
    for name in (*NAMES, "apart"):
        sharing.await_states(name, "RUNNING", "RUNNING")
    driver = sharing.driver("small")
    assert driver is not None
    shared = sharing.worker_id("first")
    assert [sharing.worker_id(name) for name in NAMES] == [shared] * 3
    assert sharing.worker_id("apart") != shared
    assert sharing.connect.application("first")["application"] == "small"
    assert sharing.connect.application("apart")["application"] is None

    dags = [sharing.dag(name) or {} for name in ("first", "apart")]
    alike = [{key: dag[key] for key in ("is_paused", "timetable_description", "max_active_runs", "owners")} for dag in dags]
    tags = [{tag["name"] for tag in dag["tags"]} for dag in dags]
    assert (alike[0], tags[0]) == (alike[1], tags[1]), "the DAG of a connector looks the same"

    sharing.set_paused("first", True)
    sharing.await_states("first", "PAUSED", "PAUSED")
    sharing.connect.restart("second", tasks=True)
    sharing.await_states("second", "RUNNING", "RUNNING")
    sharing.connect.delete("third")
    eventually(lambda: sharing.states("third") == (), what="the end of the third")
    sharing.set_paused("first", False)
    sharing.await_states("first", "RUNNING", "RUNNING")
    assert sharing.worker_id("second") == shared
    assert driver.is_running()


def test_a_spark_setting_moves_a_connector_out_and_its_removal_back(sharing: RunningStack, folder: Path) -> None:
    shared, path = sharing.worker_id("first"), folder / "first.txt"
    for number, more in ((3, {"spark.driver.memory": "600m"}), (4, {})):
        with path.open("a") as file:
            file.write(f"{number}\n")
        began = time.monotonic()
        sharing.connect.put_config("first", config(folder, "first", **more))
        eventually(lambda more=more: (sharing.worker_id("first") == shared) is not bool(more), what="another driver")
        sharing.await_states("first", "RUNNING", "RUNNING")
        print(f"moved with {more or 'no setting'}: RUNNING after {time.monotonic() - began:.1f} s")
    eventually(lambda: sharing.connect.offsets("first")[0]["offset"] == {"position": 8}, what="all four lines")
    assert sharing.worker_id("second") == shared
    assert sharing.newest_run("first")["state"] == "running"
    copy = folder / "first.copy"
    sink = {"connector.class": "FileStreamSink", "file": str(copy), "topics": "first"}
    sharing.connect.create("copy", sink)
    eventually(lambda: copy.exists() and copy.read_text() == "1\n2\n3\n4\n", what="each line once")
    assert sharing.worker_id("copy") == shared


def test_many_starts_at_once_all_run_and_no_task_is_ended(sharing: RunningStack, folder: Path) -> None:
    names = [f"many-{number}" for number in range(20)]
    began = time.monotonic()
    for name in names:
        sharing.connect.create(name, config(folder, name))
    for name in names:
        sharing.await_states(name, "RUNNING", "RUNNING")
    print(f"{len(names)} connectors RUNNING after {time.monotonic() - began:.1f} s")
    assert sharing.task_states(APPLICATION) == ["running"]
    for name in sharing.connect.connectors():
        sharing.connect.delete(name)
    eventually(lambda: sharing.newest_run(APPLICATION)["state"] == "success", what="the end of the application")
