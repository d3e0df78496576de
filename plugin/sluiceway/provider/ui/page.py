"""Serves the page's files from the installed package."""

from __future__ import annotations

from pathlib import Path

from fastapi.responses import Response
from fastapi.staticfiles import StaticFiles
from starlette.types import Scope

ENTRY = "index.html"
"""The page itself. (Without the file's name, a lost slash at the end would make every relative address a wrong one.)"""

_HEADERS = {
    # Nothing from elsewhere and nothing inline; shown only within Airflow.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    # Asked for again after an upgrade; an ETag keeps that cheap.
    "Cache-Control": "no-cache",
}


class Page(StaticFiles):
    """The folder ``static`` with headers that let the page do nothing that it need not."""

    def __init__(self) -> None:
        super().__init__(directory=Path(__file__).parent / "static")

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(_HEADERS)
        return response
