"""Turns PyIceberg's errors into those that the runtime knows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyiceberg import exceptions

from sluiceway.connectors.tables.store import ConflictingCommitError, UnknownOutcomeError, UnreachableError
from sluiceway.errors import ConnectError

_LOGIN = (exceptions.UnauthorizedError, exceptions.ForbiddenError, exceptions.OAuthError)
_AWAY = (exceptions.ServiceUnavailableError, exceptions.ServerError, exceptions.AuthorizationExpiredError, OSError)
_SQL_AWAY = {"OperationalError", "InterfaceError", "TimeoutError"}


@contextmanager
def reaching(what: str) -> Iterator[None]:
    """Raise UnreachableError for errors that may pass, and ConnectError for others. ``what`` says what was tried."""
    try:
        yield
    except (ConnectError, GeneratorExit):
        raise
    except _LOGIN as error:
        raise ConnectError(
            f"{what}: the catalog refuses the login: {error}. Check iceberg.catalog.credential and token."
        ) from error
    except exceptions.NoSuchTableError as error:
        raise ConnectError(
            f"{what}: the table was dropped. Restart the task to have it created, or create it: {error}"
        ) from error
    except Exception as error:
        # requests raises an OSError that is a ValueError too for a malformed URI and for an answer that is not JSON.
        if (isinstance(error, _AWAY) and not isinstance(error, ValueError)) or _is_sql_away(error):
            raise UnreachableError(f"{what}: the catalog or the storage does not answer: {error}") from error
        raise ConnectError(f"{what}: {type(error).__name__}: {error}") from error


def is_login(error: BaseException | None) -> bool:
    """Return whether PyIceberg's error says that the catalog refuses the login."""
    return isinstance(error, _LOGIN)


def is_conflict(error: Exception) -> bool:
    """Return whether an SQL catalog's error says that another client has written the same since PyIceberg looked for it."""
    return type(error).__module__.startswith("sqlalchemy.") and type(error).__name__ == "IntegrityError"


@contextmanager
def committing(what: str) -> Iterator[None]:
    """Raise ConflictingCommitError if a commit had no effect because of another, and UnknownOutcomeError if it may have had."""
    try:
        yield
    except (exceptions.CommitFailedException, exceptions.ValidationException) as error:
        raise ConflictingCommitError(f"another commit came first ({error})") from error
    except exceptions.NoSuchTableError as error:
        raise ConnectError(
            f"{what}: the table was dropped. Restart the task to have it created, or create it: {error}"
        ) from error
    except ConnectError:
        raise
    except Exception as error:
        raise UnknownOutcomeError(f"{what}: {type(error).__name__}: {error}") from error


def _is_sql_away(error: Exception) -> bool:
    kind = type(error)
    return kind.__module__.startswith(("sqlalchemy.", "thrift.")) and (kind.__name__ in _SQL_AWAY or "Transport" in kind.__name__)
