"""Authorizes requests to the mounted REST API by the rights that Airflow's user has on the connector's DAG."""

# No "from __future__ import annotations": FastAPI resolves the annotations of a dependency when it is used.

from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlsplit

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.base_auth_manager import ResourceMethod
from airflow.api_fastapi.auth.managers.models.resource_details import DagDetails
from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.configuration import conf
from fastapi import HTTPException, Request

from sluiceway.config.application import NONE
from sluiceway.config.connector import APPLICATION
from sluiceway.errors import ConfigError, ConnectError
from sluiceway.provider.dag_bundle.dag_ids import application_dag_id, dag_id
from sluiceway.provider.dag_bundle.dag_keys import DAG, dag_of
from sluiceway.provider.pause_sync.airflow_db import team_names
from sluiceway.provider.settings import read_settings
from sluiceway.rest.dead_letter_routes import DATA_PATH
from sluiceway.rest.plugin_routes import PREVIEW_PATH

_METHODS: dict[str, ResourceMethod] = {"GET": "GET", "HEAD": "GET", "POST": "POST", "DELETE": "DELETE"}
_CREATING = ("/config", "/rollback")
_OFFSETS_PATH = "/offsets"  # DELETE there deletes offsets, not the connector


class DagGuard:
    """Checks a user's rights on the DAGs of connectors. Implements ``sluiceway.rest.guard.Guard``."""

    def __init__(self, user: GetUserDep) -> None:
        self._user = user

    def visible(self, configs: Mapping[str, Mapping[str, str]]) -> Sequence[str]:
        """Return the names of those connectors that the user may see, in the order given."""
        return self._allowed(configs, "GET")

    def editable(self, configs: Mapping[str, Mapping[str, str]]) -> Sequence[str]:
        """Return the names of those connectors that the user may pause, resume and restart, in the order given."""
        return self._allowed(configs, "PUT")

    def may_create(self) -> bool:
        """Return whether the user may create connectors, which requires the right to create DAGs."""
        return get_auth_manager().is_authorized_dag(method=_asked("POST"), user=self._user)

    def _allowed(self, configs: Mapping[str, Mapping[str, str]], method: ResourceMethod) -> Sequence[str]:
        dags = {name: dag for name, config in configs.items() if (dag := _dag_or_none(name, config)) is not None}
        teams = _teams(dags.values())
        seen: set[str] = set()
        for team in {None, *teams.values()}:
            ids = {dag for dag in dags.values() if teams.get(dag) == team}
            if ids:
                more = {} if team is None else {"team_name": team}
                seen |= get_auth_manager().filter_authorized_dag_ids(dag_ids=ids, user=self._user, method=method, **more)
        return [name for name, dag in dags.items() if dag in seen]

    def check_config(self, name: str, config: Mapping[str, str | None], stored: Mapping[str, str] | None) -> None:
        """Raise HTTPException (403) if the config names a hand-written DAG, or moves into an application, of other users.

        That DAG is paused and resumed with the connector. In a shared application, its code runs in the process of the others.
        """
        dag, application = config.get(DAG), config.get(APPLICATION)
        if dag:
            self.require("PUT", dag)
        if application and application not in (NONE, (stored or {}).get(APPLICATION)):
            self.require("PUT", application_dag_id(application))

    def check_preview(self, name: str, config: Mapping[str, str] | None) -> None:
        """Raise HTTPException (403) unless the user may edit the connector's DAG, or create the DAG of a new connector.

        Both lets the config run on a driver too.
        """
        if not read_settings().preview_enabled:
            raise HTTPException(403, "Previews are switched off ([sluiceway] preview_enabled in Airflow's configuration).")
        if config is None:
            self.require("POST", dag_id(name) if name else None)
        else:
            self.require("PUT", dag_of(name, config))

    def require(self, method: ResourceMethod, dag: str | None) -> None:
        """Raise HTTPException (403) unless the user has the right on this DAG, or with None on DAGs in general."""
        team = _teams([dag]).get(dag) if dag else None
        details = DagDetails(id=dag) if team is None else DagDetails(id=dag, team_name=team)
        if not get_auth_manager().is_authorized_dag(method=_asked(method), details=details, user=self._user):
            raise HTTPException(403, "Forbidden")


