"""The local Airflow: its health report and its settings."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from sluiceway.stack.airflow import LocalAirflow, unhealthy

HEALTH = {
    "metadatabase": {"status": "healthy"},
    "scheduler": {"status": "healthy", "latest_scheduler_heartbeat": "2026-11-21T04:00:10.5Z"},
    "triggerer": {"status": "healthy", "latest_triggerer_heartbeat": "2026-11-21T04:00:10+00:00"},
    "dag_processor": {"status": "healthy", "latest_dag_processor_heartbeat": "2026-11-21T04:00:10+00:00"},
}
FOUR_O_CLOCK = 1795233600.0


def test_airflow_is_healthy_when_every_component_has_reported_since_the_start() -> None:
    assert unhealthy(HEALTH, since=FOUR_O_CLOCK) == []


def test_a_heartbeat_from_before_the_start_does_not_count() -> None:
    assert unhealthy(HEALTH, since=FOUR_O_CLOCK + 10.2) == ["dag-processor", "triggerer"]


@pytest.mark.parametrize("component", [{"status": "unhealthy"}, {"status": None, "latest_scheduler_heartbeat": None}, {}])
def test_a_component_that_is_unhealthy_or_missing_is_returned(component: dict[str, str | None]) -> None:
    report = {**HEALTH, "scheduler": {**HEALTH["scheduler"], **component} if component else {}}
    assert unhealthy(report, since=FOUR_O_CLOCK) == ["scheduler"]


def test_the_jwt_secret_is_made_once_and_readable_by_its_owner_only(tmp_path: Path) -> None:
    ports = {"api": 1, "worker-logs": 2, "trigger-logs": 3}
    first, second = (LocalAirflow(tmp_path, tmp_path, tmp_path / "w", ports).environment() for _ in range(2))
    secret = first["AIRFLOW__API_AUTH__JWT_SECRET"]
    assert len(secret) >= 64
    assert second["AIRFLOW__API_AUTH__JWT_SECRET"] == secret
    assert stat.S_IMODE((tmp_path / "jwt-secret").stat().st_mode) == 0o600


def test_a_late_scheduler_does_not_take_its_own_tasks_for_orphans(tmp_path: Path) -> None:
    """It gives itself as long as the tasks, and longer than Airflow's default of 30 s, which is too short on a busy machine."""
    environment = LocalAirflow(tmp_path, tmp_path, tmp_path / "w", {"api": 1, "worker-logs": 2, "trigger-logs": 3}).environment()
    allowed = int(environment["AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD"])
    assert allowed >= max(60, int(environment["AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT"]))


def test_an_airflow_without_logins_listens_on_the_loopback_interface_only(tmp_path: Path) -> None:
    environment = LocalAirflow(tmp_path, tmp_path, tmp_path / "w", {"api": 1, "worker-logs": 2, "trigger-logs": 3}).environment()
    assert environment["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS"] == "True"
    assert environment["AIRFLOW__API__HOST"] == "127.0.0.1"
