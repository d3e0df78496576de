"""``sluiceway demo``: the whole stack with a file going through Kafka into another file; what ``make demo`` runs."""

from __future__ import annotations

import argparse

from sluiceway.cli.common import Subparsers, say


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("demo", help="start everything and copy a log file through Kafka, as two DAGs on Spark")
    parser.set_defaults(run=run)


def run(_options: argparse.Namespace) -> int:
    """Start the stack, wait until the copy equals the original, print both, and leave the stack running."""
    from sluiceway.folders import state_home
    from sluiceway.rest.client import ConnectClient
    from sluiceway.stack import demo
    from sluiceway.stack.up import up

    addresses = up(None, say)
    folder = state_home() / "demo"
    with ConnectClient(addresses.rest) as client:
        demo.run_main_job(client, folder, say)
        say(demo.report(client, folder))
    say(f"REST API   {addresses.rest}\nAirflow    {addresses.airflow}\nEverything is left running; `sluiceway down` ends it.")
    return 0
