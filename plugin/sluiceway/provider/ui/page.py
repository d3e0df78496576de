"""Serves the page's files from the installed package."""

from __future__ import annotations

import json
from pathlib import Path

from fastapi.responses import Response
from fastapi.staticfiles import StaticFiles
from starlette.types import Scope

from sluiceway.config import masking

ENTRY = "index.html"
"""The page's file. Links name it, because relative addresses break if the slash after a folder name is lost."""

_HEADERS = {
    # The page loads only its own files, no inline scripts or styles, and is framed only by Airflow.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    # Revalidate each time, so that an upgrade takes effect; the ETag keeps that cheap.
    "Cache-Control": "no-cache",
}


MASKING = "masking.js"
"""The module with the patterns of secrets, which is made from the server's own so that both hide the same."""


def masking_module() -> str:
    """Return the text of the module."""
    patterns = {"HIDDEN_NAMES": masking.HIDDEN_NAMES, "SHOWN_NAMES": masking.SHOWN_NAMES}
    return "".join(f'export const {name} = new RegExp({json.dumps(pattern)}, "i");\n' for name, pattern in patterns.items())


class Page(StaticFiles):
    """Serves the folder ``static``, and the module of patterns, with security headers."""

    def __init__(self) -> None:
        super().__init__(directory=Path(__file__).parent / "static")

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return a file, with the headers."""
        if path == MASKING:
            response = Response(masking_module(), media_type="text/javascript")
        else:
            response = await super().get_response(path, scope)
        response.headers.update(_HEADERS)
        return response
