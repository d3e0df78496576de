"""``sluiceway standalone``: runs connectors from files in this process, without Airflow."""

from __future__ import annotations

import argparse
from pathlib import Path

from sluiceway.cli.common import Subparsers


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "standalone", help="run connectors from files in this process, as connect-standalone.sh does, until SIGTERM or Ctrl-C"
    )
    parser.add_argument("worker", type=Path, metavar="WORKER.properties")
    parser.add_argument("connectors", type=Path, nargs="*", metavar="CONNECTOR.properties|.json")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run until SIGTERM or Ctrl-C. Return 3 if a connector's config is refused."""
    from sluiceway.stack import standalone

    return standalone.run(options.worker, options.connectors)
