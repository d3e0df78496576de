"""Finds the error with which a driver ended in the lines of its log, which may have lost their indentation. No I/O."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_TRACEBACK = "Traceback (most recent call last):"
_PYTHON_ERROR = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:: .*)?")
_THREAD = re.compile(r'Exception in thread "[^"]*" (.+)')
_JAVA_ERROR = re.compile(r"((?:\w+\.)+[A-Z]\w*(?:Exception|Error)(?:: .*)?)")
_CAUSE = re.compile(r"Caused by: (.+)")
_PLAIN = re.compile(r"Error: (.+)")
_LOGGED = re.compile(r".*\b(?:ERROR|CRITICAL|FATAL)\b[\s:]*(.+)")
_CHAINS = ("During handling of", "The above exception")
_FRAME = "at "


class LastError(NamedTuple):
    """An error and the index of the line at which its trace begins."""

    text: str
    begin: int


def last_error(lines: Sequence[str]) -> LastError | None:
    """Return the last exception of a driver's lines; without any, its last line of the level ERROR."""
    found = logged = None
    traceback: int | None = None
    named = False  # whether the traceback's error has come; another one may follow, in the same trace
    for number, raw in enumerate(lines):
        line = raw.strip()
        if _TRACEBACK in line:
            traceback, named = number if traceback is None else traceback, False
        elif traceback is not None and _PYTHON_ERROR.fullmatch(line):
            found, named = LastError(line, traceback), True
        elif named and line and not line.startswith(_CHAINS):
            traceback, named = None, False
        if traceback is None:
            found = _of_java(lines, number, line, found)
            if (error := _LOGGED.fullmatch(line)) is not None:
                logged = LastError(error[1], number)
    return found or logged


def _of_java(lines: Sequence[str], number: int, line: str, found: LastError | None) -> LastError | None:
    """Return the error that a line of Java's names, else the one that was found before."""
    if (cause := _CAUSE.fullmatch(line)) is not None:
        return LastError(cause[1], found.begin if found is not None else number)
    if (thread := _THREAD.fullmatch(line) or _PLAIN.fullmatch(line)) is not None:
        return LastError(thread[1], number)
    error = _JAVA_ERROR.fullmatch(line)
    follows = number + 1 < len(lines) and lines[number + 1].strip().startswith(_FRAME)
    return LastError(error[1], number) if error is not None and follows else found
