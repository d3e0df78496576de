"""``sluiceway contexts``: manages named REST APIs and their login settings."""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from typing import Any

from sluiceway.cli.common import Subparsers, say
from sluiceway.cli.output import Rows, add_output, show
from sluiceway.errors import ConfigError

_CREDENTIALS = {
    "username": "user name for basic authentication",
    "password_file": "file with the password",
    "password_env": "environment variable with the password",
    "token_file": "file with a bearer token",
    "token_env": "environment variable with a bearer token",
    "ca": "PEM file of trusted certificate authorities",
    "certificate": "PEM file with a client certificate, and its key unless --key is given",
    "key": "PEM file with the key of the client certificate",
}


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("contexts", help="manage named REST APIs; stores no credentials")
    actions = parser.add_subparsers(title="what to do", metavar="ACTION", required=True)
    list_ = actions.add_parser("list", help="show all contexts")
    add_output(list_)
    list_.set_defaults(run=run_list)
    set_ = actions.add_parser("set", help="create a context or change the given options; the first one becomes the current one")
    set_.add_argument("name", metavar="NAME")
    set_.add_argument("--server", action="append", metavar="URL", help="repeat for further servers of the same cluster")
    for key, text in _CREDENTIALS.items():
        set_.add_argument(
            f"--{key.replace('_', '-')}", help=text, metavar="FILE" if key in ("ca", "certificate", "key") else None
        )
    set_.set_defaults(run=run_set)
    for action, run, text in (("use", run_use, "make a context the current one"), ("remove", run_remove, "remove a context")):
        each = actions.add_parser(action, help=text)
        each.add_argument("name", metavar="NAME")
        each.set_defaults(run=run)
    actions.add_parser("current", help="print the name of the current context").set_defaults(run=run_current)


def run_list(options: argparse.Namespace) -> int:
    from sluiceway.cli import context_file

    contexts = context_file.load()
    rows: list[tuple[str, str, str, str]] = [("CURRENT", "NAME", "SERVERS", "LOGIN")]
    for name, context in sorted(contexts.by_name.items()):
        login = "token" if context.token_env or context.token_file else context.username or "-"
        rows.append(("*" if name == contexts.current else "", name, ",".join(context.servers) or "-", login))
    documents = {name: {key: value for key, value in asdict(each).items() if value} for name, each in contexts.by_name.items()}
    for each in documents.values():
        each["servers"] = list(each.get("servers", ()))
    _show({"current": contexts.current, "contexts": documents}, rows, options)
    return 0


def run_set(options: argparse.Namespace) -> int:
    from sluiceway.cli import context_file
    from sluiceway.config.parsing import parse_list

    contexts = context_file.load()
    given: dict[str, Any] = {key: getattr(options, key) for key in _CREDENTIALS if getattr(options, key) is not None}
    servers = tuple(server for each in options.server or () for server in parse_list(each))
    _refuse_passwords(servers)
    before = contexts.by_name.get(options.name, context_file.Context())
    context = replace(before, **given, servers=servers or before.servers)
    if not context.servers:
        raise ConfigError(f"Context {options.name} has no server. Add --server http://host:8083")
    context_file.save(context_file.Contexts({**contexts.by_name, options.name: context}, contexts.current or options.name))
    say(f"Context {options.name} {'changed' if options.name in contexts.by_name else 'created'}")
    return 0


def run_use(options: argparse.Namespace) -> int:
    from sluiceway.cli import context_file

    contexts = context_file.load()
    contexts.get(options.name)
    context_file.save(replace(contexts, current=options.name))
    say(f"Context {options.name} is now the current one")
    return 0


def run_remove(options: argparse.Namespace) -> int:
    from sluiceway.cli import context_file

    contexts = context_file.load()
    contexts.get(options.name)
    left = {name: each for name, each in contexts.by_name.items() if name != options.name}
    context_file.save(context_file.Contexts(left, contexts.current if contexts.current in left else None))
    say(f"Context {options.name} removed")
    return 0


def run_current(_options: argparse.Namespace) -> int:
    from sluiceway.cli import context_file

    current = context_file.load().current
    if current is None:
        raise ConfigError("No context is selected. Select one with 'sluiceway contexts use NAME'.")
    say(current)
    return 0


def _show(document: object, rows: Rows, options: argparse.Namespace) -> None:
    show(document, rows, options.output)


def _refuse_passwords(servers: tuple[str, ...]) -> None:
    for server in servers:
        if "@" in server.partition("://")[2]:
            raise ConfigError("A server address must not hold a login. Use --username with --password-file or --password-env.")
