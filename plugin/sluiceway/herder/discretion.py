"""Leaves out of a connector's config and status what only users who may edit it may see. No I/O.

Literal secrets are hidden, and of errors the classes and the stack frames remain: a message may quote a record.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sluiceway.config.masking import masked
from sluiceway.herder.model import ConnectorInfo, ConnectorStatus, TaskInfo
from sluiceway.herder.passwords import password_keys
from sluiceway.storage.model import Status

NOTE = "(Messages, which may quote records, are shown to users who may edit the connector.)"

_FRAME = re.compile(
    r"\s+at [^()]+\([^()]*\)|\s+\.\.\. \d+ (?:more|common frames omitted)|Traceback \(most recent call last\):"
    r"|During handling of the above exception, another exception occurred:"
    r"|The above exception was the direct cause of the following exception:"
)
_PYTHON_FRAME = re.compile(r'  File "[^"]+", line \d+, in \S+')
_CAUSE = re.compile(r"\s*(?:Caused by|Suppressed): [\w.$]+(?=:|$)")
_CLASS = re.compile(r"[\w.$]+(?=:|$)")


def discreet_info(info: ConnectorInfo) -> ConnectorInfo:
    """Return a connector's info with hidden secrets."""
    return replace(info, config=masked(info.config, password_keys(info.config)))


def discreet_tasks(info: ConnectorInfo, tasks: Sequence[TaskInfo]) -> list[TaskInfo]:
    """Return the tasks of a connector with hidden secrets."""
    passwords = password_keys(info.config)
    return [replace(task, config=masked(task.config, passwords)) for task in tasks]


def discreet_status(status: ConnectorStatus) -> ConnectorStatus:
    """Return a connector's status without messages of errors."""
    tasks = {number: discreet(task) for number, task in status.tasks.items()}
    return replace(status, connector=discreet(status.connector), tasks=tasks)


def discreet(status: Status) -> Status:
    """Return a status without messages of errors."""
    return status if status.trace is None else replace(status, trace=discreet_trace(status.trace))


def discreet_trace(trace: str) -> str:
    """Return the classes of a trace and its stack frames, in Java's form and in Python's, and a note about the rest.

    A message may have lines that look like anything, so a class counts only where a trace has one: first, after a cause's mark,
    and after the frames of Python.
    """
    kept: list[str] = []
    in_source = False
    for number, line in enumerate(trace.splitlines()):
        is_frame = _PYTHON_FRAME.fullmatch(line) is not None
        of_source = in_source and line.startswith("    ")
        if is_frame or of_source or _FRAME.fullmatch(line):
            kept.append(line)
        elif (found := _CAUSE.match(line) or (_CLASS.match(line) if number == 0 or in_source else None)) is not None:
            kept.append(found[0])
        in_source = is_frame or of_source
    return "\n".join([*kept, NOTE])
