"""Collects the metrics of all drivers for the REST API."""

from __future__ import annotations

import logging
import urllib.request
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from sluiceway.errors import DataError
from sluiceway.metrics.beans import CONNECT, OWN, Bean, decode_beans

log = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 2.0
_MOST_AT_ONCE = 16
_STATUSES = ((CONNECT, "connect-worker-metrics"), (CONNECT, "connector-metrics"), (OWN, "connector-metrics"))
_TASK = "connector-task-metrics"

_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


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
