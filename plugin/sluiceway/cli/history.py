"""``sluiceway history`` and ``rollback``: show who changed a connector, and restore an earlier config."""

from __future__ import annotations

import argparse
import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sluiceway import exit_codes
from sluiceway.cli.common import Subparsers, add_names, add_server, client, say
from sluiceway.cli.output import Rows, add_output, show
from sluiceway.errors import ConfigError, NotFoundError

_KEYS_SHOWN = 3


def register(subparsers: Subparsers) -> None:
    history = subparsers.add_parser("history", help="show who changed a connector, when, from where, and what")
    add_names(history, nargs=None)
    history.add_argument("--version", type=int, metavar="N", help="show one change in detail")
    add_output(history)
    add_server(history)
    history.set_defaults(run=run)
    rollback = subparsers.add_parser("rollback", help="restore the config of an earlier version; print the changes")
    add_names(rollback, nargs=None)
    rollback.add_argument("--to", type=int, required=True, metavar="N", help="version that 'history' shows")
    rollback.add_argument("--dry-run", action="store_true", help="print the changes without making them")
    add_server(rollback)
    rollback.set_defaults(run=run_rollback)


def run(options: argparse.Namespace) -> int:
    with client(options) as api:
        changes = api.history(options.name)
    if options.version is None:
        show({"name": options.name, "history": changes}, rows(changes), options.output)
    elif options.output == "table":
        say("\n".join(lines(_version(options.name, changes, options.version))))
    else:
        show(_version(options.name, changes, options.version), (), options.output)
    return exit_codes.DONE


def run_rollback(options: argparse.Namespace) -> int:
    """Print the changes and make them. The server puts in the current secrets, which the history does not have."""
    from sluiceway.cli.diff import config_lines
    from sluiceway.cli.secrets import DeclaredPasswords
    from sluiceway.config.password import HIDDEN
    from sluiceway.rest.client import RestError

    with client(options) as api:
        wanted = config_at(options.name, api.history(options.name), options.to)
        try:
            current = api.config(options.name)
        except RestError as error:
            if exit_codes.exit_code(error) != exit_codes.NOT_FOUND:
                raise
            current = {}  # it was deleted
        edits = {key: current.get(key, value) if HIDDEN in value else value for key, value in wanted.items()}
        found = config_lines(current, {**dict.fromkeys(current), **edits}, options.name, DeclaredPasswords(api))
        if found:
            say("\n".join(found))
        if found and not options.dry_run:
            api.roll_back(options.name, options.to)
        say(f"Connector {options.name} {'configured' if found and not options.dry_run else 'unchanged'}")
    return exit_codes.DONE


def config_at(name: str, changes: Sequence[Mapping[str, Any]], version: int) -> dict[str, str]:
    """Return the masked config that a connector had in a version. Raises NotFoundError, ConfigError."""
    _version(name, changes, version)
    configs = [each["config"] for each in changes if "config" in each and each["version"] <= version]
    if not configs or configs[-1] is None:
        raise ConfigError(
            f"Connector {name} has no config in version {version}. Choose another one of 'sluiceway history {name}'."
        )
    found: dict[str, str] = configs[-1]
    return found


def rows(changes: Sequence[Mapping[str, Any]]) -> Rows:
    """Return the table of changes, newest first."""
    head = ("VERSION", "TIME", "USER", "FROM", "CHANGE")
    return [head, *((str(each["version"]), _time(each), each["user"] or "-", _from(each), _what(each)) for each in changes[::-1])]


def lines(change: Mapping[str, Any]) -> Iterator[str]:
    """Yield one change in detail: a diff with secrets masked."""
    login = "" if change["authenticated"] or not change["user"] else " (not authenticated)"
    yield f"version {change['version']}: {change['change']}"
    yield f"time {_time(change)}, user {change['user'] or '-'}{login}, from {_from(change)}"
    for edit in change.get("edits", ()):
        yield from _edit_lines(edit["key"], edit["before"], edit["after"])
    if change["change"] == "created":
        for key, value in sorted(change["config"].items()):
            yield from _edit_lines(key, None, value)
    if "state" in change:
        yield from _edit_lines("state", change["state"]["before"], change["state"]["after"])
    for each in change.get("offsets", ()):
        yield from _edit_lines(_text(each["partition"]) or "-", _text(each["before"]), _text(each["after"]))
    if change.get("partitions", 0) > len(change.get("offsets", ())):
        yield f"  ({change['partitions']} partitions in all)"


def _version(name: str, changes: Sequence[Mapping[str, Any]], version: int) -> Mapping[str, Any]:
    for each in changes:
        if each["version"] == version:
            return each
    raise NotFoundError(f"Connector {name} has no version {version}. 'sluiceway history {name}' lists them.")


def _edit_lines(key: str, before: str | None, after: str | None) -> Iterator[str]:
    if before is not None:
        yield f"  - {key}: {before}"
    if after is not None:
        yield f"  + {key}: {after}"


def _time(change: Mapping[str, Any]) -> str:
    return dt.datetime.fromtimestamp(change["timestamp"] / 1000).astimezone().isoformat(" ", "seconds")


def _from(change: Mapping[str, Any]) -> str:
    return ", ".join(filter(None, (change["address"], change["client"], change["note"]))) or "-"


def _what(change: Mapping[str, Any]) -> str:
    if change["change"] == "config":
        keys = [edit["key"] for edit in change["edits"]]
        more = f" and {len(keys) - _KEYS_SHOWN} more" if len(keys) > _KEYS_SHOWN else ""
        return f"config: {', '.join(keys[:_KEYS_SHOWN])}{more}" if keys else "config"
    if change["change"] == "state":
        return f"state: {change['state']['before']} -> {change['state']['after']}"
    if change["change"] == "offsets":
        return f"offsets of {change['partitions']} partition{'s' if change['partitions'] > 1 else ''}"
    return str(change["change"])


def _text(value: Mapping[str, Any] | None) -> str | None:
    return None if value is None else ", ".join(f"{key}={each}" for key, each in value.items())
