"""Reads time and level of the lines that a driver, and Spark's JVM around it, write to their log. No I/O."""

from __future__ import annotations

import logging
import re
from typing import NamedTuple

_PYTHON = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (?P<level>[A-Z]+) (?P<text>.*)")  # see ``log_to_stderr``
_JVM = re.compile(r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d (?P<level>[A-Z]+) (?P<text>.*)")
_LEVELS = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "WARNING": logging.WARNING,
    "ERROR": logging.ERROR,
    "CRITICAL": logging.CRITICAL,
    "FATAL": logging.CRITICAL,
}


class DriverLine(NamedTuple):
    """A line without its time and level, which the log that it is written to has too."""

    level: int
    text: str


def driver_line(line: str, before: int) -> DriverLine:
    """Return a line's level and text. One without a level, such as of a trace, has that of the line ``before`` it."""
    found = _PYTHON.fullmatch(line) or _JVM.fullmatch(line)
    if found is None or found["level"] not in _LEVELS:
        return DriverLine(before, line)
    return DriverLine(_LEVELS[found["level"]], found["text"])
