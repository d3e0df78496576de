"""What a driver's error means for a source task: try again, or give up. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluiceway.connectors.jdbc.connection import reason_of
from sluiceway.errors import ConnectError, RetriableError

if TYPE_CHECKING:
    from sluiceway.connectors.jdbc.connection import Database

# MySQL calls these operational errors, but no second try mends them: rights, and columns that do not exist.
_LASTING_NUMBERS = frozenset({1044, 1045, 1054, 1064, 1142, 1143, 1227})
_LASTING_TEXTS = ("no such column", "no such table", "syntax error")


def explained(error: BaseException, database: Database, place: str) -> BaseException:
    """Return an error of ours for an error of the driver's; any other as it is."""
    import sqlalchemy.exc

    if isinstance(error, sqlalchemy.exc.DBAPIError) and error.orig is not None:
        error = error.orig
    driver = database.engine.dialect.loaded_dbapi
    if driver is None or not isinstance(error, driver.Error):
        return error
    reason = reason_of(error)
    number = error.args[0] if error.args and isinstance(error.args[0], int) else None
    lasting = number in _LASTING_NUMBERS or any(text in reason for text in _LASTING_TEXTS)
    if isinstance(error, (driver.OperationalError, driver.InterfaceError)) and not lasting:
        return RetriableError(f"Reading {place} of {database.url.place} was interrupted: {reason}.")
    return ConnectError(f"{place} of {database.url.place} cannot be read: {reason}.")
