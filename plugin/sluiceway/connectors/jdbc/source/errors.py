"""Turns a driver's error into an error of a source task: retriable, or fatal. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluiceway.connectors.jdbc.connection import reason_of
from sluiceway.connectors.jdbc.dialects.errors import ErrorKind
from sluiceway.errors import ConnectError, RetriableError

if TYPE_CHECKING:
    from sluiceway.connectors.jdbc.connection import Database


def as_connect_error(error: BaseException, database: Database, name: str) -> BaseException:
    """Return a ConnectError for a driver's error, and any other error as it is; ``name`` is that of the table or query."""
    import sqlalchemy.exc

    if isinstance(error, sqlalchemy.exc.DBAPIError) and error.orig is not None:
        error = error.orig
    driver = database.engine.dialect.loaded_dbapi
    if driver is None or not isinstance(error, driver.Error):
        return error
    lasting = database.dialect.error_kind(error) in (ErrorKind.CHANGED, ErrorKind.DENIED, ErrorKind.RECORD)
    if isinstance(error, (driver.OperationalError, driver.InterfaceError)) and not lasting:
        return RetriableError(f"Reading {name} of {database.url.location} was interrupted: {reason_of(error)}.")
    return ConnectError(f"{name} of {database.url.location} cannot be read: {reason_of(error)}.")
