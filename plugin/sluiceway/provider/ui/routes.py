"""The endpoints of the page, below ``/ui``. What the page changes, it changes through the REST API's own endpoints."""
# No ``from __future__ import annotations``: FastAPI reads the parameters' types when the module is loaded.

import functools
from collections.abc import Callable
from typing import Annotated, Protocol

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Query, Request
from fastapi.responses import Response

from sluiceway.provider.api.access import DagGuard
from sluiceway.provider.ui.dashboard import Dashboard
from sluiceway.provider.ui.page import Page
from sluiceway.rest.bodies import JsonResponse
from sluiceway.rest.conventions import readable
from sluiceway.rest.requests import names_a_connector

_MOST = 200  # connectors whose history is told at once

router = APIRouter(prefix="/ui/api", include_in_schema=False, dependencies=[Depends(names_a_connector)])
get = functools.partial(readable, router)


class _Shown(Protocol):
    """What the app's state has for these endpoints."""

    dashboard_provider: Callable[[], Dashboard]


def _dashboard(request: Request) -> Dashboard:
    state: _Shown = request.app.state
    return state.dashboard_provider()


def _guard(request: Request) -> DagGuard:
    guard: DagGuard = request.state.guard
    return guard


TheDashboard = Annotated[Dashboard, Depends(_dashboard)]
TheGuard = Annotated[DagGuard, Depends(_guard)]


@get("/overview")
def overview(dashboard: TheDashboard, guard: TheGuard, dag: str | None = None) -> Response:
    configs = dashboard.configs()
    visible = guard.visible(configs)
    editable = guard.editable({name: configs[name] for name in visible})
    return _json(dashboard.overview(visible, set(editable), dag))


@get("/history")
def history(dashboard: TheDashboard, guard: TheGuard, name: Annotated[list[str] | None, Query()] = None) -> Response:
    if name is not None and len(name) > _MOST:
        raise HTTPException(400, f"At most {_MOST} connectors at once.")
    configs = dashboard.configs()
    return _json(dashboard.history(guard.visible({each: configs[each] for each in name or () if each in configs})))


@get("/connectors/{name:segment}")
def connector(name: str, dashboard: TheDashboard, guard: TheGuard) -> Response:
    configs = dashboard.configs()
    own = {name: configs[name]} if name in configs else {}
    return _json(dashboard.connector(name, name in guard.editable(own)))


@get("/connectors/{name:segment}/dead-letters")
def dead_letters(name: str, dashboard: TheDashboard) -> Response:
    return _json(dashboard.dead_letters(name))


def install(app: FastAPI, dashboard_provider: Callable[[], Dashboard]) -> None:
    """Add the page to the REST app, whose dependencies then guard its data; the page itself holds none and is open."""
    app.state.dashboard_provider = dashboard_provider
    app.include_router(router)
    app.mount("/ui", Page(), name="ui")


def _json(content: object) -> Response:
    return JsonResponse(content, headers={"Cache-Control": "no-store"})
