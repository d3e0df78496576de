"""``sluiceway loggers``: shows and sets log levels."""

from __future__ import annotations

import argparse

from sluiceway.cli.common import Subparsers, add_server, client, say
from sluiceway.cli.get import logger_rows
from sluiceway.cli.output import add_output, show


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("loggers", help="show or set log levels")
    actions = parser.add_subparsers(title="what to do", metavar="ACTION", required=True)
    get = actions.add_parser("get", help="show all loggers with a level of their own, or one logger's level")
    get.add_argument("logger", nargs="?", metavar="LOGGER")
    add_output(get)
    get.set_defaults(run=run_get)
    set_ = actions.add_parser("set", help="set a logger's level, and that of those below it")
    set_.add_argument("logger", metavar="LOGGER")
    set_.add_argument("level", metavar="LEVEL", help="TRACE, DEBUG, INFO, WARN, ERROR, FATAL or OFF")
    set_.add_argument("--scope", choices=("worker", "cluster"), default="worker", help="this worker or all (default: worker)")
    set_.set_defaults(run=run_set)
    for each in (get, set_):
        add_server(each)


def run_get(options: argparse.Namespace) -> int:
    with client(options) as api:
        loggers = {options.logger: api.logger(options.logger)} if options.logger else api.loggers()
    show(loggers, logger_rows(loggers), options.output)
    return 0


def run_set(options: argparse.Namespace) -> int:
    with client(options) as api:
        changed = api.set_logger(options.logger, options.level, cluster=options.scope == "cluster")
    say(f"Logger {options.logger} set to {options.level}" + (f": {', '.join(changed)}" if len(changed) > 1 else ""))
    return 0
