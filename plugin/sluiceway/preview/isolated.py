"""Calls functions of the herder in an isolated process, for a server with secrets of its own. Runs in that server."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import (
    BadRequestError,
    ConfigError,
    ConflictError,
    ConnectError,
    KafkaClientError,
    NotFoundError,
    trace_of,
)
from sluiceway.preview.isolation import require_landlock, without_servers_keys
from sluiceway.preview.launcher import run_preview
from sluiceway.preview.request import Call, Event, Limits

log = logging.getLogger(__name__)

_SECONDS = 60.0  # a request to Kafka may take 30
_ERRORS = {each.__name__: each for each in (BadRequestError, ConfigError, ConflictError, NotFoundError)}


def isolated(function: Callable[..., Any], config: Mapping[str, str], worker: WorkerConfig, *arguments: Any) -> Any:
    """Call a function as ``sluiceway.herder.isolated.Isolated`` says.

    The result is that of connectors' code, so it is JSON: unpickling it would let that code run here.
    """
    require_landlock("Requests that need a connector's secrets or code", "Send them to a REST API outside of Airflow instead.")
    answer = CallAnswer()
    run_preview(Call(function, dict(config), without_servers_keys(worker), arguments, Limits(seconds=_SECONDS)), answer)
    if answer.error is not None:
        raise answer.error
    return answer.value


class CallAnswer:
    """The answer so far to a call (``sluiceway.preview.launcher.Receiver``)."""

    def __init__(self) -> None:
        self.ready = False
        self.ended = False
        self.value: Any = None
        self.error: ConnectError | None = None

    def add(self, event: Event) -> None:
        """Add one event. Warnings are in the log of a running connector too, so they are left out."""
        if event["event"] == "ready":
            self.ready = True
        elif event["event"] == "end":
            self.ended = True
            self.value = event.get("value")
            if "error" in event:
                self.error = _error(**event["error"])

    def stopped(self, seconds: float) -> None:
        """Note that the process was ended, because its time was over."""
        self.error = ConnectError(f"The connector's code did not answer within {seconds:g} s.")

    def too_large(self) -> None:
        """Note that the process was ended, because it told too much."""
        self.error = ConnectError("The answer of the connector's code is too large.")

    def crashed(self, code: int, _log: str) -> None:
        """Note that the process ended by itself without an answer. Its log may hold secrets, and is left out."""
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        self.error = ConnectError(f"The process that runs the connector's code ended {how}.")


def error_event(error: Exception, unreadable: Sequence[str] = ()) -> Event:
    """Return the event that tells an error. What an error other than ConnectError says is in its trace only, for the log.

    ``unreadable`` says which files of the config this process may not read; it follows an error that comes from that.
    """
    known = isinstance(error, ConnectError)
    kind = next((each.__name__ for each in type(error).__mro__ if each.__name__ in _ERRORS), "")
    text = str(error) if known else f"Internal error ({type(error).__name__}) in the connector's code; see the log."
    text = " ".join([text, *(unreadable if _is_refused(error) else ())])
    code = error.code if isinstance(error, KafkaClientError) else ""
    trace = "" if known else trace_of(error)
    return {"event": "end", "error": {"kind": kind if known else "", "text": text, "code": code, "trace": trace}}


def _is_refused(error: BaseException | None) -> bool:
    """Return whether an error is, or comes from, a file that may not be opened."""
    while error is not None and not isinstance(error, PermissionError):
        error = error.__cause__
    return error is not None


def _error(kind: str, text: str, code: str, trace: str) -> ConnectError:
    if trace:
        log.error("The connector's code failed: %s", trace)
    if code:
        return KafkaClientError(text, code)
    return _ERRORS.get(kind, ConnectError)(text)
