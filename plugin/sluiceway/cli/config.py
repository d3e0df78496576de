"""``sluiceway config``: prints the settings that an Airflow installation needs, and the addresses of Kafka and REST API."""

from __future__ import annotations

import argparse
from pathlib import Path

from sluiceway.cli.common import Subparsers, local_server, worker
from sluiceway.errors import ConfigError


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("config", help="print the settings for your own Airflow, or an address of the local stack")
    parser.add_argument(
        "system",
        choices=("airflow", "bootstrap", "rest"),
        help="bootstrap: Kafka's brokers; rest: the REST API",
    )
    parser.add_argument(
        "worker",
        type=Path,
        nargs="?",
        metavar="WORKER.properties",
        help="path of the worker file on Airflow's machines; for bootstrap, default: that of 'sluiceway up'",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print environment variables in the syntax of shells and environment files, or an address."""
    if options.system == "rest":
        print(local_server())
        return 0
    if options.system == "bootstrap":
        print(worker(options.worker).bootstrap_servers)
        return 0
    import shlex

    from sluiceway.provider.settings import airflow_settings

    if options.worker is not None and not options.worker.is_file():
        raise ConfigError(f"{options.worker} is not a file. Name the worker file at the path that it has on Airflow's machines.")
    for key, value in airflow_settings(options.worker).items():
        print(f"{key}={shlex.quote(value)}")
    return 0
