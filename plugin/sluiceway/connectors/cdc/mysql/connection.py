"""Connects to a server, and asks it for its log positions, databases and tables."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.binlog.charsets import Charsets
from sluiceway.connectors.cdc.mysql.binlog.stream import ServerError, StartPosition
from sluiceway.connectors.cdc.mysql.log_state import LogState
from sluiceway.connectors.cdc.mysql.result_rows import result_rows
from sluiceway.connectors.jdbc.dialects.errors import ErrorKind
from sluiceway.connectors.jdbc.dialects.mysql.errors import code_kind, error_kind, refuses_login
from sluiceway.errors import ConnectError, MissingToolError, RetriableError
from sluiceway.installation import install_command

if TYPE_CHECKING:
    from pymysql.connections import Connection

    from sluiceway.connectors.cdc.column_rows import Rows

BUILT_IN_DATABASES = frozenset({"mysql", "performance_schema", "information_schema", "sys"})

_NO_SUCH_VARIABLE, _SYNTAX_ERROR = 1193, 1064
_FETCHED_BYTES = 4 << 20
SORTED_BYTES = 65_536
"""The bytes by which our sessions sort a value. By default, servers ignore all behind 1024, and sort such values at random."""
_SORT_BUFFER_BYTES = 16 << 20
"""MariaDB refuses to sort unless its buffer has room for 15 rows: here, of 16 columns of ``SORTED_BYTES``."""
_OTHER_VALUES = frozenset({"NO_ZERO_DATE", "NO_ZERO_IN_DATE", "PAD_CHAR_TO_FULL_LENGTH", "EMPTY_STRING_IS_NULL"})
"""SQL modes in which queries refuse or do not find values that tables have, or return others than the log has."""
_ANY_DATE = "ALLOW_INVALID_DATES"
"""The SQL mode in which a query may compare with 30 February, which a table may have."""

_INTERRUPTED_CODES = frozenset({1317, 1969, 3024})
"""Error codes of interrupted statements, and of statements that took too long."""

_TRANSIENT = (ErrorKind.AGAIN, ErrorKind.UNREACHABLE)


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """The address and the credentials of the server. ``timeout``, for connecting, and ``read_timeout`` are in seconds."""

    host: str
    port: int
    user: str
    password: str
    ssl_mode: str = "preferred"
    timeout: float = 30.0
    read_timeout: float = 600.0
    statements: tuple[str, ...] = ()

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> ConnectionSettings:
        """Return the settings of a parsed config."""
        password = config["database.password"]
        statements = str(config["database.initial.statements"] or "")
        return cls(
            host=str(config["database.hostname"]),
            port=int(config["database.port"]),
            user=str(config["database.user"] or ""),
            password="" if password is None else str(getattr(password, "value", password)),
            ssl_mode=str(config["database.ssl.mode"]).strip().lower(),
            timeout=int(config["connect.timeout.ms"]) / 1000,
            statements=tuple(part.strip() for part in statements.replace(";;", "\0").split(";") if part.strip()),
        )


class Server:
    """A connection for queries, whose results are text: nothing is converted, so that values are exactly the server's."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = settings
        self.connection = connect(settings)
        (version,) = self.row("SELECT VERSION()")
        self.version = str(version)
        self.mariadb = "mariadb" in self.version.lower()

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self.connection.close()

    def is_open(self) -> bool:
        """Ask the server whether the connection still exists."""
        try:
            self.connection.ping(reconnect=False)
        except Exception:  # noqa: BLE001 (the driver's errors, and those of a closed socket)
            return False
        return True

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def execute(self, sql: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql, tuple(parameters) or None)
            return list(cursor.fetchall())

    def row(self, sql: str) -> tuple[Any, ...]:
        """Return the first row of a result, or raise ConnectError if there is none."""
        found = self.rows(sql)
        if not found:
            raise ConnectError(f"The statement '{sql}' returned no rows. Check the user's privileges.")
        return found[0]

    @cached_property
    def lower_case(self) -> bool:
        """Whether names of databases and tables are in lower case in the log, whatever statements say."""
        return self.variable("lower_case_table_names") != "0"

    def _named(self, text: object) -> str:
        """Return the name of a database or table as the log has it."""
        return str(text).lower() if self.lower_case else str(text)

    def sibling(self) -> Server:
        """Return another connection to the same server."""
        return Server(self._settings)

    def shut(self) -> None:
        """End a query that another thread executes, by closing the socket."""
        sock = getattr(self.connection, "_sock", None)
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def stream(self, sql: str, size: int, *, columns: bool) -> Iterator[tuple[tuple[str, ...], Rows]]:
        """Yield the column names with at most ``size`` rows, and not many more than 4 MiB, at a time. See ``result_rows``."""
        from pymysql.cursors import SSCursor

        with self.connection.cursor(SSCursor) as cursor:
            cursor.execute(sql)
            names = tuple(column[0] for column in cursor.description or ())
            reading: Any = cursor  # its result is not part of PyMySQL's types
            for rows in result_rows(reading._result, size, _FETCHED_BYTES, columns=columns):
                yield names, rows

    # -- positions

    def position(self) -> StartPosition:
        """Return the end of the binary log."""
        found = self._first_of("SHOW MASTER STATUS", "SHOW BINARY LOG STATUS")
        gtids = self.variable("gtid_binlog_pos") if self.mariadb else str(found[4] or "").replace("\n", "")
        return StartPosition(str(found[0]), int(found[1]), gtids or None)

    def _first_of(self, *statements: str) -> tuple[Any, ...]:
        """Execute the first statement that the server's version knows."""
        import pymysql

        for statement in statements:
            try:
                found = self.rows(statement)
            except pymysql.err.ProgrammingError as error:
                if error.args[0] != _SYNTAX_ERROR:
                    raise
                continue
            if found:
                return found[0]
        raise ConnectError(
            "The server has no binary log, or the user may not see its position. Start the server with log_bin, and grant the "
            "user REPLICATION CLIENT (MariaDB: BINLOG MONITOR)."
        )

    def snapshot_position(self) -> StartPosition:
        """Start a consistent snapshot in this connection and return its exact position in the log, without any lock."""
        self.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        if not self.mariadb:
            return self._checked_snapshot_position()
        self.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        status = {str(name).lower(): value for name, value in self.rows("SHOW STATUS LIKE 'binlog\\_snapshot\\_%'")}
        file, position = str(status.get("binlog_snapshot_file", "")), int(status.get("binlog_snapshot_position") or 0)
        if not file:
            return self.position()  # raises if there is no binary log
        (gtids,) = self.row(f"SELECT BINLOG_GTID_POS('{file}', {position})")
        return StartPosition(file, position, str(gtids) if gtids else None)

    def _checked_snapshot_position(self) -> StartPosition:
        """Compare MySQL's position before and after the start of the snapshot, which is exact if it did not move."""
        for _ in range(20):
            before = self.position()
            self.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            if self.position() == before:
                return before
            self.execute("ROLLBACK")
        self.execute("FLUSH TABLES WITH READ LOCK")  # the server is too busy for an exact position otherwise
        try:
            position = self.position()
            self.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        finally:
            self.execute("UNLOCK TABLES")
        return position

    def log_files(self) -> list[str]:
        """Return the names of the binary log's files, oldest first."""
        return [name for name, _ in self._files()]

    def _files(self) -> list[tuple[str, int]]:
        return [(str(row[0]), int(row[1])) for row in self.rows("SHOW BINARY LOGS")]

    def log_state(self) -> LogState:
        """Return what the binary log has now."""
        files = self._files()
        executed = purged = ""
        if self.mariadb and files:
            executed = self.variable("gtid_binlog_pos")
            (found,) = self.row(f"SELECT BINLOG_GTID_POS('{files[0][0]}', 4)")
            purged = str(found or "")
        elif files:
            executed, purged = self.variable("global.gtid_executed"), self.variable("global.gtid_purged")
        return LogState(tuple(files), executed, purged, self.mariadb, self._keeps())

    def _keeps(self) -> int:
        """Return the seconds after which the server purges its log, or 0."""
        import pymysql

        for name, seconds in (("binlog_expire_logs_seconds", 1), ("expire_logs_days", 86_400)):
            try:
                return int(float(self.variable(name) or 0) * seconds)
            except pymysql.err.MySQLError:  # the server's version has another one
                continue
        return 0

    # -- tables

    def databases(self) -> list[str]:
        return sorted(self._named(row[0]) for row in self.rows("SHOW DATABASES"))

    def tables(self, database: str) -> list[TableId]:
        """Return the base tables of a database by name."""
        kinds = ("BASE TABLE", "SYSTEM VERSIONED")
        rows = self.rows(f"SHOW FULL TABLES IN {quoted(database)}")
        return sorted(TableId(database, self._named(row[0])) for row in rows if str(row[1]) in kinds)

    def create_statement(self, table: TableId) -> str | None:
        """Return the CREATE TABLE statement of a table, or None if the table does not exist."""
        import pymysql

        try:
            return str(self.row(f"SHOW CREATE TABLE {quoted(table.schema)}.{quoted(table.table)}")[1])
        except pymysql.err.ProgrammingError:
            return None

    def database_locales(self) -> dict[str, tuple[str, str]]:
        """Return charset and collation of each database."""
        rows = self.rows(
            "SELECT schema_name, default_character_set_name, default_collation_name FROM information_schema.schemata"
        )
        return {self._named(name): (str(charset), str(collation)) for name, charset, collation in rows}

    def row_counts(self) -> dict[TableId, int]:
        """Return the server's estimates of the rows of all tables."""
        rows = self.rows("SELECT table_schema, table_name, table_rows FROM information_schema.tables")
        return {TableId(self._named(schema), self._named(table)): int(count or 0) for schema, table, count in rows}

    def charset_statement(self) -> str:
        """Return the statement that sets the server's default charset."""
        charset, collation = self.row("SELECT @@character_set_server, @@collation_server")
        return f"SET character_set_server={charset}, collation_server={collation}"

    def charsets(self) -> Charsets:
        """Return the charsets of this server's collations."""
        import pymysql

        sources = ("COLLATION_CHARACTER_SET_APPLICABILITY", "COLLATIONS")  # only MariaDB's first one has ids
        for source in sources:
            try:
                rows = self.rows(f"SELECT id, character_set_name FROM information_schema.{source} WHERE id IS NOT NULL")  # noqa: S608
            except pymysql.err.MySQLError:
                continue
            return Charsets({int(id_): str(name) for id_, name in rows if name})
        return Charsets()

    def variable(self, name: str) -> str:
        (value,) = self.row(f"SELECT @@{name}")
        return "" if value is None else str(value)


