"""Reads signals from their channels and executes those that all databases have."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sluiceway.connectors.cdc.config import CommonConfig
from sluiceway.connectors.cdc.filters import TableId, compile_anchored
from sluiceway.connectors.cdc.incremental import IncrementalSnapshots
from sluiceway.java.regex import RegexError

log = logging.getLogger(__name__)


class Signal(NamedTuple):
    id: str
    type: str
    data: Mapping[str, Any]


class FileChannel:
    """Reads signals from a file: one JSON document a line. The file is emptied when it was read."""

    def __init__(self, path: str, interval: float) -> None:
        self._path = Path(path)
        self._interval = interval
        self._due = 0.0

    def read(self) -> list[Signal]:
        """Return the signals in the file, if the interval has passed."""
        if time.monotonic() < self._due:
            return []
        self._due = time.monotonic() + self._interval
        try:
            lines = self._path.read_text(encoding="utf-8").splitlines()
            if lines:
                self._path.write_text("", encoding="utf-8")
        except OSError as error:
            log.warning("The signal file %s cannot be read: %s", self._path, error)
            return []
        return [signal for line in lines if line.strip() and (signal := parse_document(line)) is not None]


def parse_document(text: str) -> Signal | None:
    """Return the signal of a JSON document with id, type and data; None with a warning for another text."""
    try:
        document = json.loads(text)
        data = document.get("data") or {}
        data = json.loads(data) if isinstance(data, str) else data
        return Signal(str(document.get("id")), str(document["type"]), data)
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        log.warning("A signal is not a JSON document with id, type and data: %s", error)
        return None


def parse_row(values: Sequence[Any]) -> Signal | None:
    """Return the signal of a row of the signal table: id, type and data, whatever the columns' names."""
    if len(values) < 2 or values[0] is None or values[1] is None:
        return None
    text = values[2] if len(values) > 2 else None
    try:
        data = json.loads(text) if text else {}
    except ValueError as error:
        log.warning("Signal %s: its data is not JSON, so it is ignored: %s", values[0], error)
        return None
    return Signal(str(values[0]), str(values[1]), data if isinstance(data, dict) else {})


class Signals:
    """Executes signals.

    Args:
        captured: returns the tables that records are made for.
        blocking: begins a blocking snapshot of tables, with the conditions of single ones.
    """

    def __init__(
        self,
        config: CommonConfig,
        incremental: IncrementalSnapshots,
        captured: Callable[[], Iterable[TableId]],
        blocking: Callable[[Sequence[TableId], Mapping[str, str]], None],
    ) -> None:
        self._incremental = incremental
        self._captured = captured
        self._blocking = blocking
        self._actions: dict[str, Callable[[Signal], None]] = {
            "execute-snapshot": self._execute,
            "stop-snapshot": self._stop,
            "pause-snapshot": lambda signal: incremental.pause(signal.id),
            "resume-snapshot": lambda signal: incremental.resume(signal.id),
            "log": _log,
        }
        self.file: FileChannel | None = None
        if "file" in config.signal_channels:
            path = config.config.get("signal.file", "file-signals.txt")
            interval = int(config.config.get("signal.poll.interval.ms", "5000")) / 1000
            self.file = FileChannel(path, interval)

    def execute(self, signal: Signal) -> None:
        """Execute a signal; one of an unknown type is ignored with a warning."""
        action = self._actions.get(signal.type)
        if action is None:
            log.warning("Signal %s has the unknown type %s and is ignored", signal.id, signal.type)
            return
        log.info("Signal %s: %s %s", signal.id, signal.type, dict(signal.data))
        action(signal)

    def _execute(self, signal: Signal) -> None:
        tables = self._tables(signal.data.get("data-collections") or ())
        conditions = {}
        for entry in signal.data.get("additional-conditions") or ():
            for table in self._tables([str(entry.get("data-collection"))]):
                conditions[str(table)] = str(entry.get("filter"))
        if not tables:
            log.warning("Signal %s names no captured table and is ignored", signal.id)
        elif str(signal.data.get("type", "incremental")).lower() == "blocking":
            self._blocking(tables, conditions)
        else:
            self._incremental.add(signal.id, tables, conditions, signal.data.get("surrogate-key"))

    def _stop(self, signal: Signal) -> None:
        names = signal.data.get("data-collections")
        self._incremental.stop(signal.id, self._tables(names) if names else None)

    def _tables(self, patterns: Iterable[str]) -> list[TableId]:
        """Return the captured tables that match, in the order of the patterns."""
        found: dict[TableId, None] = {}
        captured = sorted(self._captured())
        for pattern in patterns:
            try:
                regex = compile_anchored(str(pattern).replace('"', "").strip())
            except RegexError as error:
                log.warning("A signal's data-collections has a wrong regular expression: %s", error)
                continue
            found.update(dict.fromkeys(table for table in captured if regex.matches(str(table))))
        return list(found)


def _log(signal: Signal) -> None:
    log.info("%s", str(signal.data.get("message", "")))
