"""Decides which of librdkafka's log lines are shown, and at which level. No I/O."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass

LASTS_SECONDS = 10.0
"""The time after which trouble that librdkafka retries is a warning."""

_REPEAT_SECONDS = 60.0  # librdkafka itself suppresses identical connection errors for 30 s
_MOST_KINDS = 1000

# Being fenced is normal operation and is raised as FencedError. librdkafka logs it three times over as a fatal error.
_FENCED = ("(_FENCED)", "old epoch", "fenced by")
# Lost and refused connections, timeouts, moved leaders and coordinators: librdkafka repeats the request by itself.
_RETRIED = re.compile(r"^(FAIL|GETPID|REQTMOUT) |retrying|will retry|not.?leader|brokers are down", re.IGNORECASE)
_SETTINGS = re.compile(r"authenticat|handshake|certificate", re.IGNORECASE)  # wrong ones do not heal


@dataclass(slots=True)
class _Kind:
    """Messages of one client that differ only in numbers: when the current series began, last occurred and was last shown."""

    began: float
    last: float
    shown: float = float("-inf")


class ClientLogFilter(logging.Filter):
    """Shows messages that differ only in numbers once a minute, and retried trouble at DEBUG until it has lasted 10 s.

    Trouble lasts if its message comes again 10 s or more after the first one of a series. A series ends with a minute without it.
    Then the level is WARNING. Messages about being fenced are never shown.
    """

    def __init__(self) -> None:
        super().__init__()
        self._kinds: dict[str, _Kind] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if any(text in message for text in _FENCED):
            return False
        kind = self._kind(re.sub(r"[0-9]+", "", message), record.created)
        if _RETRIED.search(message) and not _SETTINGS.search(message):
            if record.created - kind.began < LASTS_SECONDS:
                _set_level(record, logging.DEBUG)
                return logging.getLogger(record.name).isEnabledFor(logging.DEBUG)
            _set_level(record, min(record.levelno, logging.WARNING))
        if record.created < kind.shown + _REPEAT_SECONDS:
            return False
        kind.shown = record.created
        return True

    def _kind(self, text: str, now: float) -> _Kind:
        kind = self._kinds.get(text)
        if kind is None or now >= kind.last + _REPEAT_SECONDS:
            if len(self._kinds) >= _MOST_KINDS:
                self._kinds.clear()
            kind = self._kinds[text] = _Kind(now, now)
        kind.last = now
        return kind


def _set_level(record: logging.LogRecord, level: int) -> None:
    record.levelno, record.levelname = level, logging.getLevelName(level)
