"""The endpoints about the worker itself. They take any content type, as in Connect."""
# No ``from __future__ import annotations``: FastAPI reads the parameters' types when the module is loaded.

import functools

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from sluiceway import __version__
from sluiceway.errors import ConnectError
from sluiceway.herder.plugin_classes import CONNECT_VERSION
from sluiceway.rest.bodies import JsonResponse
from sluiceway.rest.conventions import json_wanted, readable

_HEALTH_SECONDS = 10.0  # Connect's default

router = APIRouter(dependencies=[Depends(json_wanted)])
get = functools.partial(readable, router)


@get("/", summary="Versions of Connect and Sluiceway, and the Kafka cluster's id")
def root(request: Request) -> Response:
    cluster_id = request.app.state.kafka_cluster_id()
    # Clients read the version to know what they may ask for, so it is Connect's; ours is in the commit.
    return JsonResponse({"version": CONNECT_VERSION, "commit": f"sluiceway-{__version__}", "kafka_cluster_id": cluster_id})


@get("/health", summary="Whether connectors can be served (KIP-1017)")
def health(request: Request) -> Response:
    try:
        herder = request.app.state.herder_provider()
    except ConnectError:
        return JsonResponse({"status": "starting", "message": "Worker is still starting up."}, 503)
    try:
        herder.check_health(_HEALTH_SECONDS)
    except ConnectError:
        told = "Worker was unable to handle this request and may be unable to handle other requests."
        return JsonResponse({"status": "unhealthy", "message": told}, 500)
    told = "Worker has completed startup and is ready to handle requests."
    return JsonResponse({"status": "healthy", "message": told})
