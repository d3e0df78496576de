"""The endpoints that restart a connector or a task."""
# No ``from __future__ import annotations``: FastAPI reads the parameters' types when the module is loaded.

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.responses import Response

from sluiceway.rest import bodies
from sluiceway.rest.bodies import JsonResponse
from sluiceway.rest.conventions import json_only
from sluiceway.rest.requests import TheHerder, names_a_connector, task_number
from sluiceway.storage.model import TaskId

router = APIRouter(dependencies=[Depends(json_only), Depends(names_a_connector)])


@router.post("/connectors/{name:segment}/restart", summary="Restart the connector, and with includeTasks its tasks (KIP-745)")
def restart(
    name: str,
    herder: TheHerder,
    include_tasks: Annotated[str, Query(alias="includeTasks")] = "",
    only_failed: Annotated[str, Query(alias="onlyFailed")] = "",
) -> Response:
    chosen = {"include_tasks": _is_true(include_tasks), "only_failed": _is_true(only_failed)}
    status = herder.restart(name, **chosen)
    # A plain restart is older than the others, and has no body.
    return JsonResponse(bodies.connector_status_json(status), 202) if any(chosen.values()) else Response(status_code=204)


@router.post("/connectors/{name:segment}/tasks/{task}/restart", summary="Restart one task")
def restart_task(name: str, task: str, herder: TheHerder) -> Response:
    herder.restart_task(TaskId(name, task_number(task)))
    return Response(status_code=204)


def _is_true(text: str) -> bool:
    """Read a flag as Java does: whatever is not "true" is false."""
    return text.lower() == "true"
