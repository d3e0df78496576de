"""The endpoints below ``/connectors`` (Connect's ConnectorsResource).

They are plain functions because the stores block: FastAPI runs such endpoints in its thread pool.
"""
# No ``from __future__ import annotations``: FastAPI reads the parameters' types when the module is loaded.

import functools
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.responses import Response

from sluiceway.errors import BadRequestError
from sluiceway.herder import Herder
from sluiceway.herder.discretion import discreet, discreet_info, discreet_status, discreet_tasks
from sluiceway.herder.model import ConnectorInfo
from sluiceway.herder.offset_targets import PartitionChoice, parse_target
from sluiceway.herder.validation import trimmed
from sluiceway.rest import bodies
from sluiceway.rest.bodies import JsonResponse
from sluiceway.rest.connector_details import ConnectorDetails
from sluiceway.rest.conventions import json_only, location, readable
from sluiceway.rest.guard import check_config, guard_of, may_edit
from sluiceway.rest.origins import origin_of
from sluiceway.rest.requests import Body, TheHerder, json_body, names_a_connector, task_number
from sluiceway.storage.model import TaskId

_CONFIG = {"connector.class": "FileStreamSource", "file": "/tmp/in.txt", "topic": "lines", "tasks.max": "1"}  # noqa: S108 (an example)

_EDITS = {"offsets": [{"partition": {"filename": "/tmp/in.txt"}, "offset": {"position": 0}}]}  # noqa: S108 (an example)

router = APIRouter(dependencies=[Depends(json_only), Depends(names_a_connector)])
get = functools.partial(readable, router)


@get("/connectors", summary="List connectors; expand=info and expand=status add these to each")
def list_connectors(request: Request, herder: TheHerder, expand: Annotated[list[str] | None, Query()] = None) -> Response:
    overview = herder.overview()
    configs = overview.configs()
    names = guard_of(request).visible(configs)
    if expand is None:
        return JsonResponse(names)
    details: ConnectorDetails = request.app.state.connector_details
    editable = set(guard_of(request).editable({name: configs[name] for name in names}))
    if request.app.state.gzips and "gzip" in request.headers.get("accept-encoding", ""):
        headers = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
        return Response(details.gzipped(overview, names, expand, editable), headers=headers, media_type=JsonResponse.media_type)
    return Response(details.listed(overview, names, expand, editable), media_type=JsonResponse.media_type)


@router.post(
    "/connectors",
    summary="Create a connector",
    openapi_extra=json_body({"name": "a", "config": _CONFIG, "initial_state": "RUNNING"}),
)
def create_connector(request: Request, body: Body, herder: TheHerder) -> Response:
    name, config, initial_state = bodies.read_create_request(body)
    name = trimmed(name)
    check_config(request, herder, name, config)
    info = herder.create(name, config, initial_state)
    return JsonResponse(bodies.info_json(info), 201, {"Location": location(request, name)})


@get("/connectors/{name:segment}", summary="Get a connector's config and tasks")
def get_connector(request: Request, name: str, herder: TheHerder) -> Response:
    return JsonResponse(bodies.info_json(_info(request, herder, name)))


@router.delete("/connectors/{name:segment}", summary="Delete a connector; keep its offsets")
def delete_connector(name: str, herder: TheHerder) -> Response:
    herder.delete(name)
    return Response(status_code=204)


@get("/connectors/{name:segment}/config", summary="Get a connector's config")
def get_config(request: Request, name: str, herder: TheHerder) -> Response:
    return JsonResponse(_info(request, herder, name).config)


def _info(request: Request, herder: Herder, name: str) -> ConnectorInfo:
    """Return a connector's info as the user may see it."""
    info = herder.info(name)
    return info if may_edit(request, name, info.config) else discreet_info(info)


