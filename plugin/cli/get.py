"""``sluiceway get``: shows connectors."""

from __future__ import annotations

import argparse
import json
from typing import Any

from sluiceway.cli.common import Subparsers, add_server, client, table


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("get", help="show connectors, or one connector's status or config")
    kinds = parser.add_subparsers(title="what to show", metavar="WHAT", required=True)
    _add(kinds, "connectors", "all connectors and their states", run_connectors)
    for kind, text, run in (
        ("status", "a connector and its tasks, with the errors of those that failed", run_status),
        ("config", "a connector's config", run_config),
    ):
        _add(kinds, kind, text, run).add_argument("name", metavar="NAME")


def _add(kinds: Subparsers, name: str, text: str, run: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = kinds.add_parser(name, help=text)
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    add_server(parser)
    parser.set_defaults(run=run)
    return parser


def run_connectors(options: argparse.Namespace) -> int:
    with client(options) as api:
        statuses = api.statuses()
    if options.output == "json":
        return _json(statuses)
    rows = [("NAME", "TYPE", "STATE", "TASKS")]
    rows += [(name, status["type"], status["connector"]["state"], _counts(status)) for name, status in statuses.items()]
    print(table(rows))
    return 0


def run_status(options: argparse.Namespace) -> int:
    with client(options) as api:
        status = api.status(options.name)
    if options.output == "json":
        return _json(status)
    parts = [(options.name, status["connector"]), *((f"{options.name}-{task['id']}", task) for task in status["tasks"])]
    print(table([("NAME", "STATE", "WORKER"), *((name, part["state"], part["worker_id"]) for name, part in parts)]))
    for name, part in parts:
        if part.get("trace"):
            print(f"\n{name}: {part['trace'].rstrip()}")
    return 0


def run_config(options: argparse.Namespace) -> int:
    with client(options) as api:
        config = api.config(options.name)
    if options.output == "json":
        return _json(config)
    print(table([("KEY", "VALUE"), *sorted(config.items())]))
    return 0


def _json(document: object) -> int:
    print(json.dumps(document, indent=2, ensure_ascii=False))
    return 0


def _counts(status: dict[str, Any]) -> str:
    """Return ``2 RUNNING, 1 FAILED``."""
    states = [task["state"] for task in status["tasks"]]
    return ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states)) or "-"