def authorize(request: Request, user: GetUserDep) -> None:
    """Refuse a request with 401 or 403 unless Airflow's auth manager grants the user the right on the connector's DAG.

    Creating and changing connectors requires the rights to create and edit DAGs, because a config determines which code runs
    on the Spark cluster.
    """
    name = request.path_params.get("name")
    stored = _stored(request, name) if name else None
    dag = _dag_of(name, stored) if name else None
    # Every change of an existing connector except its deletion requires the right to edit its DAG, and so does seeing records.
    method = _METHODS.get(request.method, "PUT")
    path = _route_path(request)
    if dag is not None and (method == "POST" or (method == "DELETE" and path.endswith(_OFFSETS_PATH)) or path == DATA_PATH):
        method = "PUT"
    guard = DagGuard(user)
    if path != PREVIEW_PATH:
        guard.require(method, dag)
    if name and stored is None and request.method in ("PUT", "POST") and path.endswith(_CREATING):
        guard.require("POST", dag)  # it creates the connector
    request.state.guard = guard
    request.state.user = user.get_name()


def _asked(method: ResourceMethod) -> ResourceMethod:
    """Return the method to ask the auth manager about.

    FAB, Airflow's former default, has no permission to create DAGs, so that nobody could create connectors: who may edit the DAG,
    or all DAGs, may create it.
    """
    fab = any(kind.__name__ == "FabAuthManager" for kind in type(get_auth_manager()).__mro__)
    return "PUT" if fab and method == "POST" else method


def refuse_other_sites(request: Request) -> None:
    """Refuse with 403 a change that another site's page sends with the cookie of a logged-in user (CSRF).

    Browsers send Airflow's SameSite cookie from other hosts of the same domain too, and a simple POST has no preflight request.
    Browsers without ``Sec-Fetch-Site`` (before 2023) name the page's site in ``Origin``. A request with a token is allowed: other
    sites cannot read the token.
    """
    headers = request.headers
    if request.method in ("GET", "HEAD") or "authorization" in headers:
        return
    site = headers.get("sec-fetch-site")
    if site is None and "cookie" in headers:
        site = "same-origin" if _is_own_origin(headers.get("origin", ""), headers.get("host", "")) else "unknown"
    if site not in (None, "none", "same-origin"):
        raise HTTPException(403, "Forbidden: a change with a browser's cookie must come from Airflow's own pages. Send a token.")


def _is_own_origin(origin: str, host: str) -> bool:
    """Return whether an origin is this server, as the request names it or as ``[api] base_url`` does."""
    site = urlsplit(origin).netloc
    return bool(site) and site in (host, urlsplit(conf.get("api", "base_url", fallback="")).netloc)


def _teams(dags: Iterable[str]) -> dict[str, str | None]:
    """Return the teams of DAGs, by DAG; empty where Airflow has no teams."""
    return team_names(list(dags)) if conf.getboolean("core", "multi_team", fallback=False) else {}


def _route_path(request: Request) -> str:
    return str(getattr(request.scope.get("route"), "path", ""))


def _stored(request: Request, name: str) -> Mapping[str, str] | None:
    """Return the config of a connector; None if there is none, or no Kafka, which the endpoint reports."""
    try:
        config: Mapping[str, str] = request.app.state.herder_provider().info(name).config
    except ConnectError:
        return None
    return config


def _dag_of(name: str, config: Mapping[str, str] | None) -> str:
    """Return the id of the DAG that runs the connector, or of the one that would be generated if it does not exist."""
    try:
        return dag_id(name) if config is None else dag_of(name, config)
    except ConfigError as error:
        raise HTTPException(404, str(error)) from error


def _dag_or_none(name: str, config: Mapping[str, str]) -> str | None:
    try:
        return dag_of(name, config)
    except ConfigError:  # the name is too long for a DAG id, so no right on a DAG can make it visible
        return None
