"""``sluiceway top``: a live table of connectors with their states, rates and lags."""

from __future__ import annotations

import argparse
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluiceway.cli.common import Subparsers, add_server, client, say
from sluiceway.cli.output import table

if TYPE_CHECKING:
    from sluiceway.cli.top_table import Look
    from sluiceway.kafka.lag import Offsets
    from sluiceway.rest.client import ConnectClient

# Offsets are committed now and then, by default once a minute: rates from one look to the next would be 0 or enormous.
_WINDOW_SECONDS = 60.0
_CLEAR = "\033[H\033[J"
_BOLD, _RED, _YELLOW, _PLAIN = "\033[1m", "\033[31m", "\033[33m", "\033[0m"


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("top", help="show connectors, their states, rates and lags, again and again until Ctrl-C")
    parser.add_argument("-i", "--interval", type=_seconds, default=2.0, metavar="SECONDS", help="default: 2")
    parser.add_argument("-n", "--count", type=int, metavar="N", help="end after so many tables (1 shows no rates)")
    parser.add_argument(
        "--worker",
        type=Path,
        metavar="WORKER.properties",
        help="the worker's file, to ask Kafka for the ends of topics, which lags are counted from (default: that of up)",
    )
    add_server(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print a table every so often: on a terminal in the place of the one before, else one below the other."""
    from sluiceway.cli.top_table import rows

    live = sys.stdout.isatty()
    ends = _Ends(options.worker)
    looks: deque[Look] = deque(maxlen=1 + max(1, int(_WINDOW_SECONDS / options.interval)))
    shown = 0
    with client(options) as api:
        while True:
            now = _look(api, ends)
            before = looks[0] if looks else None
            looks.append(now)
            head = f"{api.server}  {time.strftime('%H:%M:%S')}  {len(now.statuses)} connector(s)"
            say(_live(head, table(rows(now, before))) if live else table(rows(now, before)))
            shown += 1
            if shown == options.count:
                return 0
            time.sleep(options.interval)


def _look(api: ConnectClient, ends: _Ends) -> Look:
    from sluiceway.cli.top_table import Look, committed

    statuses = api.statuses()
    offsets = {name: _offsets(api, name) for name in statuses}
    if not ends.known:
        return Look(time.monotonic(), statuses, offsets)
    topics = _topics(api, {name for name, status in statuses.items() if status["type"] == "sink"})
    begins, found = ends.of([(topics.get(name, ()), committed(each)) for name, each in offsets.items()])
    return Look(time.monotonic(), statuses, offsets, topics, begins, found)


def _topics(api: ConnectClient, sinks: set[str]) -> dict[str, tuple[str, ...]]:
    """Return the topics that each sink reads."""
    from sluiceway.config.connector import TOPICS_REGEX, sink_topics

    configs = {name: info["config"] for name, info in api.infos().items() if name in sinks}
    return {name: sink_topics(config, _seen(api, name) if config.get(TOPICS_REGEX) else ()) for name, config in configs.items()}


def _seen(api: ConnectClient, name: str) -> list[str]:
    from sluiceway.rest.client import RestError

    try:
        return api.topics(name)
    except RestError as error:
        if error.status:
            return []  # topic.tracking.enable=false
        raise


def _offsets(api: ConnectClient, name: str) -> list[dict[str, Any]]:
    from sluiceway.rest.client import RestError

    try:
        return api.offsets(name)
    except RestError as error:
        if error.status:
            return []  # deleted meanwhile, or its class is not there
        raise


class _Ends:
    """Asks Kafka where partitions begin and end; knows neither without a worker's file, or while Kafka does not answer."""

    def __init__(self, worker_file: Path | None) -> None:
        from sluiceway.folders import state_home

        made = state_home() / "worker.properties"
        self._file = worker_file or (made if made.exists() else None)
        self._admin: Any = None

    @property
    def known(self) -> bool:
        """Whether there is a cluster to ask."""
        return self._file is not None

    def of(self, sinks: Sequence[tuple[Sequence[str], Offsets]]) -> tuple[Offsets, Offsets]:
        """Return the first offsets of partitions without a commit and the ends of all, given each sink's topics and commits."""
        from sluiceway.errors import InternalTopicError, KafkaClientError
        from sluiceway.kafka.admin import beginning_offsets, end_offsets, partition_counts
        from sluiceway.kafka.lag import existing, partitions_of

        if self._file is None or not any(topics or committed for topics, committed in sinks):
            return {}, {}
        admin = self._client(self._file)
        try:
            counts = partition_counts(admin)
            fresh = {each for topics, committed in sinks for each in partitions_of(topics, counts) if each not in committed}
            read = existing({each for _, committed in sinks for each in committed}, counts)
            return beginning_offsets(admin, fresh), end_offsets(admin, fresh | read)
        except (KafkaClientError, InternalTopicError):
            return {}, {}

    def _client(self, file: Path) -> Any:
        from sluiceway.cli.common import worker
        from sluiceway.kafka.clients import admin_client

        self._admin = self._admin or admin_client(worker(file))
        return self._admin


def _live(head: str, lines: str) -> str:
    first, *others = lines.splitlines()
    return "\n".join((f"{_CLEAR}{head}", f"{_BOLD}{first}{_PLAIN}", *map(_coloured, others)))


def _coloured(line: str) -> str:
    colour = _RED if "FAILED" in line else _YELLOW if "UNASSIGNED" in line else ""
    return f"{colour}{line}{_PLAIN}" if colour else line


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0.1 <= seconds <= 3600:
        raise ValueError(text)
    return seconds
