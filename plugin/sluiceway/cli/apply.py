"""``sluiceway apply`` and ``diff``: brings connectors to what files say."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from sluiceway import exit_codes
from sluiceway.cli.common import Subparsers, add_server, client, say

if TYPE_CHECKING:
    from sluiceway.cli.diff import Step
    from sluiceway.rest.client import ConnectClient

_DONE = {"create": "created", "change": "configured", "keep": "unchanged", "delete": "deleted"}


def register(subparsers: Subparsers) -> None:
    apply = subparsers.add_parser("apply", help="make connectors from files, or change their config; shows what changes")
    add_files(apply)
    apply.add_argument("--prune", action="store_true", help="delete the connectors that are in none of the files")
    apply.add_argument("--dry-run", action="store_true", help="only show what would change, and check it")
    add_server(apply)
    apply.set_defaults(run=run)
    diff = subparsers.add_parser("diff", help="show what apply would change; exit code 8 if it would change anything")
    add_files(diff)
    diff.add_argument("--prune", action="store_true", help="as for apply")
    add_server(diff)
    diff.set_defaults(run=run_diff)


def add_files(parser: argparse.ArgumentParser) -> None:
    """Add the option that names files of connectors."""
    parser.add_argument(
        "-f",
        "--file",
        type=Path,
        action="extend",
        nargs="+",
        required=True,
        metavar="FILE",
        dest="files",
        help=".properties, JSON as for the REST API, YAML, folders of such files, or - for stdin; may be repeated",
    )


def run(options: argparse.Namespace) -> int:
    """Show what changes, then change it; all files are read, and with ``--dry-run`` all configs checked, before anything is done.

    The first refusal ends the command. Applying the same files again changes nothing.
    """
    from sluiceway.cli.diff import summary

    with client(options) as api:
        steps = _plan(options, api)
        _show(steps)
        if options.dry_run:
            code = _check(api, steps)
            say(f"Dry run: {summary(steps)}")
            return code
        for step in steps:
            _carry_out(api, step)
            say(f"Connector {step.name} {_DONE[step.action]}")
    return exit_codes.DONE


def run_diff(options: argparse.Namespace) -> int:
    with client(options) as api:
        steps = _plan(options, api)
    _show(steps)
    return exit_codes.DIFFERENT if any(step.action != "keep" for step in steps) else exit_codes.DONE


def _plan(options: argparse.Namespace, api: ConnectClient) -> list[Step]:
    from sluiceway.cli.diff import steps
    from sluiceway.config.connector_files import read_connectors

    files = [connector for file in options.files for connector in read_connectors(file)]
    return steps(files, {name: info["config"] for name, info in api.infos().items()}, prune=options.prune)


def _show(steps: list[Step]) -> None:
    for step in steps:
        if step.action != "keep":
            say("\n".join(step.lines()))


def _carry_out(api: ConnectClient, step: Step) -> None:
    if step.action == "delete":
        api.delete(step.name)
    elif step.action == "create" and step.initial_state:
        api.create(step.name, step.after or {}, step.initial_state)
    elif step.action != "keep":
        api.put_config(step.name, step.after or {})


def _check(api: ConnectClient, steps: list[Step]) -> int:
    from sluiceway.cli.findings import checked

    found = [checked(api, step.name, step.after) for step in steps if step.action in ("create", "change") and step.after]
    for findings in found:
        for line in findings.lines():
            say(line)
    return exit_codes.REFUSED if any(findings.errors for findings in found) else exit_codes.DONE
