"""Which user may make which request to the REST API and the page under Airflow's API server, as one table.

In this process, with the auth manager that Airflow's configuration names: SimpleAuthManager by default. `make test-security`
runs the table with FAB's as well, which is not among our requirements. A route without a row fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from airflow.api_fastapi.app import create_app, get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagDetails
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.configuration import conf
from airflow.utils.db import initdb
from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette.routing import Mount

from sluiceway.errors import ConnectError
from sluiceway.herder import Herder
from sluiceway.provider.api import app as api
from sluiceway.provider.ui.dashboard import Dashboard
from support.dashboard import MemoryConnectors
from support.fuzz import FIGURES

pytestmark = pytest.mark.airflow

FAB = conf.get("core", "auth_manager").endswith("FabAuthManager")

# Who may do what. "one" sees all DAGs, and may edit and delete the DAG "mine" only; "editor" may see and edit all DAGs.
EVERYBODY = {"nobody", "wrong token", "viewer", "user", "op", "admin", "one", "editor"}
SEE = EVERYBODY - {"nobody", "wrong token"}
OWN = SEE - {"viewer", "one", "editor"}
EDIT = OWN | {"editor"}
CREATE = EDIT if FAB else OWN  # FAB has no permission to create DAGs
RIGHTS = {
    "open": {"mine": EVERYBODY, "theirs": EVERYBODY},
    "see": {"mine": SEE, "theirs": SEE},
    "edit": {"mine": EDIT | {"one"}, "theirs": EDIT},
    "delete": {"mine": OWN | {"one"}, "theirs": OWN},
    "edit DAGs": {"mine": EDIT, "theirs": EDIT},
    "create": {"mine": CREATE, "theirs": CREATE},
}

CONNECTOR = "/connectors/{name:segment}"
TABLE = {
    ("GET", "/openapi.json"): "open",
    ("GET", "/docs"): "open",
    ("GET", "/docs/oauth2-redirect"): "open",
    ("GET", "/ui"): "open",  # the page's files, without data
    ("GET", "/"): "see",
    ("GET", "/health"): "see",
    ("GET", "/metrics"): "see",
    ("GET", "/connectors"): "see",
    ("POST", "/connectors"): "create",
    ("GET", CONNECTOR): "see",
    ("DELETE", CONNECTOR): "delete",
    ("GET", f"{CONNECTOR}/config"): "see",
    ("PUT", f"{CONNECTOR}/config"): "edit",
    ("PATCH", f"{CONNECTOR}/config"): "edit",
    ("GET", f"{CONNECTOR}/history"): "see",
    ("GET", f"{CONNECTOR}/intervals"): "see",
    ("POST", f"{CONNECTOR}/rollback"): "edit",
    ("GET", f"{CONNECTOR}/status"): "see",
    ("GET", f"{CONNECTOR}/application"): "see",
    ("GET", f"{CONNECTOR}/tasks"): "see",
    ("POST", f"{CONNECTOR}/tasks"): "edit",
    ("GET", f"{CONNECTOR}/tasks/{{task}}/status"): "see",
    ("POST", f"{CONNECTOR}/tasks/{{task}}/restart"): "edit",
    ("PUT", f"{CONNECTOR}/pause"): "edit",
    ("PUT", f"{CONNECTOR}/resume"): "edit",
    ("PUT", f"{CONNECTOR}/stop"): "edit",
    ("PUT", f"{CONNECTOR}/fence"): "edit",
    ("POST", f"{CONNECTOR}/restart"): "edit",
    ("GET", f"{CONNECTOR}/topics"): "see",
    ("PUT", f"{CONNECTOR}/topics/reset"): "edit",
    ("GET", f"{CONNECTOR}/offsets"): "see",
    ("GET", f"{CONNECTOR}/offsets/find"): "see",
    ("PATCH", f"{CONNECTOR}/offsets"): "edit",
    ("DELETE", f"{CONNECTOR}/offsets"): "edit",
    ("GET", f"{CONNECTOR}/dead-letters"): "edit",  # its records
    ("POST", f"{CONNECTOR}/dead-letters/replay"): "edit",
    ("POST", f"{CONNECTOR}/signals"): "edit",
    ("GET", "/connector-plugins"): "see",
    ("GET", "/connector-plugins/{plugin}/config"): "see",
    ("GET", "/connector-plugins/{plugin}/implementation"): "see",
    ("PUT", "/connector-plugins/{plugin}/config/validate"): "edit DAGs",
    ("POST", "/connector-plugins/{plugin}/config/preview"): "edit",  # of the connector in the body
    ("GET", "/admin/loggers"): "see",
    ("GET", "/admin/loggers/{logger:segment}"): "see",
    ("PUT", "/admin/loggers/{logger:segment}"): "edit DAGs",
    ("GET", "/ui/api/overview"): "see",
    ("GET", "/ui/api/flow"): "see",
    ("GET", "/ui/api/moves"): "see",
    ("GET", "/ui/api/history"): "see",
    ("GET", "/ui/api/plugins"): "see",
    ("GET", "/ui/api/keys"): "see",
    ("GET", "/ui/api/connectors/{name:segment}"): "see",
    ("GET", "/ui/api/connectors/{name:segment}/dead-letters"): "see",  # without records
}
CONFIG = {"connector.class": "FileStreamSource", "topic": "t", "file": "/f"}
TOKENS: dict[str, str] = {}


class WithoutKafka:
    """A herder whose requests to Kafka fail at once."""

    def __init__(self, herder: Herder) -> None:
        self._herder = herder

    def acting_for(self, _origin: object) -> WithoutKafka:
        return self

    def __getattr__(self, name: str) -> Any:
        if name in ("info", "connectors", "overview", "status", "topic_tracking", "topics", "worker", "metrics_urls"):
            return getattr(self._herder, name)
        return self._fail

    def _fail(self, *_: object, **_more: object) -> None:
        raise ConnectError("There is no Kafka.")


class Backend:
    """Replaces ``sluiceway.provider.api.app.Backend``: two connectors in memory."""

    def __init__(self, *_: object) -> None:
        self._connectors = MemoryConnectors()
        for name in ("mine", "theirs"):
            self._connectors.add(name)

    def start(self) -> None:
        self._connectors.dashboard.start()

    def stop(self) -> None:
        self._connectors.dashboard.stop()

    def herder(self) -> WithoutKafka:
        return WithoutKafka(self._connectors.herder)

    def dashboard(self) -> Dashboard:
        return self._connectors.dashboard

    def cluster_id(self) -> None: ...


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    initdb()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "Backend", Backend)
        with TestClient(create_app(), base_url="http://testserver/sluiceway", raise_server_exceptions=False) as client:
            TOKENS.update(_tokens_of_fab() if FAB else _tokens())
            yield client


def _tokens() -> dict[str, str]:
    """Return a token of each user of SimpleAuthManager. What "one" and "editor" may do is ``one_may_edit_one_dag``."""
    roles = {identity: "viewer" if identity in ("one", "editor") else identity for identity in SEE}
    users = [SimpleAuthManagerUser(username=identity, role=role) for identity, role in roles.items()]
    return {str(user.get_name()): get_auth_manager().generate_jwt(user) for user in users}


def _tokens_of_fab() -> dict[str, str]:
    """Create a user of each kind with FAB, and return their tokens."""
    manager: Any = get_auth_manager()
    roles = {"one": [("can_read", "DAGs"), ("can_edit", "DAG:mine"), ("can_delete", "DAG:mine")]}
    roles |= {"editor": [("can_read", "DAGs"), ("can_edit", "DAGs")]}
    tokens = {}
    with manager.flask_app.app_context():
        security = manager.security_manager
        for name, permissions in roles.items():
            role = security.add_role(name)
            for permission in permissions:
                security.add_permission_to_role(role, security.create_permission(*permission))
        for each in SEE:
            role = security.find_role(each if each in roles else each.capitalize())
            user = security.add_user(each, each, each, f"{each}@example.com", role)
            tokens[each] = manager.generate_jwt(user)
    return tokens


def mounted(client: TestClient) -> FastAPI:
    """Return our app in Airflow's."""
    airflow: Any = client.app
    found = next(each.app for each in airflow.routes if isinstance(each, Mount) and each.path == "/sluiceway")
    assert isinstance(found, FastAPI)
    return found