@router.put(
    "/connectors/{name:segment}/config", summary="Create a connector or replace its config", openapi_extra=json_body(_CONFIG)
)
def put_config(request: Request, name: str, body: Body, herder: TheHerder) -> Response:
    config = bodies.read_config(body)
    check_config(request, herder, name, config)
    created, info = herder.put_config(name, config)
    headers = {"Location": location(request, name)} if created else None
    return JsonResponse(bodies.info_json(info), 201 if created else 200, headers)


@router.patch(
    "/connectors/{name:segment}/config",
    summary="Set keys of a config; null removes a key (KIP-477)",
    openapi_extra=json_body({"tasks.max": "2", "file": None}),
)
def patch_config(request: Request, name: str, body: Body, herder: TheHerder) -> Response:
    patch = bodies.read_config(body)
    check_config(request, herder, name, patch)
    return JsonResponse(bodies.info_json(herder.patch_config(name, patch)))


@get("/connectors/{name:segment}/history", summary="Get the changes of a connector: who, when, from where, and what")
def get_history(name: str, herder: TheHerder) -> Response:
    return JsonResponse(bodies.history_json(name, herder.history(name)))


@get("/connectors/{name:segment}/intervals", summary="Get the intervals that scheduled runs of a connector have moved")
def get_intervals(request: Request, name: str, herder: TheHerder) -> Response:
    found = herder.intervals(name)
    if not may_edit(request, name, herder.info(name).config):  # as with traces, errors may name what only editors may see
        found = [replace(entry, error=None) for entry in found]
    return JsonResponse(bodies.intervals_json(name, found))


@router.post(
    "/connectors/{name:segment}/rollback",
    summary="Put the config of an earlier version, with the current secrets",
    openapi_extra=json_body({"version": 1}),
)
def roll_back(request: Request, name: str, body: Body, herder: TheHerder) -> Response:
    version = bodies.read_version(body)
    config = herder.config_of_version(name, version)
    check_config(request, herder, name, config)
    origin = replace(origin_of(request), note=f"rollback to version {version}")
    created, info = herder.acting_for(origin).put_config(name, config)
    return JsonResponse(bodies.info_json(info), 201 if created else 200)


@get("/connectors/{name:segment}/status", summary="Get the status of a connector and its tasks")
def get_status(request: Request, name: str, herder: TheHerder) -> Response:
    status = herder.status(name)
    shown = status if may_edit(request, name, herder.info(name).config) else discreet_status(status)
    return JsonResponse(bodies.connector_status_json(shown))


@get("/connectors/{name:segment}/application", summary="Get the Spark application that a connector shares, null for its own")
def get_application(name: str, herder: TheHerder) -> Response:
    found = herder.application(name)
    return JsonResponse({"application": found.application, "reason": found.reason, "driver": herder.driver(name)})


@get("/connectors/{name:segment}/tasks", summary="Get a connector's tasks and their configs")
def get_tasks(request: Request, name: str, herder: TheHerder) -> Response:
    tasks, info = herder.task_infos(name), herder.info(name)
    shown = tasks if may_edit(request, name, info.config) else discreet_tasks(info, tasks)
    return JsonResponse([bodies.task_info_json(task) for task in shown])


@get("/connectors/{name:segment}/tasks/{task}/status", summary="Get the status of a task")
def get_task_status(request: Request, name: str, task: str, herder: TheHerder) -> Response:
    number = task_number(task)
    status = herder.task_status(TaskId(name, number))
    shown = status if may_edit(request, name, herder.info(name).config) else discreet(status)
    return JsonResponse({"id": number, **bodies.status_json(shown)})


@router.put("/connectors/{name:segment}/pause", summary="Pause a connector", status_code=202)
def pause(name: str, herder: TheHerder, moving: bool = False) -> Response:
    herder.pause(name, by_move=moving)
    return Response(status_code=202)


@router.put("/connectors/{name:segment}/resume", summary="Resume a paused or stopped connector", status_code=202)
def resume(name: str, herder: TheHerder, moving: bool = False) -> Response:
    herder.resume(name, by_move=moving)
    return Response(status_code=202)


