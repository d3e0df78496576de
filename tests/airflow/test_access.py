"""Authorization of the REST API in Airflow's API server, in this process, with Airflow's simple auth manager."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.api_fastapi.app import create_app, get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagDetails
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.models.dag import DagModel
from airflow.utils.db import initdb
from fastapi import HTTPException
from fastapi.testclient import TestClient

from sluiceway.errors import NotFoundError
from sluiceway.provider.api import access

pytestmark = pytest.mark.airflow

CONFIG = {"connector.class": "FileStreamSource", "topic": "t"}
READS = [
    ("GET", "/connectors"),
    ("GET", "/connectors/c"),
    ("GET", "/connectors/c/status"),
    ("GET", "/connectors/c/offsets"),
    ("GET", "/"),
]
WRITES = [
    ("POST", "/connectors", {"name": "c", "config": CONFIG}),
    ("PUT", "/connectors/c/config", CONFIG),
    ("PUT", "/connectors/c/pause", None),
    ("PUT", "/connectors/c/resume", None),
    ("PUT", "/connectors/c/stop", None),
    ("PATCH", "/connectors/c/config", {}),
    ("POST", "/connectors/c/restart", None),
    ("POST", "/connectors/c/tasks/0/restart", None),
    ("DELETE", "/connectors/c/offsets", None),
    ("PATCH", "/connectors/c/offsets", {"offsets": [{}]}),
    ("PUT", "/connectors/c/topics/reset", None),
    ("PUT", "/admin/loggers/org.a?scope=cluster", {"level": "INFO"}),
    ("DELETE", "/connectors/c", None),
    ("POST", "/connectors/c/dead-letters/replay", {"records": [{"partition": 0, "offset": 0}]}),
    ("POST", "/connectors/c/signals", {"type": "execute-snapshot"}),
    ("GET", "/connectors/c/dead-letters", None),  # seeing a connector does not include seeing its data
]


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    initdb()
    with TestClient(create_app(), base_url="http://testserver/sluiceway") as client:
        yield client


def _as(role: str) -> dict[str, str]:
    token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=role, role=role))
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize(("method", "path", "body"), [*((*read, None) for read in READS), *WRITES])
def test_requests_without_a_login_are_refused(client: TestClient, method: str, path: str, body: object) -> None:
    answer = client.request(method, path, json=body)
    assert answer.status_code == 401
    assert answer.json()["error_code"] == 401


@pytest.mark.parametrize(("method", "path", "body"), WRITES)
def test_a_viewer_may_not_change_connectors(client: TestClient, method: str, path: str, body: object) -> None:
    answer = client.request(method, path, json=body, headers=_as("viewer"))
    assert answer.status_code == 403
    assert answer.json()["error_code"] == 403


@pytest.mark.parametrize(("method", "path", "body"), [*((*read, None) for read in READS[:3]), *WRITES])
def test_an_administrators_request_reaches_the_herder(client: TestClient, method: str, path: str, body: object) -> None:
    answer = client.request(method, path, json=body, headers=_as("admin"))
    assert answer.status_code == 500
    # There is no worker file in this test's Airflow, and the message says what to do about it.
    assert "AIRFLOW__SLUICEWAY__WORKER_PROPERTIES" in answer.json()["message"]


@pytest.mark.parametrize(("method", "path"), READS[:3])
def test_a_viewer_may_read(client: TestClient, method: str, path: str) -> None:
    assert client.request(method, path, headers=_as("viewer")).status_code == 500


@pytest.mark.parametrize(
    ("method", "name", "rest", "asked"),
    [
        ("GET", None, "", ("GET", None)),
        ("DELETE", "c", "/offsets", ("PUT", "c")),
        ("GET", "c", "/dead-letters", ("PUT", "c")),
        ("POST", "c", "/signals", ("PUT", "c")),
        ("HEAD", "a b", "", ("GET", "a_x20b")),
        ("POST", None, "", ("POST", None)),
        ("POST", "c", "", ("PUT", "c")),
        ("PATCH", "c", "", ("PUT", "c")),
        ("DELETE", "mine", "", ("DELETE", "hand_written")),
        ("PUT", "mine", "/config", ("PUT", "hand_written")),
        ("PUT", "new", "/config", (("PUT", "new"), ("POST", "new"))),
        ("POST", "new", "/rollback", (("PUT", "new"), ("POST", "new"))),
        ("PUT", "new", "/pause", ("PUT", "new")),
    ],
)
def test_requests_need_the_permissions_of_the_dag(
    monkeypatch: pytest.MonkeyPatch, method: str, name: str | None, rest: str, asked: tuple[Any, ...]
) -> None:
    """Reading a connector needs read access to its DAG, changing it edit access, and creating one access to create DAGs."""
    seen: list[tuple[str, str | None]] = []

    def is_authorized_dag(*, method: str, details: DagDetails, user: object) -> bool:
        seen.append((method, details.id))
        return True

    def info(name: str) -> SimpleNamespace:
        if name != "mine":
            raise NotFoundError(name)
        return SimpleNamespace(config={"airflow.dag": "hand_written"})

    monkeypatch.setattr(access, "get_auth_manager", lambda: SimpleNamespace(is_authorized_dag=is_authorized_dag))
    monkeypatch.setattr(DagModel, "get_team_name", lambda dag: None)
    app = SimpleNamespace(state=SimpleNamespace(herder_provider=lambda: SimpleNamespace(info=info)))
    request: Any = SimpleNamespace(
        method=method,
        path_params={"name": name} if name else {},
        app=app,
        scope={"route": SimpleNamespace(path=f"/connectors/{{name:segment}}{rest}")},
        state=SimpleNamespace(),
    )
    access.authorize(request, SimpleNamespace(get_name=lambda: "ada"))  # type: ignore[arg-type]
    assert seen == ([asked] if isinstance(asked[0], str) else list(asked))


class _OnlyMine:
    """An auth manager whose user may see and edit one DAG."""

    dags: tuple[str, ...] = ("mine",)

    def filter_authorized_dag_ids(self, *, dag_ids: set[str], user: object, method: str) -> set[str]:
        return dag_ids & {"mine"} if method == "GET" else set()

    def is_authorized_dag(self, *, method: str, details: DagDetails, user: object) -> bool:
        return details.id in self.dags


@pytest.fixture
def guard(monkeypatch: pytest.MonkeyPatch) -> access.DagGuard:
    monkeypatch.setattr(access, "get_auth_manager", _OnlyMine)
    monkeypatch.setattr(DagModel, "get_team_name", lambda dag: None)
    return access.DagGuard(SimpleNamespace())  # type: ignore[arg-type]


def test_a_list_has_only_connectors_whose_dags_the_user_may_read(guard: access.DagGuard) -> None:
    configs = {"a": {}, "b": {"airflow.dag": "mine"}, "mine": {}, "n" * 300: {}}
    assert guard.visible(configs) == ["b", "mine"]


@pytest.mark.parametrize(("role", "may"), [("viewer", False), ("admin", True)])
def test_a_user_may_create_connectors_who_may_create_dags(client: TestClient, role: str, may: bool) -> None:
    assert access.DagGuard(SimpleAuthManagerUser(username=role, role=role)).may_create() is may


def test_a_connector_cannot_take_over_another_users_hand_written_dag(guard: access.DagGuard) -> None:
    guard.check_config("a", {"airflow.dag": "mine"}, None)
    guard.check_config("a", {}, None)
    with pytest.raises(HTTPException) as caught:
        guard.check_config("a", {"airflow.dag": "theirs"}, {"airflow.dag": "theirs"})
    assert caught.value.status_code == 403


@pytest.mark.parametrize(
    ("application", "stored", "allowed"),
    [
        ("theirs", None, False),
        ("theirs", {}, False),
        ("theirs", {"sluiceway.application": "other"}, False),
        ("theirs-2", {"sluiceway.application": "theirs"}, False),
        ("theirs", {"sluiceway.application": "theirs"}, True),  # others have put it there
        ("none", {"sluiceway.application": "theirs"}, True),
        (None, {"sluiceway.application": "theirs"}, True),
        ("ours", None, True),
    ],
)
def test_a_connector_cannot_join_an_application_of_others(
    guard: access.DagGuard,
    monkeypatch: pytest.MonkeyPatch,
    application: str | None,
    stored: dict[str, str] | None,
    allowed: bool,
) -> None:
    monkeypatch.setattr(_OnlyMine, "dags", ("mine", "application_x7Eours"))
    config = {"sluiceway.application": application}
    if allowed:
        guard.check_config("mine", config, stored)
    else:
        with pytest.raises(HTTPException, match="403"):
            guard.check_config("mine", config, stored)


@pytest.mark.parametrize(
    ("name", "stored", "asked"), [("new", None, ("POST", "new")), ("c", {"airflow.dag": "mine"}, ("PUT", "mine"))]
)
def test_a_preview_needs_the_right_to_run_the_connector(
    monkeypatch: pytest.MonkeyPatch, name: str, stored: dict[str, str] | None, asked: tuple[str, str]
) -> None:
    seen: list[tuple[str, str | None]] = []
    monkeypatch.setattr(access.DagGuard, "require", lambda _self, method, dag: seen.append((method, dag)))
    guard = access.DagGuard(SimpleNamespace())  # type: ignore[arg-type]
    guard.check_preview(name, stored)
    assert seen == [asked]
    monkeypatch.setenv("AIRFLOW__SLUICEWAY__PREVIEW_ENABLED", "False")
    with pytest.raises(HTTPException, match="preview_enabled"):
        guard.check_preview(name, stored)
