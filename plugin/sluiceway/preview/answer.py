"""Collects the events of a preview's process into the answer for the user. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sluiceway.preview.request import Event

Hide = Callable[[str], str]
"""Replaces secrets in a text."""

_WARNINGS = 20


class Answer:
    """The answer so far. ``hide`` replaces secrets in messages.

    ``shows_log``: whether the answer has the end of the log of a process that crashed, in which ``hide`` finds all secrets.
    """

    def __init__(self, hide: Hide = lambda text: text, *, shows_log: bool = True) -> None:
        self._hide = hide
        self._shows_log = shows_log
        self.validation: dict[str, Any] | None = None
        self.ready = False
        self.ended = False
        self.phase = ""
        self.records: list[dict[str, Any]] = []
        self.warnings: list[str] = []
        self.note = ""
        self.error: dict[str, Any] | None = None
        self.target: dict[str, Any] | None = None

    def add(self, event: Event) -> None:
        """Add one event."""
        event = hidden(event, self._hide)
        kind = event.pop("event")
        if kind == "ready":
            self.ready = True
        elif kind == "phase":
            self.phase = event["phase"]
        elif kind == "record":
            self.records.append(event)
        elif kind == "target":
            self.target = event
        elif kind == "invalid":
            self.validation = event["validation"]
        elif kind == "warning" and len(self.warnings) < _WARNINGS:
            if event["text"] not in self.warnings:  # a source repeats what it waits for with each poll
                self.warnings.append(event["text"])
        elif kind == "end":
            self.ended = True
            self.note = event.get("note", "")
            self.error = event.get("error")

    def stopped(self, seconds: float) -> None:
        """Note that the process was ended, because its time was over."""
        self.note = f"The preview was ended after {seconds:g} s, in {self.phase or 'the start of its process'}."

    def too_large(self) -> None:
        """Note that the process was ended, because it told too much."""
        self.note = "The preview was ended, because its records are too large. Ask for fewer."

    def crashed(self, code: int, log: str) -> None:
        """Note that the process ended by itself without an answer; ``code`` as ``Popen.returncode``."""
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        where = self.phase or "its start"
        self.error = {
            "message": f"The preview's process ended {how} in {where}.",
            "trace": self._hide(log) if self._shows_log else "",
        }

    def to_json(self) -> dict[str, Any]:
        """Return the answer without what the request says."""
        return {
            "records": self.records,
            "target": self.target,
            "note": self.note,
            "warnings": self.warnings,
            "error": self.error,
        }


def hidden(event: Event, hide: Hide) -> Event:
    """Return an event without secrets in its messages. The data of records is shown as it would be written."""
    error = event.get("error")
    if isinstance(error, str):
        return {**event, "error": hide(error)}
    if isinstance(error, dict):
        return {**event, "error": {key: hide(value) if isinstance(value, str) else value for key, value in error.items()}}
    return {**event, "text": hide(event["text"])} if event["event"] == "warning" else dict(event)
