"""FastAPI dependencies of the endpoints: the request body, the herder and the loggers."""
# No ``from __future__ import annotations``: FastAPI reads the parameters' types when the module is loaded.

import re
from typing import Annotated, Any

from fastapi import Depends, HTTPException, Request

from sluiceway.errors import BadRequestError
from sluiceway.herder import Herder
from sluiceway.herder.loggers import Loggers
from sluiceway.rest.errors import AMBIGUOUS, AMBIGUOUS_SCOPE
from sluiceway.rest.origins import origin_of

_MAX_TASK = 2**31 - 1


async def _body(request: Request) -> bytes:
    return await request.body()


def _herder(request: Request) -> Herder:
    """Return a herder that records the request's sender with each change."""
    herder: Herder = request.app.state.herder_provider()
    return herder.acting_for(origin_of(request))


def _loggers(request: Request) -> Loggers:
    loggers: Loggers = request.app.state.loggers
    return loggers


Body = Annotated[bytes, Depends(_body)]
TheHerder = Annotated[Herder, Depends(_herder)]
TheLoggers = Annotated[Loggers, Depends(_loggers)]


def names_a_connector(request: Request) -> None:
    """Route dependency: reject a path that Connect's server would reject, unless it names an existing connector."""
    if request.scope.get(AMBIGUOUS_SCOPE) and request.path_params.get("name") not in _herder(request).connectors():
        raise BadRequestError(AMBIGUOUS)


def task_number(text: str) -> int:
    """Parse a task number in a path. Raises HTTPException (404) for anything else, as for an unknown path."""
    if not re.fullmatch(r"[+-]?[0-9]{1,10}", text) or abs(int(text)) > _MAX_TASK:
        raise HTTPException(404)
    return int(text)


def json_body(example: object) -> dict[str, Any]:
    """Return the OpenAPI description of a JSON body, with an example."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": {}, "example": example}}}}
