"""Implements ``sluiceway top``: a live table of connectors with their states, rates and lags.

On a terminal, it shows as many connectors as fit, those in trouble first, and reads the offsets of these only. So a refresh
costs one request for all statuses, and a number of requests that depends on the terminal's height.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluiceway.cli.common import Subparsers, add_server, client, say
from sluiceway.cli.output import table

if TYPE_CHECKING:
    from sluiceway.cli.top_table import Sample
    from sluiceway.provider.progress.probe import KafkaProbe
    from sluiceway.rest.client import ConnectClient

# Sinks commit offsets periodically, by default once a minute. A rate over a shorter time would be 0 or much too high.
_WINDOW_SECONDS = 60.0
_OTHER_LINES = 3  # of the terminal: the summary, the headings, the cursor
_CLEAR = "\033[H\033[J"
_BOLD, _RED, _YELLOW, _PLAIN = "\033[1m", "\033[31m", "\033[33m", "\033[0m"


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser("top", help="show connectors, their states, rates and lags, repeatedly until Ctrl-C")
    parser.add_argument("-i", "--interval", type=_seconds, default=2.0, metavar="SECONDS", help="default: 2")
    parser.add_argument("-n", "--count", type=int, metavar="N", help="exit after this number of tables (1 shows no rates)")
    parser.add_argument(
        "--worker",
        type=Path,
        metavar="WORKER.properties",
        help="the worker's file, to read the end offsets of topics from Kafka, which lags need (default: that of up)",
    )
    add_server(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print a table at each interval: on a terminal in the same place, otherwise one below the other."""
    from sluiceway.cli.top_table import rows, summary

    live = sys.stdout.isatty()
    lags = _Lags(options.worker)
    samples: deque[Sample] = deque(maxlen=1 + max(1, int(_WINDOW_SECONDS / options.interval)))
    shown = 0
    with client(options) as api:
        while True:
            size = shutil.get_terminal_size()
            now, names = _sample(api, lags, max(1, size.lines - _OTHER_LINES) if live else None)
            samples.append(now)
            lines = table(rows(names, samples))
            head = f"{api.server}  {time.strftime('%H:%M:%S')}  {summary(now.statuses, len(names))}"
            say(_live(head, lines, size.columns) if live else lines)
            shown += 1
            if shown == options.count:
                return 0
            time.sleep(options.interval)


def _sample(api: ConnectClient, lags: _Lags, most: int | None) -> tuple[Sample, list[str]]:
    """Return a sample, and the names of the connectors to show: at most ``most``, or all."""
    from sluiceway.cli.top_table import Sample, ranked

    statuses = api.statuses()
    shown = ranked(statuses)[:most]
    offsets = {name: _offsets(api, name) for name in shown}
    sinks = [name for name in shown if statuses[name]["type"] == "sink"]
    return Sample(time.monotonic(), statuses, offsets, lags.read(api, sinks, offsets)), shown


def _offsets(api: ConnectClient, name: str) -> list[dict[str, Any]]:
    from sluiceway.rest.client import RestError

    try:
        return api.offsets(name)
    except RestError as error:
        if error.status:
            return []  # the connector was deleted since, or its class is not installed
        raise


class _Lags:
    """Reads the lags of sinks; returns none without a worker's file, and while Kafka does not answer."""

    def __init__(self, worker_file: Path | None) -> None:
        from sluiceway.folders import state_home

        default = state_home() / "worker.properties"
        self._file = worker_file or (default if default.exists() else None)
        self._probe: KafkaProbe | None = None

    def read(self, api: ConnectClient, sinks: list[str], offsets: dict[str, list[dict[str, Any]]]) -> dict[str, int | None]:
        """Return the lag of each sink, given the offsets that the REST API returned."""
        from sluiceway.cli.top_table import committed
        from sluiceway.errors import InternalTopicError, KafkaClientError
        from sluiceway.provider.progress.connector_progress import measure
        from sluiceway.provider.progress.probe_request import ProbeRequest

        if self._file is None:
            return {}
        topics = {name: _topics(api, name) for name in sinks}
        # The REST API returns offsets by connector, so the connector's name stands for its group.
        commits = {name: committed(offsets[name]) for name in topics}
        requests = [ProbeRequest(name, name, topics[name]) for name in topics if topics[name] or commits[name]]
        if not requests:
            return {}
        try:
            snapshot = self._opened(self._file).snapshot(requests, commits)
        except (KafkaClientError, InternalTopicError):
            return {}
        return {request.name: measure(request, snapshot).lag for request in requests}

    def _opened(self, file: Path) -> KafkaProbe:
        from sluiceway.cli.common import worker
        from sluiceway.provider.progress.probe import KafkaProbe

        self._probe = self._probe or KafkaProbe(worker(file))
        return self._probe


def _topics(api: ConnectClient, name: str) -> tuple[str, ...]:
    """Return the topics that a sink reads."""
    from sluiceway.config.connector import TOPICS_REGEX, sink_topics
    from sluiceway.rest.client import RestError

    try:
        config = api.config(name)
    except RestError as error:
        if error.status:
            return ()  # the connector was deleted since
        raise
    return sink_topics(config, _active_topics(api, name) if config.get(TOPICS_REGEX) else ())


def _active_topics(api: ConnectClient, name: str) -> list[str]:
    from sluiceway.rest.client import RestError

    try:
        return api.topics(name)
    except RestError as error:
        if error.status:
            return []  # topic.tracking.enable=false
        raise


def _live(head: str, lines: str, columns: int) -> str:
    """Return what to write to a terminal, cut to its width: a line that wraps would move the first ones out of it."""
    head, first, *others = (line[:columns] for line in (head, *lines.splitlines()))
    return "\n".join((f"{_CLEAR}{head}", f"{_BOLD}{first}{_PLAIN}", *map(_colored, others)))


def _colored(line: str) -> str:
    color = _RED if "FAILED" in line else _YELLOW if "UNASSIGNED" in line or "waiting)" in line else ""
    return f"{color}{line}{_PLAIN}" if color else line


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0.1 <= seconds <= 3600:
        raise ValueError(text)
    return seconds