def is_transient(error: BaseException) -> bool:
    """Tell whether what failed may succeed later: after lost connections, deadlocks, and waits that took too long.

    A statement that the server has understood and refused fails again.
    """
    import pymysql

    return isinstance(error, pymysql.err.MySQLError) and error_kind(error) in _TRANSIENT


def in_words(error: Exception) -> Exception:
    """Return an error of the driver as one with the server's words; other errors as they are."""
    import pymysql

    if not isinstance(error, pymysql.err.MySQLError):
        return error
    code, *message = error.args or ("",)
    return ConnectError(f"The server refuses a statement: {': '.join(map(str, message))} (error {code}).")


def dump_error(error: ServerError) -> ConnectError:
    """Return the error of a dump that the server refused or aborted: one that is retried if it may go on later."""
    text = f"The server aborted the dump of its binary log: {error} (error {error.code})."
    if code_kind(error.code) in _TRANSIENT:
        return RetriableError(text)
    return ConnectError(f"{text} The user needs the privilege REPLICATION SLAVE.")


def is_interrupted(error: BaseException) -> bool:
    """Tell whether somebody or the server's limit has ended a statement, which may be too slow for ever."""
    import pymysql

    return isinstance(error, pymysql.err.MySQLError) and bool(error.args) and error.args[0] in _INTERRUPTED_CODES


