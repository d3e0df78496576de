"""The endpoints for dead letter queue records, which Kafka Connect does not have."""
# No ``from __future__ import annotations``: FastAPI reads the parameters' types when the module is loaded.

import functools
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.responses import Response

from sluiceway.rest import bodies
from sluiceway.rest.bodies import JsonResponse
from sluiceway.rest.conventions import json_only, readable
from sluiceway.rest.requests import Body, TheHerder, json_body, names_a_connector

DATA_PATH = "/connectors/{name:segment}/dead-letters"
"""The path whose response contains records. Servers with users should allow it to those who may edit the connector."""

_MAX = 500
_CHOSEN = {"records": [{"partition": 0, "offset": 42}]}

router = APIRouter(dependencies=[Depends(json_only), Depends(names_a_connector)])
get = functools.partial(readable, router)


@get(DATA_PATH, summary="Get the newest dead letter queue records of a connector")
def get_dead_letters(name: str, herder: TheHerder, limit: Annotated[int, Query(ge=1, le=_MAX)] = 20) -> Response:
    found = herder.dead_letters(name).newest(limit)
    return JsonResponse(bodies.dead_letters_json(found), headers={"Cache-Control": "no-store"})


@router.post(
    f"{DATA_PATH}/replay",
    summary="Send chosen dead letter queue records to the topics they came from, or to topic",
    openapi_extra=json_body(_CHOSEN),
)
def replay_dead_letters(name: str, body: Body, herder: TheHerder) -> Response:
    positions, topic = bodies.read_replay(body)
    return JsonResponse({"sent": herder.dead_letters(name).replay(positions, topic).sent})
