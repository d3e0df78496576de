"""``sluiceway rest``: serves the REST API in a process of its own."""

from __future__ import annotations

import argparse
from pathlib import Path

from sluiceway.cli.common import Subparsers, log_to_stderr, worker


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("rest", help="serve Kafka Connect's REST API until SIGTERM or Ctrl-C")
    parser.add_argument(
        "worker", type=Path, nargs="?", metavar="WORKER.properties", help="worker file (default: that of 'sluiceway up')"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve on the worker's ``listeners`` until SIGTERM or Ctrl-C."""
    config = worker(options.worker)
    log_to_stderr()
    from sluiceway.rest.server import serve

    serve(config)
    return 0
