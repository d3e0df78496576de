"""The endpoints for the topics that connectors use, and for their offsets."""
# No ``from __future__ import annotations``: FastAPI reads the parameters' types when the module is loaded.

import functools

from fastapi import APIRouter, Depends, HTTPException
from fastapi.responses import Response

from sluiceway.errors import BadRequestError
from sluiceway.herder import Herder
from sluiceway.rest import bodies
from sluiceway.rest.bodies import JsonResponse
from sluiceway.rest.conventions import json_only, readable
from sluiceway.rest.requests import Body, TheHerder, json_body, names_a_connector

_EDITS = {"offsets": [{"partition": {"filename": "/tmp/in.txt"}, "offset": {"position": 0}}]}  # noqa: S108 (an example)

router = APIRouter(dependencies=[Depends(json_only), Depends(names_a_connector)])
get = functools.partial(readable, router)


@get("/connectors/{name:segment}/topics", summary="The topics that a connector was seen to use (KIP-558)")
def get_topics(name: str, herder: TheHerder) -> Response:
    _refuse_untracked(herder)
    return JsonResponse({name: {"topics": herder.topics(name)}})


@router.put(
    "/connectors/{name:segment}/topics/reset", summary="Forget the topics that a connector was seen to use", status_code=202
)
def reset_topics(name: str, herder: TheHerder) -> Response:
    _refuse_untracked(herder)
    if not herder.topic_tracking.resettable:
        raise HTTPException(403, "Topic tracking reset is disabled.")
    herder.reset_topics(name)
    return Response(status_code=202)


@get("/connectors/{name:segment}/offsets", summary="A connector's offsets (KIP-875)")
def get_offsets(name: str, herder: TheHerder) -> Response:
    return JsonResponse(bodies.offsets_json(herder.offsets(name)))


@router.patch("/connectors/{name:segment}/offsets", summary="Set offsets of a stopped connector", openapi_extra=json_body(_EDITS))
def alter_offsets(name: str, body: Body, herder: TheHerder) -> Response:
    return JsonResponse({"message": herder.alter_offsets(name, bodies.read_offsets(body))})


@router.delete("/connectors/{name:segment}/offsets", summary="Forget the offsets of a stopped connector", status_code=200)
def reset_offsets(name: str, herder: TheHerder) -> Response:
    return JsonResponse({"message": herder.reset_offsets(name)})


@router.put("/connectors/{name:segment}/fence", include_in_schema=False)
@router.post("/connectors/{name:segment}/tasks", include_in_schema=False)
def refuse_internal(name: str) -> Response:
    """Connect's workers ask each other for this, with a signature; here nobody needs to."""
    raise BadRequestError("Internal request missing required signature")


def _refuse_untracked(herder: Herder) -> None:
    if not herder.topic_tracking.enabled:
        raise HTTPException(403, "Topic tracking is disabled.")
