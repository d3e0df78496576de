"""Tells whether transactions have ended in a PostgreSQL server. Runs in Airflow's triggerer."""

from __future__ import annotations

import contextlib
from typing import Any

from sluiceway.connectors.cdc.postgres.connection import Address, connect, driver, is_transient
from sluiceway.errors import ConnectError, RetriableError

# The text lists the transactions that are open and others that have ended since they began. It changes when one that has written
# ends, and at nothing else. The log's position also moves at checkpoints, at the creation of a slot, and when a reader cleans up
# pages, which a run does itself.
_ENDED = "select txid_current_snapshot()::text"


class EndedTransactions:
    """The transactions of a server that have written, as far as they have ended: those of all its databases."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._connection: Any = None

    def mark(self) -> str:
        """Return the state of the transactions. Raises RetriableError, and ConnectError if the server refuses the login."""
        psycopg = driver()
        try:
            if self._connection is None:
                self._connection = connect(self._address)
            row = self._connection.execute(_ENDED).fetchone()
        except psycopg.Error as error:
            self.close()
            kind = RetriableError if is_transient(error) else ConnectError
            text = " ".join(str(error).split())
            raise kind(f"PostgreSQL at {self._address} does not tell whether its log has changed: {text}") from None
        return str(row[0])

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):  # the connection may be lost
                connection.close()
