"""``airflow sluiceway ...``: the ``sluiceway`` verbs on connectors, inside Airflow's command line.

Airflow loads the commands at every call of its command line, so this module imports only their declarations. A verb imports
its code when it runs, and adds its options to the parser that Airflow creates for it.
"""

from __future__ import annotations

import argparse
import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow.cli.cli_config import CLICommand

GROUP = "sluiceway"
_RUN = "sluiceway.cli.airflow_commands.run"
_MOUNTED = "/sluiceway"


def get_cli_commands() -> list[CLICommand]:
    """Return the command group. Airflow's provider info names this function under ``cli``."""
    from airflow.cli.cli_config import ActionCommand, GroupCommand, lazy_load_command

    # Airflow only reads the flags of an Arg and calls add_to_parser, so _VerbArguments can stand in for it.
    actions = [
        ActionCommand(name=name, help=text, func=lazy_load_command(_RUN), args=(_VerbArguments(module, name),))  # type: ignore[arg-type]
        for module in _verbs()
        for name, text in _declared_by(module).items()
    ]
    text = "View and control connectors through the REST API"
    description = (
        f"{text}. Default: the API mounted in this Airflow's API server (base_url in section [api], else this machine's)."
    )
    return [GroupCommand(name=GROUP, help=text, description=description, subcommands=actions)]


def run(options: argparse.Namespace) -> None:
    """Run a verb and exit with its code (see ``sluiceway.exit_codes``)."""
    from sluiceway.cli.main import run_verb

    if getattr(options, "server", "") is None and options.context is None:
        options.server = _server()
    sys.exit(run_verb(options))


def _server() -> str | None:
    """Return the address of the API server, or None if the environment or the current context names another REST API."""
    from airflow.configuration import conf

    from sluiceway.cli import context_file
    from sluiceway.cli.common import CONTEXT_VARIABLE, SERVER_VARIABLE

    if os.environ.get(SERVER_VARIABLE) or os.environ.get(CONTEXT_VARIABLE) or context_file.load().current:
        return None
    base = conf.get("api", "base_url", fallback="") or conf.get("core", "execution_api_server_url", fallback="")
    if not base:  # Airflow's tasks, too, then expect the API server on their own machine
        scheme = "https" if conf.get("api", "ssl_cert", fallback="") else "http"
        base = f"{scheme}://localhost:{conf.getint('api', 'port', fallback=8080)}"
    return f"{base.rstrip('/').removesuffix('/execution')}{_MOUNTED}"


def _verbs() -> tuple[ModuleType, ...]:
    """Return the modules of the verbs that work with a running Airflow."""
    from sluiceway.cli import (
        apply,
        config,
        control,
        describe,
        dlq,
        get,
        history,
        intervals,
        loggers,
        offsets,
        patch,
        plugins,
        preview,
        restart,
        signals,
        top,
        validate,
    )

    return (
        get,
        describe,
        apply,
        validate,
        preview,
        patch,
        history,
        intervals,
        control,
        restart,
        offsets,
        signals,
        dlq,
        plugins,
        loggers,
        top,
        config,
    )


class _Subparsers:
    """Replaces argparse's subparsers: the requested verb gets Airflow's parser, other verbs of its module a throwaway parser."""

    def __init__(self, name: str = "", parser: argparse.ArgumentParser | None = None) -> None:
        self.found: dict[str, str] = {}
        self._name = name
        self._parser = parser

    def add_parser(self, name: str, *, help: str = "", **_: Any) -> argparse.ArgumentParser:  # noqa: A002 (argparse's name)
        self.found[name] = help
        return self._parser if self._parser is not None and name == self._name else argparse.ArgumentParser(add_help=False)


class _VerbArguments:
    """All arguments of one verb, in the form of Airflow's ``Arg``."""

    def __init__(self, module: ModuleType, name: str) -> None:
        self.flags = (name,)
        self._module = module

    def add_to_parser(self, parser: argparse.ArgumentParser) -> None:
        self._module.register(_Subparsers(self.flags[0], parser))


def _declared_by(module: ModuleType) -> dict[str, str]:
    subparsers = _Subparsers()
    module.register(subparsers)
    return subparsers.found
