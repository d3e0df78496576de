"""Defines the read-only endpoints of the page, below ``/ui``. The page makes changes through Connect's REST API."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated, Any, Protocol

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Query, Request
from fastapi.responses import Response

from sluiceway.config.connector import CONFIG_TASK, OWN
from sluiceway.config.validators import OneOf, OrNull
from sluiceway.discovery import connector_class
from sluiceway.errors import ConfigError, NotFoundError
from sluiceway.herder.config_infos import ConfigKeyInfo
from sluiceway.herder.enrichment import base_def
from sluiceway.provider.api.access import DagGuard
from sluiceway.provider.ui.catalogue import catalogue
from sluiceway.provider.ui.dashboard import Dashboard
from sluiceway.provider.ui.page import Page
from sluiceway.rest.bodies import JsonResponse
from sluiceway.rest.conventions import readable
from sluiceway.rest.requests import names_a_connector

_MAX_HISTORIES = 200  # connectors per request

router = APIRouter(prefix="/ui/api", include_in_schema=False, dependencies=[Depends(names_a_connector)])
get = functools.partial(readable, router)


class _State(Protocol):
    """The part of the app's state that these endpoints read."""

    dashboard_provider: Callable[[], Dashboard]


def _dashboard(request: Request) -> Dashboard:
    state: _State = request.app.state
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
    return _json({**dashboard.overview(visible, set(editable), dag), "may_create": guard.may_create()})


@get("/flow")
def flow(dashboard: TheDashboard, guard: TheGuard, dag: str | None = None) -> Response:
    return _json(dashboard.flow(guard.visible(dashboard.configs()), dag))


@get("/moves")
def moves(dashboard: TheDashboard, guard: TheGuard) -> Response:
    return _json(dashboard.moves(guard.visible(dashboard.configs()), guard.may_create()))


@get("/history")
def history(dashboard: TheDashboard, guard: TheGuard, name: Annotated[list[str] | None, Query()] = None) -> Response:
    if name is not None and len(name) > _MAX_HISTORIES:
        raise HTTPException(400, f"Too many connectors: {len(name)}. Request at most {_MAX_HISTORIES} at once.")
    configs = dashboard.configs()
    return _json(dashboard.history(guard.visible({each: configs[each] for each in name or () if each in configs})))


@get("/connectors/{name:segment}")
def connector(name: str, dashboard: TheDashboard, guard: TheGuard) -> Response:
    return _json({**dashboard.connector(name, _may_edit(name, dashboard, guard)), "may_create": guard.may_create()})


def _may_edit(name: str, dashboard: Dashboard, guard: DagGuard) -> bool:
    configs = dashboard.configs()
    return name in guard.editable({name: configs[name]} if name in configs else {})


@get("/plugins")
def plugins() -> Response:
    return _json(catalogue())


@get("/keys")
def keys(plugin: str = "") -> Response:
    """Return the keys that connectors have here and not in Kafka Connect, and the values that keys of a plugin may have.

    A validation returns only those own keys that are set. The key that no user may set is left out.
    """
    own = [ConfigKeyInfo.of(key).to_json() for key in OWN if key.name != CONFIG_TASK]
    return _json({"own": own, "choices": choices_of(plugin)})


@get("/connectors/{name:segment}/dead-letters")
def dead_letters(name: str, dashboard: TheDashboard, guard: TheGuard) -> Response:
    return _json(dashboard.dead_letters(name, _may_edit(name, dashboard, guard)))


def install(app: FastAPI, dashboard_provider: Callable[[], Dashboard]) -> None:
    """Add the page to the REST app.

    The app's dependencies authorize requests for data. The static files contain no data and need no login.
    """
    app.state.dashboard_provider = dashboard_provider
    app.include_router(router)
    app.mount("/ui", Page(), name="ui")


def _json(content: object) -> Response:
    return JsonResponse(content, headers={"Cache-Control": "no-store"})


def choices_of(plugin: str) -> dict[str, list[str]]:
    """Return the allowed values of each key that has a fixed set of them: a plugin's, Connect's, and our own.

    A validation returns only what a plugin recommends, as in Kafka Connect. Of a class that is not installed here, the choices
    are those of our own keys.
    """
    keys = list(OWN)
    try:
        found = connector_class(plugin)
        keys += [*base_def(found), *found.config_def()]
    except (NotFoundError, ConfigError):
        pass
    return {key.name: choices for key in keys if (choices := _allowed(key.validator))}


def _allowed(validator: Callable[..., Any] | None) -> list[str]:
    if isinstance(validator, OrNull):
        return _allowed(validator.validator)
    return [value for value in validator.allowed if value] if isinstance(validator, OneOf) else []
