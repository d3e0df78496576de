"""Which errors of PostgreSQL are tried again."""

from __future__ import annotations

import psycopg
import pytest

from sluiceway.connectors.cdc.postgres.connection import is_interrupted, is_transient
from sluiceway.connectors.cdc.postgres.receiver import LogConnectionError
from sluiceway.errors import ConnectError

_TRANSIENT = ("08000", "08006", "40001", "40P01", "53300", "55P03", "57014", "57P01", "57P02", "57P03")
_PERMANENT = ("0A000", "22P02", "28000", "28P01", "3D000", "42501", "42601", "42703", "42883", "42P01", "55000", "58P01", "XX000")


@pytest.mark.parametrize("state", _TRANSIENT)
def test_a_state_that_heals_is_tried_again(state: str) -> None:
    assert is_transient(psycopg.errors.lookup(state)("m"))


@pytest.mark.parametrize("state", _PERMANENT)
def test_a_state_that_does_not_heal_is_not_tried_again(state: str) -> None:
    assert not is_transient(psycopg.errors.lookup(state)("m"))


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (psycopg.OperationalError("server closed the connection unexpectedly"), True),
        (psycopg.OperationalError("connection refused"), True),
        (psycopg.InterfaceError("the connection is closed"), True),
        (LogConnectionError("lost"), True),
        (psycopg.OperationalError('FATAL:  password authentication failed for user "u"'), False),
        (psycopg.OperationalError('FATAL:  database "d" does not exist'), False),
        (psycopg.OperationalError('FATAL:  no pg_hba.conf entry for host "h"'), False),
        (ConnectError("c"), False),
        (TypeError("t"), False),
    ],
    ids=str,
)
def test_errors_without_a_state_are_told_apart_by_their_text(error: Exception, transient: bool) -> None:
    assert is_transient(error) == transient


@pytest.mark.parametrize(("state", "interrupted"), [("57014", True), ("53400", True), ("53300", False), ("40001", False)])
def test_a_statement_that_was_ended_is_told_apart(state: str, interrupted: bool) -> None:
    """A request for a snapshot is not tried again for ever: it may be too slow."""
    assert is_interrupted(psycopg.errors.lookup(state)("m")) is interrupted
