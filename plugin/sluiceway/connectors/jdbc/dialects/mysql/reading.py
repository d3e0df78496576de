"""Reads rows from MySQL and MariaDB with PyMySQL's unbuffered cursor. Runs on the executors."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Iterator
from typing import Any

from sluiceway.connectors.jdbc.dialects.base import Rows
from sluiceway.connectors.jdbc.dialects.sql import Statement
from sluiceway.errors import DataError


def prepare(connection: Any) -> None:
    """Set the decoders of dates and times of a new connection."""
    from pymysql.constants import FIELD_TYPE
    from pymysql.converters import decoders

    connection.decoders = {
        **decoders,
        FIELD_TYPE.DATETIME: _datetime,
        FIELD_TYPE.TIMESTAMP: _datetime,
        FIELD_TYPE.TIME: _time,
        FIELD_TYPE.DATE: _date,
        FIELD_TYPE.NEWDATE: _date,
    }


@contextlib.contextmanager
def rows(connection: Any, statement: Statement) -> Iterator[Rows]:
    """Execute a statement and give its rows. If left early, the connection is closed, because rows are still arriving."""
    from pymysql.cursors import SSCursor

    cursor = connection.cursor(SSCursor)
    try:
        cursor.execute(statement.sql, statement.parameters)
        yield cursor
    except BaseException:  # includes GeneratorExit
        cursor.connection = None  # prevents cursor and result from reading all remaining rows
        with contextlib.suppress(Exception):
            cursor._result.unbuffered_active = False  # PyMySQL has no public way
            connection._force_close()
        raise
    else:
        cursor.close()


def _datetime(text: str) -> dt.datetime | None:
    try:
        return dt.datetime.fromisoformat(text if len(text) in (19, 26) else text.ljust(26, "0"))
    except ValueError:
        return None  # MySQL's zero date stands for no date


def _date(text: str) -> dt.date | None:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        return None


def _time(text: str) -> dt.time:
    try:
        return dt.time.fromisoformat(text if len(text) in (8, 15) else text.ljust(15, "0"))
    except ValueError as error:
        raise DataError(f"{text} in a time column is not a time of day; cast it to char in a query.") from error
