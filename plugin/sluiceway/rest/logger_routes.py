"""The endpoints below ``/admin/loggers`` (Connect's LoggingResource)."""
# No ``from __future__ import annotations``: FastAPI reads the parameters' types when the module is loaded.

import functools
import logging

from fastapi import APIRouter, Depends
from fastapi.responses import Response

from sluiceway.rest import bodies
from sluiceway.rest.bodies import JsonResponse
from sluiceway.rest.conventions import json_only, readable
from sluiceway.rest.requests import Body, TheHerder, TheLoggers, json_body

log = logging.getLogger(__name__)

router = APIRouter(dependencies=[Depends(json_only)])
get = functools.partial(readable, router)


@get("/admin/loggers", summary="List the log levels of this process")
def list_loggers(loggers: TheLoggers) -> Response:
    return JsonResponse({name: bodies.logger_json(level) for name, level in loggers.all().items()})


@get("/admin/loggers/{logger:segment}", summary="Get the level of a logger")
def get_logger(logger: str, loggers: TheLoggers) -> Response:
    return JsonResponse(bodies.logger_json(loggers.get(logger)))


@router.put(
    "/admin/loggers/{logger:segment}",
    summary="Set a logger's level in this process, or in all with scope=cluster; connector.NAME is a connector's driver",
    openapi_extra=json_body({"level": "DEBUG"}),
)
def set_level(logger: str, body: Body, loggers: TheLoggers, herder: TheHerder, scope: str = "worker") -> Response:
    level = bodies.read_level(body)
    if scope.lower() == "cluster":
        herder.set_cluster_log_level(logger, level)
        return Response(status_code=204)
    if scope.lower() != "worker":
        log.warning("Unknown scope %.100r for a log level; using worker. Valid values are worker and cluster", scope)
    return JsonResponse(loggers.set(logger, level))
