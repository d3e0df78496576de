"""``sluiceway config``: prints settings for other programs."""

from __future__ import annotations

import argparse
from pathlib import Path

from sluiceway.cli.common import Subparsers


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("config", help="print the settings that an Airflow of your own needs")
    parser.add_argument("system", choices=("airflow",))
    parser.add_argument(
        "worker", type=Path, nargs="?", metavar="WORKER.properties", help="the worker's file, as Airflow's machines see it"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print environment variables, ready for a shell or an environment file."""
    import shlex

    from sluiceway.provider.settings import airflow_settings

    for key, value in airflow_settings(options.worker).items():
        print(f"{key}={shlex.quote(value)}")
    return 0
