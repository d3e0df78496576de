"""``sluiceway up``, ``down`` and ``ps``: runs broker, Airflow and REST API on this machine."""

from __future__ import annotations

import argparse
from pathlib import Path

from sluiceway.cli.common import Subparsers, say


def register(subparsers: Subparsers) -> None:
    up = subparsers.add_parser("up", help="start a broker, Airflow and the REST API on this machine")
    up.add_argument(
        "worker", type=Path, nargs="?", metavar="WORKER.properties", help="worker file of your own Kafka (default: start one)"
    )
    up.set_defaults(run=run_up)
    down = subparsers.add_parser("down", help="stop every process that up started; data is kept")
    down.set_defaults(run=run_down)
    ps = subparsers.add_parser("ps", help="show the processes that up started")
    ps.set_defaults(run=run_ps)


def run_up(options: argparse.Namespace) -> int:
    from sluiceway.stack.up import up

    if options.worker is not None:
        _warn(options.worker)
    up(options.worker, say)
    return 0


def _warn(worker: Path) -> None:
    from sluiceway.config.properties import read_properties
    from sluiceway.config.worker_keys import unknown_key_text, unknown_keys

    for key, meant in unknown_keys(read_properties(worker)).items():
        say(f"Warning: {unknown_key_text(key, meant)}")


def run_down(_options: argparse.Namespace) -> int:
    from sluiceway.stack.up import down

    down(say)
    return 0


def run_ps(_options: argparse.Namespace) -> int:
    """Print a line for each process. Return 1 if one of them is not running."""
    from sluiceway.stack.up import ps

    return ps(say)
