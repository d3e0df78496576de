"""``sluiceway restart``: restarts connectors and tasks."""

from __future__ import annotations

import argparse

from sluiceway.cli.common import Subparsers, add_names, add_server, client, names_of, say


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("restart", help="restart connectors, their tasks, or what failed of them")
    add_names(parser)
    parser.add_argument("--tasks", action="store_true", help="restart the tasks too")
    parser.add_argument("--only-failed", action="store_true", help="restart only what failed")
    parser.add_argument("--task", type=int, action="append", default=[], metavar="N", help="only this task; may be repeated")
    add_server(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Ask it of each connector in turn; the first refusal ends the command."""
    with client(options) as api:
        for name in names_of(options):
            for task in options.task:
                api.restart_task(name, task)
                say(f"Task {name}-{task} restarts")
            if not options.task:
                api.restart(name, tasks=options.tasks, only_failed=options.only_failed)
                say(f"Connector {name} restarts{', as far as it failed' if options.only_failed else ''}")
    return 0
