"""The endpoints ``/`` and ``/health`` (Connect's RootResource). As in Connect, they accept any content type."""
# No ``from __future__ import annotations``: FastAPI reads the parameters' types when the module is loaded.

import functools

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from sluiceway import __version__
from sluiceway.discovery import CONNECT_VERSION
from sluiceway.errors import ConnectError
from sluiceway.rest.bodies import JsonResponse
from sluiceway.rest.conventions import accepts_json, readable

_HEALTH_SECONDS = 10.0  # Connect's default

router = APIRouter(dependencies=[Depends(accepts_json)])
get = functools.partial(readable, router)


@get("/", summary="Get the versions and the id of the Kafka cluster")
def root(request: Request) -> Response:
    cluster_id = request.app.state.kafka_cluster_id()
    # Clients derive the supported features from the version, so it is Connect's; ours is in the commit.
    return JsonResponse({"version": CONNECT_VERSION, "commit": f"sluiceway-{__version__}", "kafka_cluster_id": cluster_id})


@get("/health", summary="Get the health of the worker (KIP-1017)")
def health(request: Request) -> Response:
    try:
        herder = request.app.state.herder_provider()
    except ConnectError:
        return JsonResponse({"status": "starting", "message": "Worker is still starting up."}, 503)
    try:
        herder.check_health(_HEALTH_SECONDS)
    except ConnectError:
        message = "Worker was unable to handle this request and may be unable to handle other requests."
        return JsonResponse({"status": "unhealthy", "message": message}, 500)
    message = "Worker has completed startup and is ready to handle requests."
    return JsonResponse({"status": "healthy", "message": message})
