"""``sluiceway demo``: starts the whole stack and copies a file through Kafka to another file. ``make demo`` runs it."""

from __future__ import annotations

import argparse

from sluiceway.cli.common import Subparsers, say


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("demo", help="start the stack and copy a log file through Kafka with two DAGs on Spark")
    parser.set_defaults(run=run)


def run(_options: argparse.Namespace) -> int:
    """Start the stack, wait until the copy equals the original, print both, and start the shop; all connectors run then."""
    from sluiceway.folders import state_home
    from sluiceway.rest.client import ConnectClient
    from sluiceway.stack import demo, demo_shop
    from sluiceway.stack.up import up

    addresses = up(None, say)
    folder = state_home() / "demo"
    with ConnectClient(addresses.rest) as client:
        demo.run_main_job(client, folder, say)
        say(demo.report(client, folder))
        demo_shop.start(client, state_home(), say)
    say(f"REST API   {addresses.rest}\nAirflow    {addresses.airflow}\nEverything keeps running. Stop it with `sluiceway down`.")
    return 0