def quoted(name: str) -> str:
    """Return an identifier in backticks."""
    return "`" + name.replace("`", "``") + "`"


def connect(settings: ConnectionSettings) -> Connection[Any]:
    """Open a connection in UTC without conversions.

    Raises:
        RetriableError: the server cannot be reached.
        ConnectError: it refuses the login.
        MissingToolError: PyMySQL is not installed.
    """
    try:
        import pymysql
        from pymysql.converters import encoders
    except ImportError as error:
        raise MissingToolError(f"MariaDB and MySQL need the Python package pymysql. Run: {install_command('jdbc')}") from error

    conversions: dict[Any, Any] = {**encoders}  # of parameters only

    try:
        connection = pymysql.connect(
            host=settings.host,
            port=settings.port,
            user=settings.user,
            password=settings.password,
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=max(1, int(settings.timeout)),
            read_timeout=max(1, int(settings.read_timeout)),
            conv=conversions,
            **_tls(settings.ssl_mode),
        )
        with connection.cursor() as cursor:
            cursor.execute("SET time_zone = '+00:00'")
            cursor.execute("SELECT @@sql_mode, @@sort_buffer_size")
            modes, buffer = cursor.fetchone() or ("", 0)
            cursor.execute("SET sql_mode = %s", (session_modes(str(modes)),))
            buffer = max(int(buffer), _SORT_BUFFER_BYTES)
            cursor.execute(f"SET max_sort_length = {SORTED_BYTES}, sort_buffer_size = {buffer}")
            for statement in settings.statements:
                cursor.execute(statement)
    except pymysql.err.OperationalError as error:
        code, *message = error.args
        text = f"{settings.host}:{settings.port}: {': '.join(map(str, message)) or code}"
        if is_transient(error):
            raise RetriableError(f"Cannot reach the server at {text}. Check database.hostname and database.port.") from error
        advice = ". Check database.user and database.password." if refuses_login(error) else ""
        raise ConnectError(f"{text}{advice}") from error
    except pymysql.err.MySQLError as error:
        raise ConnectError(f"{settings.host}:{settings.port}: {error}") from error
    return connection


def session_modes(modes: str) -> str:
    """Return the SQL modes of our sessions, from those of the server."""
    kept = (mode for mode in modes.split(",") if mode and mode not in {*_OTHER_VALUES, _ANY_DATE})
    return ",".join([*kept, _ANY_DATE])


def _tls(mode: str) -> dict[str, Any]:
    if mode in ("disabled", "disable"):
        return {"ssl_disabled": True}
    if mode in ("required", "verify_ca", "verify-ca", "verify_identity", "verify-full", "trust"):
        context = ssl.create_default_context()
        context.check_hostname = mode in ("verify_identity", "verify-full")
        if mode in ("required", "trust"):
            context.verify_mode = ssl.CERT_NONE
        return {"ssl": context}
    return {}
