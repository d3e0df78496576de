"""The endpoints of connectors. Plain functions, so that FastAPI runs them in its thread pool: the stores block."""
# No ``from __future__ import annotations``: FastAPI reads the parameters' types when the module is loaded.

import functools
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from sluiceway.errors import NotFoundError
from sluiceway.herder import Herder
from sluiceway.herder.validation import trimmed
from sluiceway.rest import bodies
from sluiceway.rest.bodies import JsonResponse
from sluiceway.rest.conventions import json_only, location, readable
from sluiceway.rest.guard import guard_of
from sluiceway.rest.requests import Body, TheHerder, json_body, names_a_connector, task_number
from sluiceway.storage.model import TaskId

_CONFIG = {"connector.class": "FileStreamSource", "file": "/tmp/in.txt", "topic": "lines", "tasks.max": "1"}  # noqa: S108 (an example)

router = APIRouter(dependencies=[Depends(json_only), Depends(names_a_connector)])
get = functools.partial(readable, router)


@get("/connectors", summary="Names of all connectors; with expand=info and expand=status, these of each")
def list_connectors(request: Request, herder: TheHerder, expand: Annotated[list[str] | None, Query()] = None) -> Response:
    names = guard_of(request).visible(herder.configs())
    if expand is None:
        return JsonResponse(names)
    return JsonResponse({name: answer for name in names if (answer := _expanded(name, expand, herder)) is not None})


def _expanded(name: str, expand: list[str], herder: Herder) -> dict[str, Any] | None:
    """Return what was asked for of a connector, None if it was deleted meanwhile."""
    try:
        info = {"info": bodies.info_json(herder.info(name))} if "info" in expand else {}
        status = {"status": bodies.connector_status_json(herder.status(name))} if "status" in expand else {}
    except NotFoundError:
        return None
    return info | status


@router.post(
    "/connectors",
    summary="Make a connector",
    openapi_extra=json_body({"name": "a", "config": _CONFIG, "initial_state": "RUNNING"}),
)
def create_connector(request: Request, body: Body, herder: TheHerder) -> Response:
    name, config, initial_state = bodies.read_create_request(body)
    name = trimmed(name)
    guard_of(request).check_config(name, config)
    info = herder.create(name, config, initial_state)
    return JsonResponse(bodies.info_json(info), 201, {"Location": location(request, name)})


@get("/connectors/{name:segment}", summary="A connector's config and tasks")
def get_connector(name: str, herder: TheHerder) -> Response:
    return JsonResponse(bodies.info_json(herder.info(name)))


@router.delete("/connectors/{name:segment}", summary="Delete a connector; its offsets stay")
def delete_connector(name: str, herder: TheHerder) -> Response:
    herder.delete(name)
    return Response(status_code=204)


@get("/connectors/{name:segment}/config", summary="A connector's config")
def get_config(name: str, herder: TheHerder) -> Response:
    return JsonResponse(herder.info(name).config)


@router.put(
    "/connectors/{name:segment}/config", summary="Make a connector, or replace its config", openapi_extra=json_body(_CONFIG)
)
def put_config(request: Request, name: str, body: Body, herder: TheHerder) -> Response:
    config = bodies.read_config(body)
    guard_of(request).check_config(name, config)
    created, info = herder.put_config(name, config)
    headers = {"Location": location(request, name)} if created else None
    return JsonResponse(bodies.info_json(info), 201 if created else 200, headers)


@router.patch(
    "/connectors/{name:segment}/config",
    summary="Change some keys of a config; null removes one (KIP-477)",
    openapi_extra=json_body({"tasks.max": "2", "file": None}),
)
def patch_config(request: Request, name: str, body: Body, herder: TheHerder) -> Response:
    patch = bodies.read_config(body)
    guard_of(request).check_config(name, patch)
    return JsonResponse(bodies.info_json(herder.patch_config(name, patch)))


@get("/connectors/{name:segment}/status", summary="How a connector and its tasks fare")
def get_status(name: str, herder: TheHerder) -> Response:
    return JsonResponse(bodies.connector_status_json(herder.status(name)))


@get("/connectors/{name:segment}/tasks", summary="A connector's tasks with their configs")
def get_tasks(name: str, herder: TheHerder) -> Response:
    return JsonResponse([bodies.task_info_json(task) for task in herder.task_infos(name)])


@get("/connectors/{name:segment}/tasks/{task}/status", summary="How one task fares")
def get_task_status(name: str, task: str, herder: TheHerder) -> Response:
    number = task_number(task)
    return JsonResponse({"id": number, **bodies.status_json(herder.task_status(TaskId(name, number)))})


@router.put("/connectors/{name:segment}/pause", summary="Pause a connector", status_code=202)
def pause(name: str, herder: TheHerder) -> Response:
    herder.pause(name)
    return Response(status_code=202)


@router.put("/connectors/{name:segment}/resume", summary="Resume a paused or stopped connector", status_code=202)
def resume(name: str, herder: TheHerder) -> Response:
    herder.resume(name)
    return Response(status_code=202)


@router.put("/connectors/{name:segment}/stop", summary="Stop a connector: it has no tasks until it is resumed", status_code=204)
def stop(name: str, herder: TheHerder) -> Response:
    herder.stop(name)
    return Response(status_code=204)
