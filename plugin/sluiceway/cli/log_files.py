"""Reads the log files of a local stack: those of its processes and of connectors' DAG tasks."""

from __future__ import annotations

import json
import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from sluiceway.cli.advice import did_you_mean
from sluiceway.errors import NotFoundError

_POLL_SECONDS = 0.3
_SEARCHED_LINES, _TRACE_LINES = 3000, 40
_SUBMITTED = "spark-submit: "
_DIED = re.compile(r"[Tt]he driver (?:died|has ended)")
# Fields that are the same in each line or of no use to a reader.
_LEFT_OUT = {
    "timestamp",
    "level",
    "event",
    "logger",
    "filename",
    "lineno",
    "try_number",
    "ti_id",
    "run_id",
    "task_id",
    "dag_id",
    "map_index",
}


def process_logs(home: Path) -> dict[str, Path]:
    """Return the log files of the stack's processes by process name."""
    files = [*home.glob("*.log"), *(home / "broker").glob("*.log")]
    return {file.stem: file for file in sorted(files)}


_ERRORS = ("error", "critical")


def task_log(home: Path, dag: str) -> Path | None:
    """Return the newest log of a DAG's task, or None if the task never ran on this machine."""
    files = (home / "airflow" / "logs" / f"dag_id={dag}").glob("run_id=*/task_id=*/attempt=*.log")
    return max(files, key=_last_change, default=None)


def finder(home: Path, name: str, dag: str) -> Callable[[], Path | None]:
    """Return a function that returns the current log of the process ``name``, else of the connector with DAG ``dag``.

    Raises NotFoundError, which lists the processes that have a log.
    """
    processes = process_logs(home)
    if name in processes:
        return lambda: processes[name]
    if task_log(home, dag) is None:
        known = ", ".join(processes) or "none"
        question = did_you_mean(name, [*processes, *_connectors(home)])
        meant = f" {question}" if question else ""
        raise NotFoundError(
            f"No log of {name!r} under {home}: no connector of that name has run on this machine.{meant} "
            f"Processes with a log: {known}. If Airflow runs on another machine, open the task's log in its UI."
        )
    return lambda: task_log(home, dag)


def _connectors(home: Path) -> list[str]:
    """Return the connectors whose DAGs have a log."""
    from sluiceway.provider.dag_bundle.dag_ids import connector_name

    return [connector_name(each.name.removeprefix("dag_id=")) for each in (home / "airflow" / "logs").glob("dag_id=*")]


def last_lines(file: Path, count: int) -> tuple[list[str], int]:
    """Return a file's last lines and the number of bytes read."""
    with file.open("rb") as source:
        lines = deque((line for line in source if line.endswith(b"\n")), maxlen=count)
        read = source.tell()
    return [_text(line) for line in lines], read


def error_of_driver(file: Path, shown: int) -> list[str]:
    """Return a line with the error of a connector's driver that has ended, and its trace unless the last lines have it.

    A driver that was started since has none yet.
    """
    from sluiceway.provider.driver.last_error import last_error

    lines, _ = last_lines(file, _SEARCHED_LINES)
    events = [_event(line) for line in lines]
    begin = next((number for number in reversed(range(len(events))) if events[number].startswith(_SUBMITTED)), None)
    if begin is None or not any(map(_DIED.search, events[begin:])):
        return []
    found = last_error(events[begin:])
    if found is None:
        return []
    first = begin + found.begin
    trace = [] if first >= len(lines) - shown else [*events[first : first + _TRACE_LINES], "..."]
    return [f"The driver's last error: {found.text}", *trace, ""]


def _event(line: str) -> str:
    """Return the message of a JSON line of Airflow, a driver's error with its level; any other line unchanged."""
    try:
        found = json.loads(line) if line.startswith("{") else {"event": line}
        text = str(found["event"])
        return f"ERROR {text}" if text.startswith("[") and found.get("level") in _ERRORS else text
    except (ValueError, KeyError, TypeError):
        return line


def follow(
    find: Callable[[], Path | None], file: Path, read: int, *, pause: Callable[[float], None] = time.sleep
) -> Iterator[str]:
    """Yield each added line, forever. Switch to a newer log when ``find`` returns one, such as that of a new attempt."""
    rest = b""
    while True:
        with file.open("rb") as source:
            if source.seek(0, 2) < read:
                read, rest = 0, b""  # the file was truncated or replaced
            source.seek(read)
            added = source.read()
        read += len(added)
        *lines, rest = (rest + added).split(b"\n")
        yield from map(_text, lines)
        newest = find()
        if newest is not None and newest != file:
            file, read, rest = newest, 0, b""
        elif not added:
            pause(_POLL_SECONDS)


def readable(line: str) -> str:
    """Return a JSON line of Airflow as time, level and message; return any other line unchanged. No I/O."""
    if not line.startswith("{"):
        return line
    try:
        record = json.loads(line)
        head = f"[{record['timestamp']}] {str(record.get('level', '')).upper()} {record['event']}"
    except (ValueError, KeyError, TypeError):
        return line
    more = " ".join(f"{key}={value}" for key, value in record.items() if key not in _LEFT_OUT)
    return f"{head} {more}".rstrip()


def _text(line: bytes) -> str:
    return line.decode("utf-8", errors="replace").rstrip("\r\n")


def _last_change(file: Path) -> tuple[float, str]:
    try:
        return file.stat().st_mtime, str(file)
    except FileNotFoundError:
        return 0.0, str(file)
