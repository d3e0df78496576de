"""ASGI middleware that rejects unauthenticated requests to the standalone REST server. Airflow has its own."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from sluiceway.errors import ConfigError
from sluiceway.rest.credentials import Authenticator
from sluiceway.rest.errors import error_response

_REFUSAL = "User cannot access the resource."


class Authentication:
    """Responds with 401 and Connect's error body to every request without valid credentials.

    Sets ``request.state.user`` for the others: the name of the user or token, None where no credentials are required.
    """

    def __init__(self, app: ASGIApp, authenticator: Authenticator) -> None:
        self._app = app
        self._authenticator = authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                user = await run_in_threadpool(self._authenticator.user, Headers(scope=scope).get("authorization"))
            except ConfigError as error:
                await error_response(500, str(error))(scope, receive, send)
                return
            if user is None and self._authenticator.challenges:
                refusal = error_response(401, _REFUSAL)
                for challenge in self._authenticator.challenges:
                    refusal.headers.append("WWW-Authenticate", challenge)
                await refusal(scope, receive, send)
                return
            scope.setdefault("state", {})["user"] = user
        await self._app(scope, receive, send)
