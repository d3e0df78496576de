"""Implements ``sluiceway top``: a live table of connectors with their states, rates and lags."""

from __future__ import annotations

import argparse
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
    from sluiceway.cli.top_table import rows

    live = sys.stdout.isatty()
    lags = _Lags(options.worker)
    samples: deque[Sample] = deque(maxlen=1 + max(1, int(_WINDOW_SECONDS / options.interval)))
    shown = 0
    with client(options) as api:
        while True:
            now = _sample(api, lags)
            before = samples[0] if samples else None
            samples.append(now)
            head = f"{api.server}  {time.strftime('%H:%M:%S')}  {len(now.statuses)} connector(s)"
            say(_live(head, table(rows(now, before))) if live else table(rows(now, before)))
            shown += 1
            if shown == options.count:
                return 0
            time.sleep(options.interval)


def _sample(api: ConnectClient, lags: _Lags) -> Sample:
    from sluiceway.cli.top_table import Sample

    statuses = api.statuses()
    offsets = {name: _offsets(api, name) for name in statuses}
    return Sample(time.monotonic(), statuses, offsets, lags.read(api, statuses, offsets))


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

    def read(
        self, api: ConnectClient, statuses: dict[str, dict[str, Any]], offsets: dict[str, list[dict[str, Any]]]
    ) -> dict[str, int | None]:
        """Return the lag of each sink, given the statuses and offsets that the REST API returned."""
        from sluiceway.cli.top_table import committed
        from sluiceway.errors import InternalTopicError, KafkaClientError
        from sluiceway.provider.progress.connector_progress import measure
        from sluiceway.provider.progress.probe_request import ProbeRequest

        if self._file is None:
            return {}
        topics = _topics(api, {name for name, status in statuses.items() if status["type"] == "sink"})
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


def _topics(api: ConnectClient, sinks: set[str]) -> dict[str, tuple[str, ...]]:
    """Return the topics that each sink reads."""
    from sluiceway.config.connector import TOPICS_REGEX, sink_topics

    configs = {name: info["config"] for name, info in api.infos().items() if name in sinks}
    return {
        name: sink_topics(config, _active_topics(api, name) if config.get(TOPICS_REGEX) else ())
        for name, config in configs.items()
    }


def _active_topics(api: ConnectClient, name: str) -> list[str]:
    from sluiceway.rest.client import RestError

    try:
        return api.topics(name)
    except RestError as error:
        if error.status:
            return []  # topic.tracking.enable=false
        raise


def _live(head: str, lines: str) -> str:
    first, *others = lines.splitlines()
    return "\n".join((f"{_CLEAR}{head}", f"{_BOLD}{first}{_PLAIN}", *map(_colored, others)))


def _colored(line: str) -> str:
    color = _RED if "FAILED" in line else _YELLOW if "UNASSIGNED" in line else ""
    return f"{color}{line}{_PLAIN}" if color else line


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0.1 <= seconds <= 3600:
        raise ValueError(text)
    return seconds
