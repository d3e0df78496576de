"""Connects to PostgreSQL, for queries and for replication."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sluiceway.connectors.jdbc.dialects.errors import ErrorKind
from sluiceway.connectors.jdbc.dialects.postgresql.errors import error_kind, refuses_login
from sluiceway.errors import ConnectError, MissingToolError, RetriableError
from sluiceway.installation import install_command

if TYPE_CHECKING:
    import psycopg
    from psycopg.pq.abc import PGconn

# All sessions write values in the same form.
_OPTIONS = (
    "-c datestyle=ISO -c intervalstyle=postgres -c timezone=UTC -c bytea_output=hex -c extra_float_digits=3 -c lc_monetary=C "
    "-c statement_timeout=0"
)

_INTERRUPTED = ("53400", "57014")
"""SQLSTATEs of statements that a limit of the server, or somebody, has ended."""

_TRANSIENT = (ErrorKind.AGAIN, ErrorKind.UNREACHABLE)

# A server that is gone without closing the connection, because of its network, is noticed within a minute.
_KEEPALIVES = {"keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3", "tcp_user_timeout": "60000"}


@dataclass(frozen=True, slots=True)
class Address:
    """The address and the credentials of a database. Its text has no password."""

    host: str
    port: int
    user: str
    password: str
    database: str
    extra: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.user}@{self.host}:{self.port}/{self.database}"

    def parameters(self, **more: str) -> dict[str, Any]:
        """Return libpq's parameters."""
        return {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "password": self.password,
            "dbname": self.database,
            "options": _OPTIONS,
            "client_encoding": "UTF8",
            "connect_timeout": "30",
            **_KEEPALIVES,
            **self.extra,
            **more,
        }


def driver() -> Any:
    """Return psycopg. Raises MissingToolError if it is not installed."""
    try:
        import psycopg
    except ImportError as error:
        raise MissingToolError(f"PostgreSQL needs the Python package psycopg. Run: {install_command('jdbc')}") from error
    return psycopg


def is_transient(error: BaseException) -> bool:
    """Tell whether what failed may succeed later: after lost connections, deadlocks, and waits that took too long.

    A login that the server refuses, and a statement that it has understood, fail again.
    """
    if isinstance(error, RetriableError):
        return True
    psycopg = driver()
    if not isinstance(error, psycopg.Error) or (error.sqlstate is None and refuses_login(error)):
        return False
    return error_kind(error) in _TRANSIENT


def is_interrupted(error: BaseException) -> bool:
    """Tell whether somebody or a limit of the server has ended a statement, which may be too slow or too large for ever."""
    return getattr(error, "sqlstate", None) in _INTERRUPTED


def connect(address: Address, *, autocommit: bool = True) -> psycopg.Connection[tuple[Any, ...]]:
    """Open a session for queries, without prepared statements. Raises psycopg's errors."""
    found: psycopg.Connection[tuple[Any, ...]] = driver().connect(
        **address.parameters(application_name="Debezium General"), autocommit=autocommit, prepare_threshold=None
    )
    return found


def connect_replication(address: Address) -> PGconn:
    """Open a session of the replication protocol. Raises RetriableError, or ConnectError if the server refuses the login."""
    driver()
    from psycopg import conninfo, pq

    text = conninfo.make_conninfo(**address.parameters(replication="database", application_name="Debezium Streaming"))
    connection = pq.PGconn.connect(text.encode())
    if connection.status != pq.ConnStatus.OK:
        message = connection.error_message.decode("utf-8", "replace").strip()
        connection.finish()
        refused = refuses_login(ConnectError(message))
        raise (ConnectError if refused else RetriableError)(f"Cannot open a replication connection to {address}: {message}")
    return connection


def execute_replication(connection: PGconn, command: str) -> list[list[str | None]]:
    """Execute a command of the replication protocol and return its rows. Raises ConnectError."""
    from psycopg import pq

    result = connection.exec_(command.encode())
    if result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK, pq.ExecStatus.COPY_BOTH):
        raise ConnectError(f"{command}: {result.error_message.decode('utf-8', 'replace').strip()}")
    rows: list[list[str | None]] = []
    for row in range(result.ntuples):
        cells = [result.get_value(row, column) for column in range(result.nfields)]
        rows.append([None if cell is None else cell.decode() for cell in cells])
    return rows


def lsn_number(text: str) -> int:
    """Return a log sequence number of the form ``16/B374D848``."""
    high, _, low = text.partition("/")
    return int(high, 16) << 32 | int(low, 16)


def lsn_text(lsn: int) -> str:
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def quoted(*names: str) -> str:
    """Return a qualified name as an SQL identifier."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


def current_lsn(connection: psycopg.Connection[Any]) -> int:
    """Return the end of the log."""
    row = connection.execute("select (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint").fetchone()
    return int(row[0]) if row is not None else 0
