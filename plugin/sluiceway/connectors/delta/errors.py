"""Turns delta-rs's errors into those that the runtime knows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from sluiceway.connectors.tables.store import ConflictingCommitError, UnknownOutcomeError, UnreachableError
from sluiceway.errors import ConnectError

_STORAGE = ("Generic", "ObjectStore", "object store", "error sending request", "os error")


@contextmanager
def reaching(what: str) -> Iterator[None]:
    """Raise UnreachableError for errors of the storage, and ConnectError for others. ``what`` says what was tried."""
    try:
        yield
    except ConnectError:
        raise
    except OSError as error:
        raise UnreachableError(f"{what}: the storage does not answer: {error}") from error
    except (DeltaError, ValueError, RuntimeError) as error:
        if isinstance(error, TableNotFoundError) or "File not found" in str(error):
            raise ConnectError(
                f"{what}: the table was dropped. Restart the task to have it created, or create it: {error}"
            ) from error
        if any(text in str(error) for text in _STORAGE):
            raise UnreachableError(f"{what}: the storage does not answer: {error}") from error
        raise ConnectError(f"{what}: {error}") from error


@contextmanager
def committing(what: str) -> Iterator[None]:
    """Raise ConflictingCommitError if a commit had no effect because of another, and UnknownOutcomeError if it may have had."""
    try:
        yield
    except CommitFailedError as error:
        raise ConflictingCommitError(f"another commit came first ({error})") from error
    except ConnectError:
        raise
    except Exception as error:
        raise UnknownOutcomeError(f"{what}: {type(error).__name__}: {error}") from error
