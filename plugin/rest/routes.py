"""The endpoints. Plain functions, so that FastAPI runs them in its thread pool: the stores block."""
# No ``from __future__ import annotations``: FastAPI reads the parameters' types when the module is loaded.

import functools
import re
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.responses import Response
from sluiceway import __version__
from sluiceway.herder import Herder
from sluiceway.herder.plugin_classes import CONNECT_VERSION
from sluiceway.herder.validation import trimmed
from sluiceway.rest import bodies
from sluiceway.rest.bodies import JsonResponse
from sluiceway.rest.conventions import json_only, location, reachable
from sluiceway.storage.model import TaskId

_MAX_TASK = 2**31 - 1

router = APIRouter(dependencies=[Depends(json_only)])
get = functools.partial(router.api_route, methods=["GET", "HEAD"])


async def _body(request: Request) -> bytes:
    return await request.body()


def _herder(request: Request) -> Herder:
    herder: Herder = request.app.state.herder_provider()
    return herder


Body = Annotated[bytes, Depends(_body)]
TheHerder = Annotated[Herder, Depends(_herder)]


def task_number(text: str) -> int:
    """Return the number of a task as a path has it; what is none is a path that does not exist."""
    if not re.fullmatch(r"[+-]?[0-9]{1,10}", text) or abs(int(text)) > _MAX_TASK:
        raise HTTPException(404)
    return int(text)


@get("/")
def root(request: Request) -> Response:
    cluster_id = request.app.state.kafka_cluster_id()
    # Clients read the version to know what they may ask for, so it is Connect's; ours is in the commit.
    return JsonResponse({"version": CONNECT_VERSION, "commit": f"sluiceway-{__version__}", "kafka_cluster_id": cluster_id})


@get("/connectors")
def list_connectors(herder: TheHerder, expand: Annotated[list[str] | None, Query()] = None) -> Response:
    names = herder.connectors()
    if expand is None:
        return JsonResponse(names)
    answers: dict[str, dict[str, Any]] = {name: {} for name in names}
    for name, answer in answers.items():
        if "info" in expand:
            answer["info"] = bodies.info_json(herder.info(name))
        if "status" in expand:
            answer["status"] = bodies.connector_status_json(herder.status(name))
    return JsonResponse(answers)


@router.post("/connectors")
def create_connector(request: Request, body: Body, herder: TheHerder) -> Response:
    name, config, initial_state = bodies.read_create_request(body)
    name = reachable(trimmed(name))
    info = herder.create(name, config, initial_state)
    return JsonResponse(bodies.info_json(info), 201, {"Location": location(request, name)})


@get("/connectors/{name}")
def get_connector(name: str, herder: TheHerder) -> Response:
    return JsonResponse(bodies.info_json(herder.info(name)))


@router.delete("/connectors/{name}")
def delete_connector(name: str, herder: TheHerder) -> Response:
    herder.delete(name)
    return Response(status_code=204)


@get("/connectors/{name}/config")
def get_config(name: str, herder: TheHerder) -> Response:
    return JsonResponse(herder.info(name).config)


@router.put("/connectors/{name}/config")
def put_config(request: Request, name: str, body: Body, herder: TheHerder) -> Response:
    created, info = herder.put_config(name, bodies.read_config(body))
    headers = {"Location": location(request, name)} if created else None
    return JsonResponse(bodies.info_json(info), 201 if created else 200, headers)


@get("/connectors/{name}/status")
def get_status(name: str, herder: TheHerder) -> Response:
    return JsonResponse(bodies.connector_status_json(herder.status(name)))


@get("/connectors/{name}/tasks")
def get_tasks(name: str, herder: TheHerder) -> Response:
    return JsonResponse([bodies.task_info_json(task) for task in herder.task_infos(name)])


@get("/connectors/{name}/tasks/{task}/status")
def get_task_status(name: str, task: str, herder: TheHerder) -> Response:
    number = task_number(task)
    return JsonResponse({"id": number, **bodies.status_json(herder.task_status(TaskId(name, number)))})


@router.put("/connectors/{name}/pause")
def pause(name: str, herder: TheHerder) -> Response:
    herder.pause(name)
    return Response(status_code=202)


@router.put("/connectors/{name}/resume")
def resume(name: str, herder: TheHerder) -> Response:
    herder.resume(name)
    return Response(status_code=202)


@router.put("/connectors/{name}/stop")
def stop(name: str, herder: TheHerder) -> Response:
    herder.stop(name)
    return Response(status_code=204)
