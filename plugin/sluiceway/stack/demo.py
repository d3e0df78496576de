"""Runs the demo (``make demo``), Kafka Connect's quickstart: copies a log file through Kafka with two DAGs on Spark."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    from sluiceway.rest.client import ConnectClient

LINES = 10_000
TOPIC = "demo-access-log"
SOURCE, SINK = "demo-source", "demo-sink"
TIMEOUT = 300.0
"""Seconds within which connectors run, on a small busy machine too."""

_PROGRESS_SECONDS = 5.0
_POLL_SECONDS = 0.2

_PATHS = ("/", "/login", "/cart", "/products/{n}", "/products/{n}/reviews", "/search?q=gate", "/static/app.js", "/api/orders/{n}")
_AGENTS = ("Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0", "curl/8.5.0", "Googlebot/2.1", "okhttp/4.12")
_STATUSES = (200, 200, 200, 200, 200, 200, 304, 302, 404, 500)


def sample_lines(count: int = LINES, seed: int = 7) -> list[str]:
    """Return ``count`` lines of a web server's access log. The same seed gives the same lines."""
    choose = random.Random(seed)  # noqa: S311 (sample data)
    at = datetime(2026, 1, 5, 6, 0, tzinfo=timezone.utc)
    lines = []
    for _ in range(count):
        at += timedelta(milliseconds=choose.randrange(5, 4000))
        address = ".".join(str(choose.randrange(1, 255)) for _ in range(4))
        path = choose.choice(_PATHS).format(n=choose.randrange(1, 5000))
        lines.append(
            f'{address} - - [{at:%d/%b/%Y:%H:%M:%S +0000}] "GET {path} HTTP/1.1" {choose.choice(_STATUSES)} '
            f'{choose.randrange(150, 90_000)} "-" "{choose.choice(_AGENTS)}"'
        )
    return lines


def connector_configs(source: Path, copy: Path) -> dict[str, dict[str, str]]:
    """Return the configs of the two connectors, as for Kafka Connect."""
    return {
        SOURCE: {"connector.class": "FileStreamSource", "tasks.max": "1", "file": str(source), "topic": TOPIC},
        SINK: {"connector.class": "FileStreamSink", "tasks.max": "1", "file": str(copy), "topics": TOPIC},
    }


def run_main_job(client: ConnectClient, folder: Path, say: Callable[[str], None], *, timeout: float = TIMEOUT) -> Path:
    """Create the two connectors, wait until they run and the sink file equals the source file, and return the sink file.

    A sink file that will never equal it, because somebody changed offsets or files, is reported instead of waited for.
    Raises ConnectError, with the connectors' states, if that takes longer than ``timeout`` seconds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    source, copy = folder / "access.log", folder / "copy.log"
    if not source.exists():
        source.write_text("\n".join(sample_lines()) + "\n", encoding="utf-8")
        say(f"Made {source} with {LINES:,} lines")
    create(client, connector_configs(source, copy), say)

    def copied() -> str | None:
        return None if _is_final(client, source, copy) else f"{_lines(copy):,} of {_lines(source):,} lines copied"

    await_running(client, (SOURCE, SINK), say, timeout=timeout, waiting=copied)
    if _contents(copy) != _contents(source):
        say(
            f"{copy} is no longer a copy of {source}, because offsets of {SOURCE} or {SINK}, or one of the files, were changed. "
            f"The demo goes on. To begin again with equal files: `sluiceway down`, delete {folder.parent}, `sluiceway demo`."
        )
    return copy


def _is_final(client: ConnectClient, source: Path, copy: Path) -> bool:
    """Return True if the copy is complete, or if no more records can complete it."""
    found, wanted = _contents(copy), _contents(source)
    if found == wanted or not wanted.startswith(found):
        return True
    # The sink commits what it has written. An offset beyond the lines that are missing in the file is of an earlier file.
    committed: int = sum(each["offset"]["kafka_offset"] for each in client.offsets(SINK))
    return committed >= wanted.count(b"\n")


def create(client: ConnectClient, configs: Mapping[str, Mapping[str, str]], say: Callable[[str], None]) -> None:
    """Create connectors. Those that exist get the config and are resumed, so that a second demo ends as the first."""
    for name, config in configs.items():
        if client.put_config(name, config):
            say(f"Created connector {name}")
        else:
            client.resume(name)
            say(f"Connector {name} exists already and continues where it was")


def await_running(
    client: ConnectClient,
    names: Iterable[str],
    say: Callable[[str], None],
    *,
    timeout: float = TIMEOUT,
    waiting: Callable[[], str | None] = lambda: None,
) -> None:
    """Wait until each connector and all of its tasks are RUNNING, and ``waiting`` returns None.

    Says every few seconds what it waits for: states that are not RUNNING, and the text of ``waiting``.
    Raises ConnectError with that line after ``timeout`` seconds.
    """
    started = time.monotonic()
    shown = 0.0
    while left := [*_not_running(client, names), *filter(None, [waiting()])]:
        waited = time.monotonic() - started
        if waited > timeout:
            raise ConnectError(f"After {timeout:.0f} s: {'; '.join(left)}. `sluiceway logs NAME` shows a connector's log.")
        if waited - shown >= _PROGRESS_SECONDS:
            shown = waited
            say(f"  {'; '.join(left)}")
        time.sleep(_POLL_SECONDS)


def _not_running(client: ConnectClient, names: Iterable[str]) -> list[str]:
    """Return a text for each connector that is not RUNNING with at least one task and all tasks RUNNING."""
    left = []
    for name in names:
        status = client.status(name)
        tasks = [task["state"] for task in status["tasks"]]
        if {status["connector"]["state"], *(tasks or ["none"])} != {"RUNNING"}:
            left.append(f"{name} {status['connector']['state']} ({_task_states(status)})")
    return left


def report(client: ConnectClient, folder: Path) -> str:
    """Return the demo's closing report: number of lines in and out, and the connectors' states."""
    source, copy = folder / "access.log", folder / "copy.log"
    rows = [f"Lines in   {_lines(source):>8,}  {source}", f"Lines out  {_lines(copy):>8,}  {copy}"]
    for name in (SOURCE, SINK):
        status = client.status(name)
        rows.append(f"{name:<12} {status['connector']['state']}  ({_task_states(status)})")
    return "\n".join(rows)


def _task_states(status: Mapping[str, Any]) -> str:
    return ", ".join(f"task {task['id']} {task['state']}" for task in status["tasks"]) or "no task yet"


def _lines(file: Path) -> int:
    return _contents(file).count(b"\n")


def _contents(file: Path) -> bytes:
    return file.read_bytes() if file.exists() else b""
