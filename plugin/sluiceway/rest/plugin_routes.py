"""The endpoints below ``/connector-plugins`` (Connect's ConnectorPluginsResource)."""
# No ``from __future__ import annotations``: FastAPI reads the parameters' types when the module is loaded.

import functools

from fastapi import APIRouter, Depends
from fastapi.responses import Response

from sluiceway.herder.validation import installed, plugin_config, plugin_implementation, refuse_other_connector
from sluiceway.rest import bodies
from sluiceway.rest.bodies import JsonResponse
from sluiceway.rest.conventions import json_only, readable
from sluiceway.rest.requests import Body, TheHerder, json_body

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
