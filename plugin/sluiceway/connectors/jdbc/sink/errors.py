"""What an error of a database's driver means for the batch that met it. Pure: errors are told by their numbers and names."""

from __future__ import annotations

import enum
import sqlite3

from sluiceway.errors import ConnectError, DataError, RetriableError


class Kind(enum.Enum):
    """What is to be done."""

    AGAIN = "the database gave up the transaction, and takes it later"
    UNREACHABLE = "the connection is lost"
    CHANGED = "a table is not as it was"
    RECORD = "a record cannot be written"
    FATAL = "nothing can be written"


# Deadlock, serialization failure, lock time-out, cancelled, too many connections, read-only after a fail-over.
_PG_AGAIN = ("40", "55P03", "55006", "57014", "53", "25006")
_PG_UNREACHABLE = ("08", "57P")
_PG_CHANGED = ("42P01", "42703", "0A000")
# Data exceptions, broken constraints, and a key that comes twice after the database's own rules.
_PG_RECORD = ("21", "22", "23", "44", "42804", "54")

_MYSQL_AGAIN = frozenset({1021, 1040, 1041, 1180, 1203, 1205, 1213, 1226, 1290, 1317, 1614, 1637, 1836, 1969, 3024, 3572})
_MYSQL_UNREACHABLE = frozenset(
    {0, 1053, 1077, 1079, 1152, 1153, 1158, 1159, 1160, 1161, 1184, 1927, 2002, 2003, 2006, 2013, 2055, 4031}
)
_MYSQL_CHANGED = frozenset({1054, 1146, 1136})
_MYSQL_RECORD = frozenset(
    {
        1048,
        1062,
        1171,
        1216,
        1217,
        1230,
        1263,
        1264,
        1265,
        1292,
        1364,
        1365,
        1366,
        1367,
        1369,
        1406,
        1411,
        1416,
        1441,
        1451,
        1452,
        1525,
        1557,
        1586,
        1644,
        1690,
        1859,
        1906,
        3140,
        3819,
        3906,
        4025,
        4078,
    }
)
_LOCKED = ("database is locked", "table is locked", "database schema is locked", "is busy")


def kind_of(error: BaseException) -> Kind:
    """Return what an error means; for one that is not a driver's, what its class says."""
    error = getattr(error, "orig", None) or error  # SQLAlchemy's
    if isinstance(error, RetriableError):
        return Kind.UNREACHABLE
    if isinstance(error, ConnectError):
        return Kind.RECORD if isinstance(error, DataError) else Kind.FATAL
    if isinstance(error, sqlite3.Error):
        return _sqlite(error)
    numbered = bool(error.args) and isinstance(error.args[0], int)  # MySQL's, whose SQLSTATE says too little
    state = getattr(error, "sqlstate", None)
    if isinstance(state, str) and not numbered:
        return _of_state(state)
    names = {kind.__name__ for kind in type(error).__mro__}
    if "DatabaseError" in names or "InterfaceError" in names:
        return _of_number(error, names)
    if isinstance(error, OSError):
        return Kind.UNREACHABLE
    return Kind.RECORD if isinstance(error, (ValueError, TypeError, ArithmeticError)) else Kind.FATAL


def _of_state(state: str) -> Kind:
    for kind, states in (
        (Kind.AGAIN, _PG_AGAIN),
        (Kind.UNREACHABLE, _PG_UNREACHABLE),
        (Kind.CHANGED, _PG_CHANGED),
        (Kind.RECORD, _PG_RECORD),
    ):
        if state.startswith(states):
            return kind
    return Kind.FATAL


def _of_number(error: BaseException, names: set[str]) -> Kind:
    number = error.args[0] if error.args and isinstance(error.args[0], int) else None
    if number is not None:
        for kind, numbers in (
            (Kind.AGAIN, _MYSQL_AGAIN),
            (Kind.UNREACHABLE, _MYSQL_UNREACHABLE),
            (Kind.CHANGED, _MYSQL_CHANGED),
            (Kind.RECORD, _MYSQL_RECORD),
        ):
            if number in numbers:
                return kind
    if names & {"DataError", "IntegrityError"}:
        return Kind.RECORD
    if number is None and names & {"OperationalError", "InterfaceError"}:
        return Kind.UNREACHABLE
    # A value that the driver does not know how to write.
    return Kind.RECORD if number is None and names & {"ProgrammingError", "NotSupportedError"} else Kind.FATAL


def _sqlite(error: sqlite3.Error) -> Kind:
    text = str(error)
    if any(part in text for part in _LOCKED):
        return Kind.AGAIN
    if "no such table" in text or "no such column" in text or "has no column" in text:
        return Kind.CHANGED
    if isinstance(error, sqlite3.OperationalError) and ("disk I/O" in text or "unable to open" in text or "is full" in text):
        return Kind.AGAIN
    if isinstance(error, (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.InterfaceError)):
        return Kind.RECORD
    return Kind.RECORD if "binding parameter" in text or "too big" in text else Kind.FATAL
