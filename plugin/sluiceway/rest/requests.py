"""FastAPI dependencies of the endpoints: the request body, the herder and the loggers."""
# No ``from __future__ import annotations``: FastAPI reads the parameters' types when the module is loaded.

import asyncio
import re
from typing import Annotated, Any

from fastapi import Depends, HTTPException, Request

from sluiceway.errors import BadRequestError
from sluiceway.herder import Herder
from sluiceway.herder.loggers import Loggers
from sluiceway.rest.errors import AMBIGUOUS, AMBIGUOUS_SCOPE
from sluiceway.rest.origins import origin_of

MOST_BYTES = 1 << 20
"""The largest body of a request."""
IDLE_SECONDS = 30.0
"""How long a client may pause within a request or between two, as in Kafka Connect's server."""

_MOST_DIGITS = 12  # Python converts no number of thousands of digits
_MAX_TASK = 2**31 - 1


async def _body(request: Request) -> bytes:
    """Return a body of at most ``MOST_BYTES``. Raises HTTPException: 413 for a larger one, 408 for one that does not arrive."""
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length[:_MOST_DIGITS]) > MOST_BYTES:
        raise _too_large()
    body = bytearray()
    chunks = request.stream()
    try:
        while (chunk := await asyncio.wait_for(anext(chunks, None), IDLE_SECONDS)) is not None:
            body += chunk
            if len(body) > MOST_BYTES:
                raise _too_large()
    except asyncio.TimeoutError:
        raise HTTPException(408, f"The body did not arrive: nothing was received for {IDLE_SECONDS:g} s.") from None
    return bytes(body)


def _too_large() -> HTTPException:
    return HTTPException(413, f"The request body is larger than {MOST_BYTES} bytes.", {"Connection": "close"})


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
