"""Who may do what through the mounted REST API: Airflow's users, with the rights they have on the connector's DAG."""

# No "from __future__ import annotations": FastAPI resolves the annotations of a dependency when it is used.

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.base_auth_manager import ResourceMethod
from airflow.api_fastapi.auth.managers.models.resource_details import DagDetails
from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.models.dag import DagModel
from fastapi import HTTPException, Request
from sluiceway.errors import ConfigError, ConnectError
from sluiceway.provider.dag_keys import dag_of
from sluiceway.provider.naming import dag_id

_METHODS: dict[str, ResourceMethod] = {"GET": "GET", "HEAD": "GET", "POST": "POST", "DELETE": "DELETE"}


def authorise(request: Request, user: GetUserDep) -> None:
    """Refuse a request with 401 or 403, unless Airflow's auth manager lets this user do this to the connector's DAG.

    Making and changing connectors needs the rights to make and edit DAGs: a config decides what runs on the Spark cluster.
    """
    name = request.path_params.get("name")
    dag = _dag_of(request, name) if name else None
    # To do anything with an existing connector, deletion apart, is to edit its DAG.
    method = _METHODS.get(request.method, "PUT")
    if dag is not None and method == "POST":
        method = "PUT"
    details = DagDetails(id=dag, team_name=DagModel.get_team_name(dag) if dag else None)
    if not get_auth_manager().is_authorized_dag(method=method, details=details, user=user):
        raise HTTPException(403, "Forbidden")


def _dag_of(request: Request, name: str) -> str:
    """Return the DAG that runs the connector, or would if there were one; a hand-written DAG is named in the config."""
    try:
        return dag_of(name, request.app.state.herder_provider().info(name).config)
    except ConnectError:  # not there, or Kafka is not; the endpoint itself will say so
        pass
    try:
        return dag_id(name)
    except ConfigError as error:
        raise HTTPException(404, str(error)) from error
