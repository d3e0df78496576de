"""The endpoints about plugins, and the check of a config that is not stored."""
# No ``from __future__ import annotations``: FastAPI reads the parameters' types when the module is loaded.

from fastapi import APIRouter, Depends
from fastapi.responses import Response
from sluiceway.errors import BadRequestError, ConfigError, ConnectError, java_text_of
from sluiceway.herder.validation import installed, plugin_config, refuse_other_connector
from sluiceway.rest import bodies
from sluiceway.rest.bodies import JsonResponse
from sluiceway.rest.conventions import json_only
from sluiceway.rest.routes import Body, TheHerder

router = APIRouter(dependencies=[Depends(json_only)])


@router.api_route("/connector-plugins", methods=["GET", "HEAD"])
def list_plugins(connectorsOnly: str = "true") -> Response:  # noqa: N803 (the parameter's name in Connect's API)
    plugins = installed(connectors_only=connectorsOnly.lower() == "true")
    return JsonResponse([bodies.plugin_json(plugin) for plugin in plugins])


@router.api_route("/connector-plugins/{plugin}/config", methods=["GET", "HEAD"])
def get_plugin_config(plugin: str) -> Response:
    return JsonResponse([key.to_json() for key in plugin_config(plugin)])


@router.put("/connector-plugins/{plugin}/config/validate")
def validate(plugin: str, body: Body, herder: TheHerder) -> Response:
    config = bodies.read_unchecked_config(body)
    refuse_other_connector(plugin, config)
    try:
        found = herder.validate(config)
    except (BadRequestError, ConfigError) as error:  # Connect checks on another thread and answers 500 to what comes of it
        raise ConnectError(java_text_of(error)) from error
    return JsonResponse(found.to_json())
