"""Tells whether the binary log of a MySQL or MariaDB server has moved on. Runs in Airflow's triggerer."""

from __future__ import annotations

import dataclasses

from sluiceway.connectors.cdc.mysql.connection import ConnectionSettings, Server, in_words, is_transient
from sluiceway.errors import ConnectError, RetriableError

_READ_SECONDS = 30.0


class LogEnd:
    """The end of a server's binary log. Only what is written moves it, and a restart of the server, which begins a new file."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = dataclasses.replace(settings, read_timeout=_READ_SECONDS)
        self._server: Server | None = None

    def mark(self) -> str:
        """Return the position. Raises RetriableError, and ConnectError if the server refuses the login or has no log."""
        try:
            if self._server is None:
                self._server = Server(self._settings)
            found = self._server.position()
        except ConnectError:
            self.close()
            raise
        except Exception as error:
            self.close()
            if is_transient(error):
                host = f"{self._settings.host}:{self._settings.port}"
                raise RetriableError(f"The connection to {host} was lost while its log was watched: {error}") from error
            raise in_words(error) from error
        return f"{found.file}:{found.position} {found.gtids or ''}"

    def close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
