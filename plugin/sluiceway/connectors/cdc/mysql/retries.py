"""Repeats a step of reading the database after errors that a new connection may heal."""

from __future__ import annotations

from collections.abc import Callable

from sluiceway.connectors.cdc.config import CommonConfig
from sluiceway.connectors.cdc.mysql.binlog.stream import LogEndedError
from sluiceway.connectors.cdc.mysql.buffer import RecordBuffer, StoppedError
from sluiceway.connectors.cdc.mysql.connection import in_words, is_transient
from sluiceway.connectors.cdc.retries import Retries
from sluiceway.errors import RetriableError

_RETRIED = (LogEndedError, RetriableError, OSError)


class RetriedSteps:
    """Runs steps on the reading thread. The buffer's ``trouble`` is the error of the last attempt, until ``healed``.

    Args:
        reached: returns how far the log is read. Attempts between which it has moved are not counted.
        failed: called after each attempt that failed.
    """

    def __init__(
        self, config: CommonConfig, buffer: RecordBuffer, reached: Callable[[], object], failed: Callable[[], None]
    ) -> None:
        self._config = config
        self._buffer = buffer
        self._reached_now = reached
        self._failed = failed
        self._reached: object = None

    def run(self, step: Callable[[], None]) -> None:
        """Run a step until it ends without an error, or the task stops. Raises errors that will not heal."""
        retries = Retries(self._config.max_retries, self._config.retry_wait, "errors.max.retries")
        while not self._buffer.is_stopped():
            try:
                step()
            except StoppedError:
                raise
            except Exception as error:
                if self._buffer.is_stopped():
                    return
                final = in_words(error)
                if final is error and not isinstance(error, _RETRIED):
                    raise
                if not isinstance(error, _RETRIED) and not is_transient(error):
                    raise final from error
                if self._progressed():
                    retries.healed()
                self._failed()
                self._buffer.trouble = str(retries.failed(error))
                if self._buffer.wait_stopped(retries.wait):
                    return
            else:
                self.healed()
                return

    def healed(self) -> None:
        """Note that the database is read again."""
        self._buffer.trouble = None

    def _progressed(self) -> bool:
        """Return whether the log was read further since the last call."""
        before, self._reached = self._reached, self._reached_now()
        return before != self._reached
