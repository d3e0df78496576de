"""``sluiceway apply`` and ``diff``: creates, updates and deletes connectors to match files."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sluiceway import exit_codes
from sluiceway.cli.common import Subparsers, add_server, client, naming_refused, say

if TYPE_CHECKING:
    from sluiceway.cli.diff import ConnectorChange
    from sluiceway.rest.client import ConnectClient

_DONE = {"create": "created", "change": "configured", "keep": "unchanged", "delete": "deleted"}


def register(subparsers: Subparsers) -> None:
    apply = subparsers.add_parser("apply", help="create connectors from files or change their configs; print the changes")
    add_files(apply)
    apply.add_argument("--prune", action="store_true", help="delete connectors that none of the files contains")
    apply.add_argument("--dry-run", action="store_true", help="print and validate the changes without making them")
    add_server(apply)
    apply.set_defaults(run=run)
    diff = subparsers.add_parser("diff", help="show the changes that apply would make; exit code 8 if there are any")
    add_files(diff)
    diff.add_argument("--prune", action="store_true", help="as for apply")
    add_server(diff)
    diff.set_defaults(run=run_diff)


def add_files(parser: argparse.ArgumentParser) -> None:
    """Add the option for connector files."""
    parser.add_argument(
        "-f",
        "--file",
        type=Path,
        action="extend",
        nargs="+",
        required=True,
        metavar="FILE",
        dest="files",
        help=".properties, JSON (as for the REST API) or YAML files, folders of them, or - for stdin; repeatable",
    )


def run(options: argparse.Namespace) -> int:
    """Print the changes, then make them. Return the exit code.

    Reads all files before it makes the first change; ``--dry-run`` validates all configs and changes nothing. Stops at the first
    request that the server refuses. Applying the same files again changes nothing.
    """
    from sluiceway.cli.diff import summary
    from sluiceway.cli.findings import print_unread_keys

    with client(options) as api:
        steps = plan(options.files, api, prune=options.prune)
        _show(api, steps)
        if options.dry_run:
            code = _check(api, steps)
            say(f"Dry run: {summary(steps)}")
            return code
        for step in steps:
            if step.action in ("create", "change") and step.after:
                print_unread_keys(api, step.name, step.after, step.after)
            make_change(api, step)
            say(f"Connector {step.name} {_DONE[step.action]}")
    return exit_codes.DONE


def run_diff(options: argparse.Namespace) -> int:
    with client(options) as api:
        steps = plan(options.files, api, prune=options.prune)
        _show(api, steps)
    return exit_codes.DIFFERENT if any(step.action != "keep" for step in steps) else exit_codes.DONE


def plan(paths: Sequence[Path], api: ConnectClient, *, prune: bool = False) -> list[ConnectorChange]:
    """Return the changes that make a server's connectors what files and folders say. Raises ConfigError."""
    from sluiceway.cli.diff import changes
    from sluiceway.config.connector_files import read_connectors

    files = [connector for path in paths for connector in read_connectors(path)]
    return changes(files, {name: info["config"] for name, info in api.infos().items()}, prune=prune)


def described(api: ConnectClient, steps: Iterable[ConnectorChange]) -> Iterator[str]:
    """Yield each change as a diff, with the secrets masked that the server's plugins declare."""
    from sluiceway.cli.secrets import DeclaredPasswords

    declared = DeclaredPasswords(api)
    return ("\n".join(step.lines(declared.keys(step.before, step.after))) for step in steps)


def _show(api: ConnectClient, steps: list[ConnectorChange]) -> None:
    for text in described(api, [step for step in steps if step.action != "keep"]):
        say(text)


def make_change(api: ConnectClient, step: ConnectorChange) -> None:
    """Create, change or delete a connector."""
    if step.action == "delete":
        api.delete(step.name)
    elif step.action != "keep":
        with naming_refused(step.name):
            if step.action == "create" and step.initial_state:
                api.create(step.name, step.after or {}, step.initial_state)
            else:
                api.put_config(step.name, step.after or {})


def _check(api: ConnectClient, steps: list[ConnectorChange]) -> int:
    from sluiceway.cli.findings import checked

    found = [checked(api, step.name, step.after) for step in steps if step.action in ("create", "change") and step.after]
    for findings in found:
        for line in findings.lines():
            say(line)
    return exit_codes.REFUSED if any(findings.errors for findings in found) else exit_codes.DONE
