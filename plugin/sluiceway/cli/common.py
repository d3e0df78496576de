"""Options, clients and output that several subcommands share."""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from sluiceway.config.worker import WorkerConfig
    from sluiceway.rest.client import ConnectClient

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

SERVER_VARIABLE = "SLUICEWAY_SERVER"
CONTEXT_VARIABLE = "SLUICEWAY_CONTEXT"
TOKEN_VARIABLE = "SLUICEWAY_TOKEN"  # noqa: S105 (a variable's name)
DEFAULT_SERVER = "http://localhost:8083"

_COMPLETION_SECONDS = 1.0
_BAD_REQUEST = 400


def add_server(parser: argparse.ArgumentParser) -> None:
    """Add the options that select the REST API."""
    parser.add_argument(
        "--server",
        metavar="URL",
        help=f"REST API; separate several servers of one cluster by commas (default: ${SERVER_VARIABLE}, the current context, "
        f"that of 'sluiceway up', or {DEFAULT_SERVER}). For the API under Airflow, set ${TOKEN_VARIABLE} to an access token",
    )
    parser.add_argument("--context", metavar="NAME", help=f"context of 'sluiceway contexts' (default: ${CONTEXT_VARIABLE})")


def add_names(parser: argparse.ArgumentParser, nargs: str | None = "+") -> None:
    """Add the argument ``names`` (or ``name``, if ``nargs`` is None); the shell completes it with the server's connectors."""
    action = parser.add_argument("name" if nargs is None else "names", nargs=nargs, metavar="NAME")
    action.completer = _complete_connector  # type: ignore[attr-defined]


def names_of(options: argparse.Namespace) -> list[str]:
    """Return the connector names. Accepts ``pause connector NAME`` for ``pause NAME``, as kcctl does."""
    names: list[str] = options.names
    return names[1:] if len(names) > 1 and names[0] in ("connector", "connectors") else names


def client(options: argparse.Namespace, *, timeout: float = 60.0) -> ConnectClient:
    """Return a client for the server of the option, the environment, the current context, or the local stack, in this order.

    Credentials come from the context and the environment, never from the command line, where ``ps`` would show them.
    ``timeout`` is in seconds. Raises ConfigError.
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
        servers or context.servers or local_server(),
        headers=_user() | ({"Authorization": f"Bearer {token}"} if token else {}),
        login=(context.username, context.password() or "") if context.username and not token else None,
        ca=context.ca,
        certificate=(context.certificate, context.key) if context.certificate else None,
        timeout=timeout,
    )


@contextmanager
def naming_refused(name: str) -> Iterator[None]:
    """Put the connector's name before the error of a refused config, which has none: a command may send several."""
    from sluiceway.rest.client import RestError

    try:
        yield
    except RestError as error:
        if error.status != _BAD_REQUEST:
            raise
        raise RestError(error.status, f"Connector {name}: {error}") from error


def local_server() -> str:
    """Return the address of the running stack of ``sluiceway up``, wherever it listens, or else Kafka Connect's default."""
    from sluiceway.folders import state_home
    from sluiceway.stack.addresses import running_rest

    return running_rest(state_home()) or DEFAULT_SERVER


def worker(file: Path | None) -> WorkerConfig:
    """Read a worker file. Default: that of ``sluiceway up``, else Kafka Connect's defaults. Raises ConfigError."""
    from sluiceway.config.properties import read_properties
    from sluiceway.config.worker import WorkerConfig
    from sluiceway.folders import state_home

    made = state_home() / "worker.properties"
    file = file or (made if made.exists() else None)
    return WorkerConfig.of(read_properties(file) if file is not None else {})


def say(line: str) -> None:
    """Print a line and flush it, so that progress also appears in a pipe."""
    print(line, flush=True)


def log_to_stderr() -> None:
    """Send the log of a long-running command to stderr."""
    import logging

    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="[%(asctime)s] %(levelname)s %(message)s (%(name)s)")


def _user() -> dict[str, str]:
    """Return the header with the user of this machine, for the connectors' histories where the server asks for no login."""
    try:
        return {"Sluiceway-User": getpass.getuser().encode("ascii", "replace").decode()}
    except (OSError, KeyError):  # a container's user without a name
        return {}


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
