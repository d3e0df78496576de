"""The endpoint ``/metrics``: the metrics of all drivers and connectors for Prometheus. Kafka Connect has no such endpoint."""

from __future__ import annotations

import logging
import urllib.request
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from sluiceway.errors import DataError
from sluiceway.herder.connector_metrics import with_worker
from sluiceway.metrics.beans import CONNECT, OWN, Bean, decode_beans
from sluiceway.metrics.collector import distinct
from sluiceway.metrics.naming import Naming
from sluiceway.rest.guard import guard_of
from sluiceway.rest.requests import TheHerder

router = APIRouter()
log = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 2.0
_MOST_AT_ONCE = 16
_STATUSES = ((CONNECT, "connect-worker-metrics"), (CONNECT, "connector-metrics"), (OWN, "connector-metrics"))
_TASK = "connector-task-metrics"

_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


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


def driver_beans(urls: Sequence[str]) -> list[Bean]:
    """Return what these drivers and their tasks have measured. A driver that does not answer within 2 s is left out.

    What they derive from statuses is not among it, because the REST API knows the statuses of all.
    """
    urls = [url for url in urls if url.startswith("http://")]  # whoever can write statuses must not choose a file
    if not urls:
        return []
    with ThreadPoolExecutor(min(len(urls), _MOST_AT_ONCE), "driver-metrics") as pool:
        return [bean for beans in pool.map(_beans_of, urls) for bean in beans if not _is_status(bean)]


def _beans_of(url: str) -> Iterable[Bean]:
    try:
        with _opener.open(f"{url}/metrics/beans", timeout=_TIMEOUT_SECONDS) as response:
            return decode_beans(response.read())
    except (OSError, ValueError, DataError) as error:
        log.info("The driver at %s does not report its metrics: %s", url, error)
        return []


def _is_status(bean: Bean) -> bool:
    return (bean.domain, bean.type) in _STATUSES or (bean.type == _TASK and set(bean.values) == {"status"})
