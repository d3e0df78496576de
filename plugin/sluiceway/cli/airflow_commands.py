"""``airflow sluiceway ...``: this command's verbs on connectors inside Airflow's own command line.

Airflow asks for the commands at each of its calls, so this module imports nothing but their declarations; what a verb does is
imported when it runs. Each verb declares its options itself, on the parser that Airflow makes for it.
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
    """Return the group of commands, as Airflow's provider info names it under ``cli``."""
    from airflow.cli.cli_config import ActionCommand, GroupCommand, lazy_load_command

    # Airflow's Arg is asked for no more than its flags and to add itself to a parser, which is what _Declared does too.
    actions = [
        ActionCommand(name=name, help=text, func=lazy_load_command(_RUN), args=(_Declared(module, name),))
        for module in _verbs()
        for name, text in _declared_by(module).items()
    ]
    text = "Look at and control connectors through the REST API"
    description = f"{text}: by default the one under this Airflow's API server, where option base_url of section api says."
    return [GroupCommand(name=GROUP, help=text, description=description, subcommands=actions)]


def run(options: argparse.Namespace) -> None:
    """Run a verb and end the process with its exit code; ``exit_codes`` has what they say."""
    from sluiceway.cli.main import run_verb

    if getattr(options, "server", "") is None and options.context is None:
        options.server = _server()
    sys.exit(run_verb(options))


def _server() -> str | None:
    """Return the API server's address; None where the environment or a context in use names another REST API."""
    from airflow.configuration import conf

    from sluiceway.cli import context_file
    from sluiceway.cli.common import CONTEXT_VARIABLE, SERVER_VARIABLE

    if os.environ.get(SERVER_VARIABLE) or os.environ.get(CONTEXT_VARIABLE) or context_file.load().current:
        return None
    base = conf.get("api", "base_url", fallback="").rstrip("/")
    return f"{base}{_MOUNTED}" if base else None


def _verbs() -> tuple[ModuleType, ...]:
    """Return the modules of the verbs that make sense on an Airflow that runs already."""
    from sluiceway.cli import (
        apply,
        config,
        control,
        describe,
        dlq,
        get,
        loggers,
        offsets,
        patch,
        plugins,
        restart,
        top,
        validate,
    )

    return (get, describe, apply, validate, patch, control, restart, offsets, dlq, plugins, loggers, top, config)


class _Subparsers:
    """Stands in for argparse's subparsers: one verb gets Airflow's parser, its neighbours in the module one that is forgotten."""

    def __init__(self, name: str = "", parser: argparse.ArgumentParser | None = None) -> None:
        self.found: dict[str, str] = {}
        self._name = name
        self._parser = parser

    def add_parser(self, name: str, *, help: str = "", **_: Any) -> argparse.ArgumentParser:  # noqa: A002 (argparse's name)
        self.found[name] = help
        return self._parser if self._parser is not None and name == self._name else argparse.ArgumentParser(add_help=False)


class _Declared:
    """All arguments of one verb."""

    def __init__(self, module: ModuleType, name: str) -> None:
        self.flags = (name,)
        self._module = module

    def add_to_parser(self, parser: argparse.ArgumentParser) -> None:
        self._module.register(_Subparsers(self.flags[0], parser))


def _declared_by(module: ModuleType) -> dict[str, str]:
    subparsers = _Subparsers()
    module.register(subparsers)
    return subparsers.found