@router.put("/connectors/{name:segment}/stop", summary="Stop a connector; it has no tasks until it is resumed", status_code=204)
def stop(name: str, herder: TheHerder) -> Response:
    herder.stop(name)
    return Response(status_code=204)


@router.post("/connectors/{name:segment}/restart", summary="Restart a connector; includeTasks also restarts its tasks (KIP-745)")
def restart(
    name: str,
    herder: TheHerder,
    include_tasks: Annotated[str, Query(alias="includeTasks")] = "",
    only_failed: Annotated[str, Query(alias="onlyFailed")] = "",
) -> Response:
    chosen = {"include_tasks": _is_true(include_tasks), "only_failed": _is_true(only_failed)}
    status = herder.restart(name, **chosen)
    # A restart without parameters predates KIP-745 and has no response body.
    return JsonResponse(bodies.connector_status_json(status), 202) if any(chosen.values()) else Response(status_code=204)


@router.post("/connectors/{name:segment}/tasks/{task}/restart", summary="Restart a task")
def restart_task(name: str, task: str, herder: TheHerder) -> Response:
    herder.restart_task(TaskId(name, task_number(task)))
    return Response(status_code=204)


def _is_true(text: str) -> bool:
    """Parse a flag as Java does: any text other than "true" is false."""
    return text.lower() == "true"


@get("/connectors/{name:segment}/topics", summary="Get the topics that a connector uses (KIP-558)")
def get_topics(name: str, herder: TheHerder) -> Response:
    _refuse_untracked(herder)
    return JsonResponse({name: {"topics": herder.topics(name)}})


@router.put("/connectors/{name:segment}/topics/reset", summary="Reset the topics that a connector uses", status_code=202)
def reset_topics(name: str, herder: TheHerder) -> Response:
    _refuse_untracked(herder)
    if not herder.topic_tracking.resettable:
        raise HTTPException(403, "Topic tracking reset is disabled.")
    herder.reset_topics(name)
    return Response(status_code=202)


@get("/connectors/{name:segment}/offsets", summary="Get a connector's offsets (KIP-875)")
def get_offsets(name: str, herder: TheHerder) -> Response:
    return JsonResponse(bodies.offsets_json(*herder.offsets_and_position(name)))


@get("/connectors/{name:segment}/offsets/find", summary="Find the offsets of a time, the beginning, the end, or a shift")
def find_offsets(
    name: str,
    herder: TheHerder,
    to: Annotated[str | None, Query()] = None,
    shift_by: Annotated[str | None, Query(alias="shiftBy")] = None,
    topic: Annotated[list[str] | None, Query()] = None,
    partition: Annotated[list[str] | None, Query()] = None,
) -> Response:
    target, choice = parse_target(to, shift_by), PartitionChoice.parse(topic or (), partition or ())
    return JsonResponse(bodies.found_offsets_json(herder.find_offsets(name, target, choice)))


@router.patch(
    "/connectors/{name:segment}/offsets", summary="Alter the offsets of a stopped connector", openapi_extra=json_body(_EDITS)
)
def alter_offsets(name: str, body: Body, herder: TheHerder) -> Response:
    return JsonResponse({"message": herder.alter_offsets(name, bodies.read_offsets(body))})


@router.delete("/connectors/{name:segment}/offsets", summary="Reset the offsets of a stopped connector", status_code=200)
def reset_offsets(name: str, herder: TheHerder) -> Response:
    return JsonResponse({"message": herder.reset_offsets(name)})


@router.put("/connectors/{name:segment}/fence", include_in_schema=False)
@router.post("/connectors/{name:segment}/tasks", include_in_schema=False)
def refuse_internal(name: str) -> Response:
    """Reject the signed requests that Connect's workers send each other; Sluiceway has no such workers."""
    raise BadRequestError("Internal request missing required signature")


def _refuse_untracked(herder: Herder) -> None:
    if not herder.topic_tracking.enabled:
        raise HTTPException(403, "Topic tracking is disabled.")
