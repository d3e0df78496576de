"""A REST catalog whose requests end. Runs on executors, and on the API server to validate and to change offsets."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyiceberg.catalog.rest import RestCatalog

if TYPE_CHECKING:
    from requests import Session

_TIMEOUTS = {"rest.client.connection-timeout-ms": "10000", "rest.client.socket-timeout-ms": "60000"}


class TimedRestCatalog(RestCatalog):
    """PyIceberg's REST catalog with the timeouts of Iceberg's Java client, in milliseconds.

    PyIceberg waits for an answer without limit, so a task would hang when its catalog's host is cut off. A request that times
    out raises an OSError, as one that is refused does.
    """

    def _create_session(self) -> Session:
        session = super()._create_session()
        connect, read = (float(self.properties.get(key, usual)) / 1000 for key, usual in _TIMEOUTS.items())
        session.request = partial(session.request, timeout=(connect, read))  # type: ignore[method-assign]  # all verbs call it
        return session
