"""The parts of ``sluiceway up`` and ``down`` that need no Airflow."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluiceway.config.properties import read_properties
from sluiceway.config.worker import WorkerConfig
from sluiceway.stack import leftovers, up
from sluiceway.stack.airflow import MARKER_VARIABLE, LocalAirflow, unhealthy
from sluiceway.stack.worker_file import needs_broker, rest_url, worker_properties, write_worker_file
from support.eventually import eventually

HEALTH = {
    "metadatabase": {"status": "healthy"},
    "scheduler": {"status": "healthy", "latest_scheduler_heartbeat": "2026-11-21T04:00:10.5Z"},
    "triggerer": {"status": "healthy", "latest_triggerer_heartbeat": "2026-11-21T04:00:10+00:00"},
    "dag_processor": {"status": "healthy", "latest_dag_processor_heartbeat": "2026-11-21T04:00:10+00:00"},
}
FOUR_O_CLOCK = 1795233600.0


def test_airflow_is_healthy_when_every_component_has_reported_since_the_start() -> None:
    assert unhealthy(HEALTH, since=FOUR_O_CLOCK) == []


def test_the_heartbeat_of_an_earlier_run_does_not_count() -> None:
    assert unhealthy(HEALTH, since=FOUR_O_CLOCK + 10.2) == ["dag-processor", "triggerer"]


@pytest.mark.parametrize("ill", [{"status": "unhealthy"}, {"status": None, "latest_scheduler_heartbeat": None}, {}])
def test_a_component_that_is_ill_or_unheard_of_is_named(ill: dict[str, str | None]) -> None:
    report = {**HEALTH, "scheduler": {**HEALTH["scheduler"], **ill} if ill else {}}
    assert unhealthy(report, since=FOUR_O_CLOCK) == ["scheduler"]


def test_without_a_file_of_the_users_the_worker_is_kafkas_sample_on_the_embedded_broker() -> None:
    worker = WorkerConfig.of(worker_properties(None, bootstrap="h:1", listeners="http://127.0.0.1:8083"))
    assert worker.bootstrap_servers == "h:1"
    assert worker.number("offset.flush.interval.ms") == 10_000
    assert worker.number("config.storage.replication.factor") == 1
    assert worker.text("value.converter") == "org.apache.kafka.connect.json.JsonConverter"


def test_the_users_file_is_kept_but_for_what_must_be_otherwise() -> None:
    user = {"group.id": "mine", "bootstrap.servers": "b:9092", "config.storage.replication.factor": "3"}
    assert worker_properties(user, bootstrap=None, listeners="http://l:1") == {**user, "listeners": "http://l:1"}
    embedded = worker_properties({"status.storage.replication.factor": "-1"}, bootstrap="h:1", listeners="http://l:1")
    assert embedded["status.storage.replication.factor"] == "-1"
    assert embedded["offset.storage.replication.factor"] == "1"


@pytest.mark.parametrize(
    ("own", "url"),
    [
        ("", "http://localhost:9"),
        ("http://0.0.0.0:8083,https://h:8443", "http://localhost:9"),
        ("HTTPS://h:8443,http://h:8083", "https://localhost:9"),
    ],
)
def test_the_rest_api_is_reached_by_the_scheme_of_the_users_first_listener(own: str, url: str) -> None:
    properties = worker_properties({"listeners": own}, bootstrap="h:1", listeners="http://127.0.0.1:9")
    assert rest_url(properties) == url


def test_a_broker_is_started_only_for_want_of_one() -> None:
    assert needs_broker(None)
    assert needs_broker({"group.id": "mine"})
    assert not needs_broker({"bootstrap.servers": "b:9092"})


def test_the_workers_file_is_for_its_owners_eyes_and_reads_back(tmp_path: Path) -> None:
    properties = {"sasl.jaas.config": 'a b="c\\d";', "group.id": "größe"}
    write_worker_file(tmp_path / "w.properties", properties)
    assert read_properties(tmp_path / "w.properties") == properties
    assert stat.S_IMODE((tmp_path / "w.properties").stat().st_mode) == 0o600


def test_airflows_token_secret_is_made_once_and_is_for_its_owners_eyes(tmp_path: Path) -> None:
    ports = {"api": 1, "worker-logs": 2, "trigger-logs": 3}
    first, second = (LocalAirflow(tmp_path, tmp_path, tmp_path / "w", ports).environment() for _ in range(2))
    secret = first["AIRFLOW__API_AUTH__JWT_SECRET"]
    assert len(secret) >= 64
    assert second["AIRFLOW__API_AUTH__JWT_SECRET"] == secret
    assert stat.S_IMODE((tmp_path / "jwt-secret").stat().st_mode) == 0o600


def test_an_airflow_where_everyone_is_an_administrator_listens_on_this_machine_only(tmp_path: Path) -> None:
    environment = LocalAirflow(tmp_path, tmp_path, tmp_path / "w", {"api": 1, "worker-logs": 2, "trigger-logs": 3}).environment()
    assert environment["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS"] == "True"
    assert environment["AIRFLOW__API__HOST"] == "127.0.0.1"


def test_ps_of_a_stack_that_was_never_started_fails_and_shows_each_process(tmp_path: Path) -> None:
    lines: list[str] = []
    assert up.ps(lines.append, home=tmp_path) == 1
    assert [line.split()[0] for line in lines] == [
        "NAME",
        "rest",
        "airflow-api-server",
        "airflow-scheduler",
        "airflow-dag-processor",
        "airflow-triggerer",
    ]
    assert all("not running" in line for line in lines[1:])


def test_down_of_a_stack_that_does_not_run_says_so(tmp_path: Path) -> None:
    lines: list[str] = []
    up.down(lines.append, home=tmp_path)
    assert [line.endswith("Nothing runs") for line in lines] == [True]


_STUBBORN = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("ready", "w").close()
signal.pause()
"""


@pytest.fixture
def orphan(tmp_path: Path) -> Iterator[int]:
    """A process of a stack that has a session of its own, ignores SIGTERM, and whose parent is gone."""
    stubborn = tmp_path / "stubborn.py"
    stubborn.write_text(_STUBBORN)
    parent = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, {str(stubborn)!r}], start_new_session=True, stdout=subprocess.DEVNULL)\n"
        "print(child.pid)"
    )
    environment = {**os.environ, MARKER_VARIABLE: str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", parent], env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=True
    )
    pid = int(done.stdout)
    eventually(lambda: (tmp_path / "ready").exists())
    yield pid
    if leftovers.marked(tmp_path):
        os.kill(pid, signal.SIGKILL)


def test_what_lost_its_parent_is_found_by_its_mark_and_ended(orphan: int, tmp_path: Path) -> None:
    assert [process.pid for process in leftovers.marked(tmp_path)] == [orphan]
    assert leftovers.marked(tmp_path / "other") == []
    assert leftovers.end_all(tmp_path, timeout=0.5) == 1
    assert leftovers.marked(tmp_path) == []
