"""Runs one preview or call, in a process of its own: connector code that hangs or crashes ends this process only."""

from __future__ import annotations

import json
import logging
import os
import pickle
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from sluiceway.api import SinkConnector, SourceConnector
from sluiceway.config.connector import CONNECTOR_CLASS, CONNECTOR_VERSION
from sluiceway.discovery import connector_class, plugins
from sluiceway.errors import ConnectError, java_text_of, trace_of
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.herder.references import References
from sluiceway.herder.validation import validate_config
from sluiceway.preview.answer import Hide, hidden
from sluiceway.preview.isolated import error_event
from sluiceway.preview.isolation import limit_files, unreadable
from sluiceway.preview.request import Call, Event, PreviewRequest, Tell
from sluiceway.preview.sink import preview_sink
from sluiceway.preview.source import preview_source

_WARNINGS = 20
_GRACE_SECONDS = 70.0  # for the start; after that the process ends by itself, because nobody is left to end it
_GROUPS = ("sluiceway.connectors", "sluiceway.transforms", "sluiceway.predicates", "sluiceway.converters")
_OOM_SCORE = "1000"


def main() -> None:
    """Read a pickled request from stdin, do it, and write its events to stdout, each as a line of JSON."""
    request: PreviewRequest | Call = pickle.loads(sys.stdin.buffer.read())  # noqa: S301 (written by the process that started this one)
    with _own_stdout() as answers:

        def write(event: Event) -> None:
            answers.write(json.dumps(event).encode() + b"\n")
            answers.flush()

        tell = Teller(write)
        logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
        logging.getLogger().addHandler(_Warnings(tell))
        _bound(request.limits.seconds)
        if request.isolated:
            limit_files(request.worker.raw, Path(tempfile.gettempdir()))
        use_plugin_path(request.worker.raw)
        if isinstance(request, Call):
            call(request, tell)
        else:
            run(request, tell)


class Teller:
    """Tells events, with what ``hide`` leaves of their messages."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self.hide: Hide = lambda text: text

    def __call__(self, event: Event) -> None:
        self._tell(hidden(event, self.hide))


def run(request: PreviewRequest, tell: Teller) -> None:
    """Run a preview. Failures are told, not raised. Its time begins when the plugins are loaded."""
    try:
        for group in _GROUPS:
            plugins(group)
        tell({"event": "ready"})
        config = _prepared(request, tell) if request.isolated else request.config
        note = "" if config is None else _preview(config, request, tell)
    except Exception as error:  # noqa: BLE001 (the outermost boundary of the connector's code)
        tell({"event": "end", "error": {"message": java_text_of(error), "trace": trace_of(error)}})
    else:
        tell({"event": "end", "note": note})


def call(request: Call, tell: Teller) -> None:
    """Call a function, and tell its result or its error, without the secrets that the config refers to."""
    known: Mapping[str, str] = {}
    try:
        references = References.of(request.config, request.worker)
        known, tell.hide = references.known, references.hidden
        tell({"event": "ready"})
        value = request.function(request.config, request.worker, *request.arguments)
    except Exception as error:  # noqa: BLE001 (the outermost boundary of the connector's code)
        tell(error_event(error, unreadable(known, request.worker.raw)))
    else:
        tell({"event": "end", "value": value})


def _preview(config: Mapping[str, str], request: PreviewRequest, tell: Tell) -> str:
    """Tell records of a config without references. Return why there are not more."""
    cls = connector_class(config[CONNECTOR_CLASS], config.get(CONNECTOR_VERSION))
    if issubclass(cls, SinkConnector):
        return preview_sink(cls, config, request, tell)
    if issubclass(cls, SourceConnector):
        return preview_source(cls, config, request, tell)
    raise ConnectError(f"{cls.__name__} is neither a source nor a sink connector.")


def _prepared(request: PreviewRequest, tell: Teller) -> Mapping[str, str] | None:
    """Return the config with its references resolved as on a driver; None if it has errors, which are told."""
    references = References.of(request.config, request.worker)
    tell.hide = references.hidden
    tell({"event": "phase", "phase": "the validation of the config"})
    found = validate_config(request.config, request.worker)
    if found.error_count:
        tell({"event": "invalid", "validation": found.to_json()})
        return None
    for warning in (*references.warnings, *unreadable(request.config, request.worker.raw)):
        tell({"event": "warning", "text": warning})
    return references.known


def _own_stdout() -> IO[bytes]:
    """Return a file for the answers. What plugins print to stdout goes to stderr, and their stdin is empty."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    return answers


def _bound(seconds: float) -> None:
    """Let the kernel end this process after its time, and before all others if memory runs out."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds + _GRACE_SECONDS)
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:  # noqa: PTH123 (not a file to keep)
            file.write(_OOM_SCORE)
    except OSError:  # not Linux, or not allowed
        pass


class _Warnings(logging.Handler):
    """Tells the first warnings and errors of the log, each text once."""

    def __init__(self, tell: Tell) -> None:
        super().__init__(logging.WARNING)
        self._tell = tell
        self._told: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        text = f"{record.getMessage()} ({record.name})"
        if text not in self._told and len(self._told) < _WARNINGS:
            self._told.add(text)
            self._tell({"event": "warning", "text": text})


if __name__ == "__main__":
    main()
