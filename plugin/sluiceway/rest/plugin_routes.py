"""The endpoints below ``/connector-plugins`` (Connect's ConnectorPluginsResource)."""
# No ``from __future__ import annotations``: FastAPI reads the parameters' types when the module is loaded.

import functools
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from sluiceway.config.connector import NAME
from sluiceway.herder.validation import installed, plugin_config, plugin_implementation, refuse_other_connector
from sluiceway.preview.request import MOST_RECORDS, MOST_SECONDS, Limits
from sluiceway.preview.service import preview
from sluiceway.rest import bodies
from sluiceway.rest.bodies import JsonResponse
from sluiceway.rest.conventions import json_only, readable
from sluiceway.rest.guard import guard_of
from sluiceway.rest.requests import Body, TheHerder, json_body

PREVIEW_PATH = "/connector-plugins/{plugin}/config/preview"
"""The path that runs a config. Whether the user may do so is for the endpoint to ask: the connector's name is in the body."""

_CONFIG = {"connector.class": "FileStreamSource", "name": "a", "topic": "lines"}

router = APIRouter(dependencies=[Depends(json_only)])
get = functools.partial(readable, router)


@get("/connector-plugins", summary="List installed connectors; connectorsOnly=false lists all plugins")
def list_plugins(connectorsOnly: str = "true") -> Response:  # noqa: N803 (the parameter's name in Connect's API)
    plugins = installed(connectors_only=connectorsOnly.lower() in ("true", ""))
    return JsonResponse([bodies.plugin_json(plugin) for plugin in plugins])


@get("/connector-plugins/{plugin}/config", summary="Get the config keys of a plugin")
def get_plugin_config(plugin: str, version: str | None = None) -> Response:
    return JsonResponse([key.to_json() for key in plugin_config(plugin, version)])


@get("/connector-plugins/{plugin}/implementation", summary="Get the language, version and location of a plugin")
def get_plugin_implementation(plugin: str, version: str | None = None) -> Response:
    return JsonResponse(bodies.implementation_json(plugin_implementation(plugin, version)))


@router.put("/connector-plugins/{plugin}/config/validate", summary="Validate a config", openapi_extra=json_body(_CONFIG))
def validate(plugin: str, body: Body, herder: TheHerder) -> Response:
    config = bodies.read_config(body)
    refuse_other_connector(plugin, config)
    return JsonResponse(herder.validate(config).to_json())


@router.post(
    PREVIEW_PATH,
    summary="Run a config on a few records without writing anything",
    openapi_extra=json_body(_CONFIG),
)
def preview_config(
    request: Request,
    plugin: str,
    body: Body,
    herder: TheHerder,
    records: Annotated[int, Query(ge=1, le=MOST_RECORDS)] = 10,
    seconds: Annotated[float, Query(gt=0, le=MOST_SECONDS)] = 10.0,
    from_beginning: Annotated[str, Query(alias="fromBeginning")] = "",
) -> Response:
    config = bodies.read_config(body)
    refuse_other_connector(plugin, config)
    name = config.get(NAME) or ""
    guard = guard_of(request)
    stored = herder.info(name).config if name in herder.connectors() else None
    guard.check_config(name, config, stored)
    guard.check_preview(name, stored)
    limits = Limits(records, seconds)
    return JsonResponse(preview(herder, config, limits, from_beginning=from_beginning.lower() == "true"))
