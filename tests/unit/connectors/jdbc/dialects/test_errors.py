"""Classifying errors of drivers."""

from __future__ import annotations

import sqlite3

import pytest

from sluiceway.connectors.jdbc.dialects import dialect_of
from sluiceway.connectors.jdbc.dialects.errors import ErrorKind
from sluiceway.errors import ConnectError, DataError, RetriableError


class PgError(Exception):
    def __init__(self, sqlstate: str | None) -> None:
        super().__init__("from PostgreSQL")
        self.sqlstate = sqlstate


class DatabaseError(Exception):
    """As PEP 249 has it."""


class OperationalError(DatabaseError): ...


class IntegrityError(DatabaseError): ...


def mysql(error: Exception, sqlstate: str) -> Exception:
    """Return an error as newer MySQL drivers raise it."""
    error.sqlstate = sqlstate  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize(
    ("dialect", "error", "kind"),
    [
        ("postgresql", PgError("40P01"), ErrorKind.AGAIN),
        ("postgresql", PgError("40001"), ErrorKind.AGAIN),
        ("postgresql", PgError("25006"), ErrorKind.AGAIN),
        ("postgresql", PgError("57P01"), ErrorKind.UNREACHABLE),
        ("postgresql", PgError("08006"), ErrorKind.UNREACHABLE),
        ("postgresql", PgError("23505"), ErrorKind.RECORD),
        ("postgresql", PgError("22P02"), ErrorKind.RECORD),
        ("postgresql", PgError("42703"), ErrorKind.CHANGED),
        ("postgresql", PgError("42501"), ErrorKind.OTHER),
        ("mysql", OperationalError("connection refused"), ErrorKind.UNREACHABLE),
        ("postgresql", OperationalError("connection refused"), ErrorKind.UNREACHABLE),
        ("postgresql", ConnectionResetError(104, "reset"), ErrorKind.UNREACHABLE),
        ("sqlite", DataError("bad"), ErrorKind.RECORD),
        ("sqlserver", OperationalError(1205, b"deadlock"), ErrorKind.AGAIN),
        ("sqlserver", OperationalError(20003, b"timed out"), ErrorKind.UNREACHABLE),
        ("sqlserver", OperationalError(208, b"Invalid object name"), ErrorKind.CHANGED),
        ("sqlserver", IntegrityError(2627, b"duplicate key"), ErrorKind.RECORD),
        ("mysql", OperationalError(1213, "Deadlock"), ErrorKind.AGAIN),
        ("mysql", OperationalError(2013, "Lost"), ErrorKind.UNREACHABLE),
        ("mysql", OperationalError(1292, "Incorrect"), ErrorKind.RECORD),
        ("mysql", IntegrityError(1062, "Duplicate"), ErrorKind.RECORD),
        ("mysql", mysql(OperationalError(1205, "Lock wait timeout"), "HY000"), ErrorKind.AGAIN),
        ("mysql", mysql(OperationalError(1366, "Incorrect"), "22007"), ErrorKind.RECORD),
        ("mysql", mysql(OperationalError(1364, "No default"), "HY000"), ErrorKind.RECORD),
        ("mysql", mysql(OperationalError(1146, "No such table"), "42S02"), ErrorKind.CHANGED),
        ("mysql", OperationalError(1142, "denied"), ErrorKind.DENIED),
        ("mysql", OperationalError(1305, "FUNCTION x does not exist"), ErrorKind.DENIED),
        ("mysql", OperationalError(1242, "Subquery returns more than 1 row"), ErrorKind.DENIED),
        ("mysql", OperationalError(1038, "Out of sort memory, consider increasing server sort buffer size"), ErrorKind.DENIED),
        ("mysql", OperationalError(1047, "WSREP has not yet prepared node for application use"), ErrorKind.AGAIN),
        ("mysql", OperationalError(2999, "a client library's error"), ErrorKind.UNREACHABLE),
        ("sqlserver", OperationalError(209, b"Ambiguous column name"), ErrorKind.DENIED),
        ("sqlserver", OperationalError(20047, b"DBPROCESS is dead"), ErrorKind.UNREACHABLE),
        ("sqlite", sqlite3.OperationalError("ambiguous column name: id"), ErrorKind.DENIED),
        ("sqlite", sqlite3.OperationalError("disk I/O error"), ErrorKind.AGAIN),
        ("sqlite", sqlite3.OperationalError("database is locked"), ErrorKind.AGAIN),
        ("sqlite", sqlite3.IntegrityError("UNIQUE"), ErrorKind.RECORD),
        ("sqlite", sqlite3.OperationalError("no such table: x"), ErrorKind.CHANGED),
        ("mysql", ConnectionResetError(), ErrorKind.UNREACHABLE),
        ("mysql", RetriableError("away"), ErrorKind.UNREACHABLE),
        ("mysql", DataError("bad"), ErrorKind.RECORD),
        ("mysql", UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogate"), ErrorKind.RECORD),
        ("mysql", ConnectError("no"), ErrorKind.OTHER),
        ("mysql", MemoryError(), ErrorKind.OTHER),
    ],
)
def test_errors_are_classified_by_dialect(dialect: str, error: Exception, kind: ErrorKind) -> None:
    assert dialect_of(dialect).error_kind(error) is kind
