"""The endpoint that sends signals to connectors of change data capture. Kafka Connect has no such endpoint."""
# No ``from __future__ import annotations``: FastAPI reads the parameters' types when the module is loaded.

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from sluiceway.rest import bodies
from sluiceway.rest.bodies import JsonResponse
from sluiceway.rest.conventions import json_only
from sluiceway.rest.origins import origin_of
from sluiceway.rest.requests import Body, TheHerder, json_body, names_a_connector

_SNAPSHOT = {"type": "execute-snapshot", "data": {"data-collections": ["public\\.orders"], "type": "incremental"}}

router = APIRouter(dependencies=[Depends(json_only), Depends(names_a_connector)])


@router.post(
    "/connectors/{name:segment}/signals",
    summary="Send a signal, such as that for an incremental snapshot, to the signal topic of a connector",
    status_code=202,
    openapi_extra=json_body(_SNAPSHOT),
)
def send_signal(request: Request, name: str, body: Body, herder: TheHerder) -> Response:
    signal = bodies.read_signal(body)
    topic = herder.signals(name).send(signal, origin_of(request).user)
    return JsonResponse({"id": signal.id, "topic": topic}, 202)
