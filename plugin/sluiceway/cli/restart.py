"""``sluiceway restart``: restarts connectors and tasks."""

from __future__ import annotations

import argparse

from sluiceway.cli.common import Subparsers, add_names, add_server, client, names_of, say


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("restart", help="restart connectors, their tasks, or only the failed ones")
    add_names(parser)
    parser.add_argument("--tasks", action="store_true", help="also restart the tasks")
    parser.add_argument("--only-failed", action="store_true", help="restart only failed connectors and tasks")
    parser.add_argument("--task", type=int, action="append", default=[], metavar="N", help="restart only this task; repeatable")
    add_server(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Send the request for each connector in turn; stop at the first that the server refuses."""
    with client(options) as api:
        for name in names_of(options):
            for task in options.task:
                api.restart_task(name, task)
                say(f"Task {name}-{task} restarts")
            if not options.task:
                api.restart(name, tasks=options.tasks, only_failed=options.only_failed)
                say(f"Connector {name} restarts{' (failed instances only)' if options.only_failed else ''}")
    return 0
