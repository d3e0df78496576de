"""Finds out who sent a request, for the history of connectors. No I/O."""

from __future__ import annotations

from starlette.requests import Request

from sluiceway.storage.history import Origin

USER_HEADER = "Sluiceway-User"
"""The name of the user whom a client claims to act for. It counts only where the server asks for no credentials."""

_MAX_LENGTH = 200  # of what a client says about itself


def origin_of(request: Request) -> Origin:
    """Return who sent a request. A server that authenticates users sets ``request.state.user``."""
    login: str | None = getattr(request.state, "user", None)
    return Origin(
        user=login or _said(request, USER_HEADER),
        authenticated=login is not None,
        address=request.client.host if request.client is not None else None,
        client=_said(request, "User-Agent"),
    )


def _said(request: Request, header: str) -> str | None:
    text = "".join(each for each in request.headers.get(header, "") if each.isprintable())
    return text[:_MAX_LENGTH] or None
