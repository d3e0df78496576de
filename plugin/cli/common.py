"""What several subcommands share."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sluiceway.config.worker import WorkerConfig
    from sluiceway.rest.client import ConnectClient

Subparsers = argparse._SubParsersAction

SERVER_VARIABLE = "SLUICEWAY_SERVER"
TOKEN_VARIABLE = "SLUICEWAY_TOKEN"  # noqa: S105 (a variable's name)


def add_server(parser: argparse.ArgumentParser) -> None:
    """Add the option that says which REST API to call."""
    parser.add_argument(
        "--server",
        metavar="URL",
        default=os.environ.get(SERVER_VARIABLE, "http://localhost:8083"),
        help=f"the REST API (default: ${SERVER_VARIABLE} or http://localhost:8083); under Airflow, "
        f"put an access token into ${TOKEN_VARIABLE}",
    )


def client(options: argparse.Namespace) -> ConnectClient:
    """Return a client for the chosen server; a token is taken from the environment, where ``ps`` does not show it."""
    from sluiceway.rest.client import ConnectClient

    token = os.environ.get(TOKEN_VARIABLE)
    return ConnectClient(options.server, headers={"Authorization": f"Bearer {token}"} if token else None)


def worker(file: Path | None) -> WorkerConfig:
    """Read a worker's properties file; without one, that of ``up``, else Kafka Connect's defaults. Raises ConfigError."""
    from sluiceway.config.properties import read_properties
    from sluiceway.config.worker import WorkerConfig
    from sluiceway.folders import state_home

    made = state_home() / "worker.properties"
    file = file or (made if made.exists() else None)
    return WorkerConfig.of(read_properties(file) if file is not None else {})


def say(line: str) -> None:
    """Print progress at once, also into a pipe."""
    print(line, flush=True)


def log_to_stderr() -> None:
    """Send the log of a long-running command to stderr."""
    import logging

    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="[%(asctime)s] %(levelname)s %(message)s (%(name)s)")


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as columns, the first row being the head."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)
