"""``sluiceway patch``: changes single keys of connectors' configs."""

from __future__ import annotations

import argparse

from sluiceway import exit_codes
from sluiceway.cli.advice import did_you_mean
from sluiceway.cli.common import Subparsers, add_names, add_server, client, names_of, naming_refused, say
from sluiceway.errors import ConfigError


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("patch", help="change single keys of connectors' configs; print the changes")
    add_names(parser)
    parser.add_argument("-s", "--set", type=_pair, action="append", default=[], metavar="KEY=VALUE", help="set a key; repeatable")
    parser.add_argument("-r", "--remove", action="append", default=[], metavar="KEY", help="remove a key; repeatable")
    parser.add_argument("--dry-run", action="store_true", help="print the changes without making them")
    add_server(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print and make the changes, connector by connector."""
    from sluiceway.cli.diff import config_lines
    from sluiceway.cli.findings import print_unread_keys
    from sluiceway.cli.secrets import DeclaredPasswords

    changes: dict[str, str | None] = {**dict(options.set), **dict.fromkeys(options.remove)}
    if not changes:
        raise ConfigError("No changes given. Use --set KEY=VALUE or --remove KEY.")
    with client(options) as api:
        declared = DeclaredPasswords(api)
        for name in names_of(options):
            before = api.config(name)
            lines = config_lines(before, changes, name, declared)
            for key in options.remove:
                if key not in before:
                    say(f"{name} does not set {key}. {did_you_mean(key, before)}".rstrip())
            if lines:
                say("\n".join(lines))
                after = {key: value for key, value in {**before, **changes}.items() if value is not None}
                print_unread_keys(api, name, after, changes)
            if lines and not options.dry_run:
                with naming_refused(name):
                    api.patch_config(name, changes)
            say(f"Connector {name} {'configured' if lines and not options.dry_run else 'unchanged'}")
    return exit_codes.DONE


def _pair(text: str) -> tuple[str, str]:
    key, mark, value = text.partition("=")
    if not key or not mark:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value
