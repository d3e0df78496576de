"""Opens databases: a SQLAlchemy engine for each connector or task, and connections that were tried more than once."""

from __future__ import annotations

import functools
import gc
import importlib
import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from sluiceway.connectors.jdbc.dialects import dialect_of
from sluiceway.connectors.jdbc.url import MYSQL, POSTGRESQL, SQLITE, DatabaseUrl
from sluiceway.errors import ConnectError, MissingToolError, RetriableError

if TYPE_CHECKING:
    import sqlalchemy as sa

    from sluiceway.connectors.jdbc.connection_keys import ConnectionSettings
    from sluiceway.connectors.jdbc.dialects.base import Dialect

log = logging.getLogger(__name__)

_DRIVERS = {POSTGRESQL: ("psycopg", "postgresql+psycopg"), MYSQL: ("pymysql", "mysql+pymysql"), SQLITE: ("sqlite3", "sqlite")}
_CONNECT_SECONDS = 10  # for a host that does not answer; the URL may say otherwise

# Whoever waits for rows or a commit notices within a minute that the host is gone, and not after the system's two hours
# (https://www.postgresql.org/docs/current/libpq-connect.html); seconds. PyMySQL has no such settings.
_KEEPALIVES: dict[str, object] = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}

# What a wrong name or password, a missing right or database is called by each database: trying again does not help.
_REFUSED_STATES = ("28", "3D000", "42501")
_REFUSED_NUMBERS = frozenset({1044, 1045, 1049, 1130, 1698})


class Database:
    """One database as one connector or task uses it. Not to be shared between threads while a connection is being opened.

    ``wait`` sleeps between attempts; it returns True to give up early, as an ``Event``'s ``wait`` does.
    """

    def __init__(self, settings: ConnectionSettings, wait: Callable[[float], bool] | None = None) -> None:
        self.settings = settings
        self.url: DatabaseUrl = settings.url
        self.dialect: Dialect = dialect_of(self.url.dialect, quote=settings.quote)
        self._wait = wait or threading.Event().wait

    @functools.cached_property
    def engine(self) -> sa.Engine:
        """The SQLAlchemy engine, which keeps no idle connections. Raises MissingToolError where a Python package is missing."""
        module, name = _DRIVERS[self.url.dialect]
        try:
            import sqlalchemy as sa
            from sqlalchemy.pool import NullPool

            importlib.import_module(module)
        except ImportError as error:
            raise MissingToolError(
                f"To reach {self.url.dialect} databases the Python package {error.name} is needed: "
                "pip install 'sluiceway[jdbc]' where drivers and executors run."
            ) from error
        url = sa.URL.create(
            name, self.url.user, self.url.password, self.url.host or None, self.url.port or None, self.url.database or None
        )
        arguments: dict[str, object] = dict(self.url.options)
        if self.url.dialect == SQLITE:
            arguments |= {"check_same_thread": False, "timeout": 30}
        else:
            arguments.setdefault("connect_timeout", _CONNECT_SECONDS)
        if self.url.dialect == MYSQL:
            arguments.setdefault("charset", "utf8mb4")
        elif self.url.dialect == POSTGRESQL:
            arguments = {**_KEEPALIVES, **arguments}
        engine = sa.create_engine(url, connect_args=arguments, poolclass=NullPool, hide_parameters=True)
        sa.event.listen(engine, "connect", lambda connection, _record: self.dialect.prepare(connection))
        return engine

    def connect(self) -> sa.Connection:
        """Return a new connection, tried ``connection.attempts`` times.

        Raises ConnectError at once for what another attempt cannot mend, such as a wrong password, and RetriableError after
        the last attempt.
        """
        import sqlalchemy.exc

        attempts = self.settings.attempts
        for attempt in range(1, attempts + 1):
            try:
                return self.engine.connect()
            except sqlalchemy.exc.DBAPIError as error:
                reason = reason_of(error)
                # Drivers' errors refer to themselves by their frames, and so to the batch that the caller of the attempt before
                # wanted to write. Tasks collect garbage seldom.
                gc.collect()
                if was_refused(error):
                    raise ConnectError(
                        f"The database {self.url.place} refuses {self.url.user!r}: {reason}. Check connection.url, "
                        "connection.user and connection.password, and what the database allows this user."
                    ) from None  # the driver's own error might show how it was called
                if attempt == attempts or self._pause(attempt, reason):
                    raise RetriableError(
                        f"The database {self.url.place} cannot be reached after {attempt} attempt(s) (connection.attempts): "
                        f"{reason}. Check that it runs, and that connection.url is right as seen from here."
                    ) from None
        raise AssertionError("connection.attempts is at least 1")

    def _pause(self, attempt: int, reason: str) -> bool:
        log.warning(
            "Attempt %d of %d to reach %s failed, next in %g s: %s",
            attempt,
            self.settings.attempts,
            self.url.place,
            self.settings.backoff,
            reason,
        )
        return bool(self._wait(self.settings.backoff))

    def dispose(self) -> None:
        """Let go of what the engine holds."""
        if "engine" in self.__dict__:
            self.engine.dispose()


def reason_of(error: Exception) -> str:
    """Return what the driver says, on one line, without SQL and parameters."""
    original = getattr(error, "orig", None) or error
    arguments: tuple[object, ...] = getattr(original, "args", ())
    text = str(arguments[1]) if len(arguments) > 1 and isinstance(arguments[0], int) else str(original)
    return " ".join(text.split()).rstrip(".?")


def was_refused(error: Exception) -> bool:
    """Whether the database answered and will not let us in."""
    original = getattr(error, "orig", None) or error
    number = original.args[0] if getattr(original, "args", ()) else None
    if isinstance(number, int):  # MySQL's, whose SQLSTATE says too little
        return number in _REFUSED_NUMBERS
    state = getattr(original, "sqlstate", None)
    if state:
        return str(state).startswith(_REFUSED_STATES)
    # libpq gives no code for what happens before a session exists.
    text = str(original)
    refused = ("authentication failed", "no password supplied", "no pg_hba.conf entry", "does not exist", "is not permitted")
    return any(part in text for part in refused) or "unable to open database file" in text
