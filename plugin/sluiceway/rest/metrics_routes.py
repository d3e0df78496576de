"""The endpoint ``/metrics``: the metrics of all drivers and connectors for Prometheus. Kafka Connect has no such endpoint."""
# No ``from __future__ import annotations``: FastAPI reads the parameters' types when the module is loaded.

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from sluiceway.herder.connector_metrics import with_worker
from sluiceway.metrics.beans import Bean
from sluiceway.metrics.collector import distinct
from sluiceway.metrics.naming import Naming
from sluiceway.rest.driver_metrics import driver_beans
from sluiceway.rest.guard import guard_of
from sluiceway.rest.requests import TheHerder

router = APIRouter()


@router.get("/metrics", summary="Get the metrics of all connectors and tasks as Prometheus or OpenMetrics text")
def metrics(request: Request, herder: TheHerder, names: str = "strimzi", connector: str | None = None) -> Response:
    from sluiceway.metrics.exposition import render  # the first request loads prometheus-client

    naming = Naming.named(names)
    if naming is None:
        raise HTTPException(400, "names must be strimzi or jmx")
    overview = herder.overview()
    beans: list[Bean] = [*request.app.state.local_metrics(), *driver_beans(herder.metrics_urls())]
    configs = overview.configs()
    visible = guard_of(request).visible(configs)
    if len(visible) < len(configs):  # a client's or process's metrics do not say whose they are
        shown = set(visible)
        beans = [bean for bean in beans if bean.tags.get("connector") in shown]
    if connector is not None:
        beans = [bean for bean in beans if bean.tags.get("connector") == connector]
        visible = [name for name in visible if name == connector]
    body, content_type = render(with_worker(distinct(beans), overview, visible), request.headers.get("accept", ""), naming)
    return Response(body, headers={"content-type": content_type})
