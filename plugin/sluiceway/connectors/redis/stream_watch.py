"""Tells whether streams of Redis have entries that they did not have before. Runs in Airflow's triggerer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluiceway.connectors.redis.connection import opened, redis_errors
from sluiceway.connectors.redis.streams import StreamOptions, last_entry, stream_info

if TYPE_CHECKING:
    from redis import Redis


class LastEntries:
    """The ids of the newest entries that streams ever had. Reading or trimming a stream does not change them."""

    def __init__(self, options: StreamOptions) -> None:
        self._options = options
        self._client: Redis | None = None

    def mark(self) -> str:
        """Return the ids. Raises UnreachableError, and ConnectError for a refused login."""
        if self._client is None:
            self._client = opened(self._options.server)
        with redis_errors(self._options.server):
            found = {name: stream_info(self._client, name) for name in self._options.streams}
        return " ".join("-" if about is None else str(last_entry(about)) for about in found.values())

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()