@pytest.fixture(autouse=True)
def one_may_edit_one_dag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluiceway.rest.plugin_routes.preview", WithoutKafka._fail)
    if FAB:  # its users have these rights
        return
    everyones = SimpleAuthManager.is_authorized_dag

    def is_authorized_dag(self: Any, *, method: str, user: Any, details: DagDetails | None = None, **more: Any) -> bool:
        if user.username == "one":
            return method == "GET" or (method in ("PUT", "DELETE") and details is not None and details.id == "mine")
        if user.username == "editor":
            return method in ("GET", "PUT")
        return everyones(self, method=method, user=user, details=details, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(SimpleAuthManager, "is_authorized_dag", is_authorized_dag)


def credentials(identity: str) -> dict[str, str]:
    if identity in ("nobody", "wrong token"):
        return {} if identity == "nobody" else {"Authorization": "Bearer eyJhbGciOiJIUzI1NiJ9.e30.wrong"}
    return {"Authorization": f"Bearer {TOKENS[identity]}"}


def may(client: TestClient, identity: str, method: str, path: str, name: str) -> bool:
    """Return whether a request is let through: whatever it is answered then, it is not 401 or 403."""
    for parameter, value in (("name:segment", name), ("task", "0"), ("plugin", "FileStreamSource"), ("logger:segment", "a.b")):
        path = path.replace(f"{{{parameter}}}", value)
    body = {"name": name, "config": CONFIG} if path == "/connectors" else {**CONFIG, "name": name}
    given = None if method in ("GET", "HEAD", "DELETE") else body
    path = "/ui/index.html" if path == "/ui" else path
    status = client.request(method, path, headers=credentials(identity), json=given).status_code
    assert status != 401 or identity in ("nobody", "wrong token")
    return status not in (401, 403)


def test_every_route_has_a_row(client: TestClient) -> None:
    found = set()
    for route in mounted(client).routes:
        methods = getattr(route, "methods", None) or {"GET"}
        found |= {(method, getattr(route, "path", "")) for method in methods if method != "HEAD"}
    assert found == set(TABLE)
    FIGURES.append(f"{len(TABLE)} calls by {len(EVERYBODY)} kinds of users: {type(get_auth_manager()).__name__}")


@pytest.mark.parametrize(("method", "path"), TABLE)
def test_a_request_is_for_those_who_have_the_right(client: TestClient, method: str, path: str) -> None:
    for name in ("mine", "theirs") if "{name" in path or path.endswith("/preview") else ("mine",):
        for each in (method, "HEAD") if method == "GET" and path != "/metrics" else (method,):
            allowed = {identity for identity in EVERYBODY if may(client, identity, each, path, name)}
            assert allowed == RIGHTS[TABLE[method, path]][name], (each, name)


# What a connector's config and requests could take from others, by the status of the user who may edit "mine" only.
OF_OTHERS = [
    ("PUT", "/connectors/mine/config", {**CONFIG, "airflow.dag": "theirs"}, 403),
    ("PATCH", "/connectors/mine/config", {"airflow.dag": "theirs"}, 403),
    ("PUT", "/connectors/mine/config", {**CONFIG, "sluiceway.application": "theirs"}, 403),
    ("PATCH", "/connectors/mine/config", {"sluiceway.application": "theirs"}, 403),
    ("PUT", "/connectors/theirs/config", {**CONFIG, "airflow.dag": "mine"}, 403),
    ("POST", "/connectors", {"name": "new", "config": {**CONFIG, "airflow.dag": "mine"}}, 403),
    ("POST", "/connector-plugins/FileStreamSource/config/preview", {**CONFIG, "name": "theirs"}, 403),
    ("POST", "/connector-plugins/FileStreamSource/config/preview", {**CONFIG, "name": "new"}, 403),
    ("POST", "/connector-plugins/FileStreamSource/config/preview", {**CONFIG, "name": "mine", "airflow.dag": "theirs"}, 403),
    ("PUT", "/connectors/mine%2F..%2Ftheirs/config", CONFIG, 403),
    ("DELETE", "/connectors/mine%2F..%2Ftheirs", None, 403),
]


@pytest.mark.parametrize(("method", "path", "body", "status"), OF_OTHERS)
def test_the_right_to_one_connector_leads_to_no_other(
    client: TestClient, method: str, path: str, body: dict[str, Any] | None, status: int
) -> None:
    assert client.request(method, path, headers=credentials("one"), json=body).status_code == status
    answer = client.request(method, path, headers=credentials("admin"), json=body)
    assert answer.status_code not in (401, 403), "the request is one that an admin may make"


def test_lists_and_metrics_show_connectors_that_a_user_may_see(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = type(get_auth_manager())
    seen = manager.filter_authorized_dag_ids

    def only_mine(self: Any, *, dag_ids: set[str], user: Any, **more: Any) -> set[str]:
        return dag_ids & {"mine"} if user.username == "one" else seen(self, dag_ids=dag_ids, user=user, **more)

    monkeypatch.setattr(manager, "filter_authorized_dag_ids", only_mine)
    lists = ("/connectors", "/connectors?expand=info&expand=status", "/metrics", "/ui/api/overview")
    for path in (*lists, "/metrics?connector=theirs", "/ui/api/history?name=mine&name=theirs"):
        shown = {each: client.get(path, headers=credentials(each)).text for each in ("one", "viewer")}
        assert "theirs" in shown["viewer"], path
        assert "theirs" not in shown["one"], path


def test_a_new_connector_needs_the_right_to_create_it(client: TestClient) -> None:
    for method, path in (("PUT", f"{CONNECTOR}/config"), ("POST", f"{CONNECTOR}/rollback")):
        assert {identity for identity in EVERYBODY if may(client, identity, method, path, "new")} == CREATE
    preview = "/connector-plugins/{plugin}/config/preview"
    assert {identity for identity in EVERYBODY if may(client, identity, "POST", preview, "new")} == CREATE
