"""Classifies PostgreSQL's errors by SQLSTATE. No I/O.

Source: https://www.postgresql.org/docs/current/errcodes-appendix.html.
"""

from __future__ import annotations

from sluiceway.connectors.jdbc.dialects.errors import ErrorKind, contains, kind_by_class

_STATES = {
    # Deadlock, serialization failure, lock timeout, canceled, too many connections, read-only after a failover.
    ErrorKind.AGAIN: ("40", "55P03", "55006", "57014", "53", "25006"),
    ErrorKind.UNREACHABLE: ("08", "57P"),
    ErrorKind.CHANGED: ("42P01", "42703", "0A000"),
    # Data exceptions, violated constraints, and one key twice in a statement by the rules of the key's collation.
    ErrorKind.RECORD: ("21", "22", "23", "44", "42804", "54"),
}
# Wrong name or password, missing database or privilege: another attempt does not help.
_REFUSED = ("28", "3D000", "42501")
# libpq gives no SQLSTATE for what happens before a session exists.
_REFUSED_TEXTS = ("authentication failed", "no password supplied", "no pg_hba.conf entry", "does not exist", "is not permitted")


def error_kind(error: BaseException) -> ErrorKind:
    """Return the kind of a driver's error."""
    state = getattr(error, "sqlstate", None)
    if not isinstance(state, str):
        return kind_by_class(error)
    return next((kind for kind, states in _STATES.items() if state.startswith(states)), ErrorKind.OTHER)


def refuses_login(error: BaseException) -> bool:
    """Return whether a failed connection is the server's refusal."""
    state = getattr(error, "sqlstate", None)
    return str(state).startswith(_REFUSED) if state else contains(str(error), _REFUSED_TEXTS)
