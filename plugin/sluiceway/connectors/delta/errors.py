"""Turns delta-rs's errors into those that the runtime knows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager
from typing import TypeVar

from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from sluiceway.connectors.tables.store import ConflictingCommitError, UnknownOutcomeError, UnreachableError
from sluiceway.errors import ConnectError

_Result = TypeVar("_Result")

_PATIENCE_SECONDS = 60.0
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


def answered(load: Callable[[], _Result], seconds: float = _PATIENCE_SECONDS) -> _Result:
    """Return what ``load`` returns. Raises TimeoutError after ``seconds``, and leaves its thread behind.

    delta-rs has no limit for requests to HDFS: one that was sent while a NameNode was busy has been seen to wait without end, and
    the second attempt was answered in 0.1 s. Only for calls that change nothing.
    """
    done: Future[_Result] = Future()

    def run() -> None:
        try:
            done.set_result(load())
        except BaseException as error:  # noqa: BLE001 (raised in the caller's thread)
            done.set_exception(error)

    threading.Thread(target=run, name="delta-load", daemon=True).start()
    try:
        return done.result(seconds)
    except FutureTimeoutError:  # from Python 3.11 on also a TimeoutError of load
        if done.done():
            raise
        raise TimeoutError(f"no answer within {seconds:g} s") from None


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
