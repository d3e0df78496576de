"""Runs the demo (``make demo``), Kafka Connect's quickstart: copies a log file through Kafka with two DAGs on Spark."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

from sluiceway.errors import ConnectError
from sluiceway.rest.client import ConnectClient

LINES = 10_000
TOPIC = "demo-access-log"
SOURCE, SINK = "demo-source", "demo-sink"

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


def run_main_job(client: ConnectClient, folder: Path, say: Callable[[str], None], *, timeout: float = 300.0) -> Path:
    """Create the two connectors and wait until the sink file equals the source file; return the sink file.

    Raises ConnectError, with the connectors' statuses, if that takes longer than ``timeout`` seconds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    source, copy = folder / "access.log", folder / "copy.log"
    if not source.exists():
        source.write_text("\n".join(sample_lines()) + "\n", encoding="utf-8")
        say(f"Made {source} with {LINES:,} lines")
    for name, config in connector_configs(source, copy).items():
        client.put_config(name, config)
        say(f"Created connector {name}; its DAG starts a Spark application")
    wanted = source.read_bytes()
    started = time.monotonic()
    shown = 0.0
    while not (copy.exists() and copy.stat().st_size >= len(wanted) and copy.read_bytes() == wanted):
        waited = time.monotonic() - started
        if waited > timeout:
            states = "; ".join(f"{name}: {client.status(name)}" for name in (SOURCE, SINK))
            raise ConnectError(f"{copy} does not equal {source} after {timeout:.0f} s. Statuses: {states}")
        if waited - shown >= 5:
            shown = waited
            states = ", ".join(f"{name} {client.status(name)['connector']['state']}" for name in (SOURCE, SINK))
            say(f"  {states}; {_lines(copy):,} of {_lines(source):,} lines copied")
        time.sleep(0.2)
    return copy


def report(client: ConnectClient, folder: Path) -> str:
    """Return the demo's closing report: number of lines in and out, and the connectors' states."""
    source, copy = folder / "access.log", folder / "copy.log"
    rows = [f"Lines in   {_lines(source):>8,}  {source}", f"Lines out  {_lines(copy):>8,}  {copy}"]
    for name in (SOURCE, SINK):
        status = client.status(name)
        tasks = ", ".join(f"task {task['id']} {task['state']}" for task in status["tasks"])
        rows.append(f"{name:<12} {status['connector']['state']}  ({tasks})")
    return "\n".join(rows)


def _lines(file: Path) -> int:
    return file.read_bytes().count(b"\n") if file.exists() else 0
