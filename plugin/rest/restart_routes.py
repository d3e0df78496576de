"""The endpoints that restart a connector or a task."""
# No ``from __future__ import annotations``: FastAPI reads the parameters' types when the module is loaded.

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.responses import Response
from sluiceway.rest import bodies
from sluiceway.rest.bodies import JsonResponse
from sluiceway.rest.conventions import json_only
from sluiceway.rest.routes import TheHerder, task_number
from sluiceway.storage.model import TaskId

router = APIRouter(dependencies=[Depends(json_only)])


@router.post("/connectors/{name}/restart")
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


@router.post("/connectors/{name}/tasks/{task}/restart")
def restart_task(name: str, task: str, herder: TheHerder) -> Response:
    herder.restart_task(TaskId(name, task_number(task)))
    return Response(status_code=204)


def _is_true(text: str) -> bool:
    """Read a flag as Java does: whatever is not "true" is false."""
    return text.lower() == "true"
