"""What several subcommands share."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sluiceway.config.worker import WorkerConfig
    from sluiceway.rest.client import ConnectClient

Subparsers = argparse._SubParsersAction

SERVER_VARIABLE = "SLUICEWAY_SERVER"
CONTEXT_VARIABLE = "SLUICEWAY_CONTEXT"
TOKEN_VARIABLE = "SLUICEWAY_TOKEN"  # noqa: S105 (a variable's name)
DEFAULT_SERVER = "http://localhost:8083"

_COMPLETION_SECONDS = 1.0


def add_server(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which REST API to call."""
    parser.add_argument(
        "--server",
        metavar="URL",
        help=f"the REST API, or several of one cluster separated by commas (default: ${SERVER_VARIABLE}, the context in use, "
        f"or {DEFAULT_SERVER}); under Airflow, put an access token into ${TOKEN_VARIABLE}",
    )
    parser.add_argument("--context", metavar="NAME", help=f"a context of 'sluiceway contexts' (default: ${CONTEXT_VARIABLE})")


def add_names(parser: argparse.ArgumentParser, nargs: str | None = "+") -> None:
    """Add connectors' names, as ``names`` (or ``name`` if there is one only), completed by what the server knows."""
    action = parser.add_argument("name" if nargs is None else "names", nargs=nargs, metavar="NAME")
    action.completer = _complete_connector  # type: ignore[attr-defined]


def names_of(options: argparse.Namespace) -> list[str]:
    """Return the connectors named; ``pause connector NAME`` reads like ``pause NAME``, as other tools have it."""
    names: list[str] = options.names
    return names[1:] if len(names) > 1 and names[0] in ("connector", "connectors") else names


def client(options: argparse.Namespace, *, timeout: float = 60.0) -> ConnectClient:
    """Return a client for the chosen server: that of an option, of the environment, of the context in use, or this machine's.

    Credentials come from the context and the environment, never from the command line, where ``ps`` shows them.
    """
    from sluiceway.cli import context_file
    from sluiceway.rest.client import ConnectClient

    context = context_file.Context()
    servers: Sequence[str] = _servers(options.server or ("" if options.context else os.environ.get(SERVER_VARIABLE, "")))
    name = options.context or os.environ.get(CONTEXT_VARIABLE)
    if name or not servers:
        contexts = context_file.load()
        name = name or contexts.current
        context = contexts.get(name) if name else context
    token = os.environ.get(TOKEN_VARIABLE) or context.token()
    return ConnectClient(
        servers or context.servers or DEFAULT_SERVER,
        headers={"Authorization": f"Bearer {token}"} if token else None,
        login=(context.username, context.password() or "") if context.username and not token else None,
        ca=context.ca,
        certificate=(context.certificate, context.key) if context.certificate else None,
        timeout=timeout,
    )


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


def _servers(text: str) -> list[str]:
    from sluiceway.config.parsing import parse_list

    return parse_list(text)


def _complete_connector(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> Iterable[str]:
    from sluiceway.errors import ConnectError

    options = argparse.Namespace(server=getattr(parsed_args, "server", None), context=getattr(parsed_args, "context", None))
    try:
        with client(options, timeout=_COMPLETION_SECONDS) as api:
            return [name for name in api.connectors() if name.startswith(prefix)]
    except ConnectError:
        return []
