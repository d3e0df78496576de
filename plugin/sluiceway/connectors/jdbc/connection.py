"""Opens database connections, with retries, over one SQLAlchemy engine for each connector or task."""

from __future__ import annotations

import functools
import gc
import importlib
import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from sluiceway.connectors.jdbc.dialects import dialect_of
from sluiceway.connectors.jdbc.url import DatabaseUrl
from sluiceway.errors import ConnectError, MissingToolError, RetriableError
from sluiceway.installation import install_command

if TYPE_CHECKING:
    import sqlalchemy as sa

    from sluiceway.connectors.jdbc.connection_keys import ConnectionSettings
    from sluiceway.connectors.jdbc.dialects.base import Dialect

log = logging.getLogger(__name__)


class Database:
    """The database of one connector or task. Threads must not share it while a connection is being opened.

    ``wait`` sleeps between attempts for the given seconds; it returns True to give up early, like ``Event.wait``. ``waiting`` is
    a task context's, which shows such a wait.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        wait: Callable[[float], bool] | None = None,
        waiting: Callable[..., None] = lambda *_: None,
    ) -> None:
        self.settings = settings
        self.url: DatabaseUrl = settings.url
        self.dialect: Dialect = dialect_of(self.url.dialect, quote=settings.quote)
        self._wait = wait or threading.Event().wait
        self._waiting = waiting

    @functools.cached_property
    def engine(self) -> sa.Engine:
        """The SQLAlchemy engine, without a pool. Raises MissingToolError if a Python package is missing or too old."""
        dialect, url = self.dialect, self.url
        try:
            import sqlalchemy as sa
            from sqlalchemy.pool import NullPool

            if sa.__version__.startswith("1."):  # which Airflow 3.0 holds
                raise MissingToolError(
                    f"The JDBC connectors need SQLAlchemy 2; this is {sa.__version__}. Airflow 3.0 cannot be installed beside "
                    "it: use Airflow 3.1 or newer, or run the connector with 'sluiceway standalone' in another environment."
                )
            importlib.import_module(dialect.driver)
        except ImportError as error:
            raise MissingToolError(
                f"Cannot open {dialect.name} databases, because the Python package {error.name} is missing. Run "
                f"{install_command('jdbc', *dialect.packages)} where drivers and executors run."
            ) from error
        location = sa.URL.create(
            dialect.sqlalchemy_name, url.user, url.password, url.host or None, url.port or None, url.database or None
        )
        arguments = dialect.connect_arguments(url)
        engine = sa.create_engine(location, connect_args=arguments, poolclass=NullPool, hide_parameters=True)
        sa.event.listen(engine, "connect", lambda connection, _record: dialect.prepare(connection))
        return engine

    def connect(self) -> sa.Connection:
        """Return a new connection after at most ``connection.attempts`` attempts.

        Raises ConnectError at once if another attempt cannot help, for example for a wrong password, and RetriableError after
        the last attempt.
        """
        import sqlalchemy.exc

        attempts = self.settings.attempts
        for attempt in range(1, attempts + 1):
            try:
                connection = self.engine.connect()
            except sqlalchemy.exc.DBAPIError as error:
                reason = reason_of(error)
                # The driver's error and its traceback form a cycle, which keeps the batch of the caller's last attempt in
                # memory until the next collection; tasks collect seldom.
                gc.collect()
                if self.dialect.refuses_login(error.orig or error):
                    raise ConnectError(
                        f"The database {self.url.location} refuses {self.url.user!r}: {reason}. Check connection.url, "
                        "connection.user and connection.password, and the user's privileges in the database."
                    ) from None  # the driver's error may show its arguments
                if attempt == attempts or self._pause(attempt, reason):
                    raise RetriableError(
                        f"The database {self.url.location} cannot be reached after {attempt} attempt(s) (connection.attempts): "
                        f"{reason}. Check that it runs, and that connection.url is right as seen from here."
                    ) from None
            else:
                self._waiting()
                return connection
        raise AssertionError("connection.attempts is at least 1")

    def _pause(self, attempt: int, reason: str) -> bool:
        log.warning(
            "Attempt %d of %d to connect to %s failed, next attempt in %g s: %s",
            attempt,
            self.settings.attempts,
            self.url.location,
            self.settings.backoff,
            reason,
        )
        self._waiting(f"The database {self.url.location} cannot be reached: {reason}", self.settings.backoff)
        return bool(self._wait(self.settings.backoff))

    def dispose(self) -> None:
        """Release the engine."""
        if "engine" in self.__dict__:
            self.engine.dispose()


def reason_of(error: Exception) -> str:
    """Return the driver's message on one line, without SQL and parameters."""
    original = getattr(error, "orig", None) or error
    arguments: tuple[object, ...] = getattr(original, "args", ())
    message = arguments[1] if len(arguments) > 1 and isinstance(arguments[0], int) else original
    text = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
    return " ".join(text.split()).rstrip(".?")
