"""``sluiceway logs``: shows the log of a connector or of a process of the local stack."""

from __future__ import annotations

import argparse
from pathlib import Path

from sluiceway.cli.common import Subparsers, say

_ANSWER_SECONDS = 2.0


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("logs", help="show the log of a connector or of a process of 'sluiceway up'")
    parser.add_argument("name", nargs="?", metavar="NAME", help="connector, or process as in ps (default: list processes)")
    parser.add_argument("-f", "--follow", action="store_true", help="print new lines as they are added, until Ctrl-C")
    parser.add_argument("-n", "--lines", type=int, default=50, metavar="N", help="number of last lines to print (default: 50)")
    parser.add_argument("--raw", action="store_true", help="print lines as they are in the file")
    parser.add_argument("--home", type=Path, metavar="FOLDER", help="the stack's folder (default: $SLUICEWAY_HOME or .sluiceway)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the last lines and, with ``--follow``, new lines as they are added."""
    from sluiceway.cli import log_files
    from sluiceway.folders import state_home

    home = (options.home or state_home()).absolute()
    if options.name is None:
        for name, of_process in log_files.process_logs(home).items():
            say(f"{name}  {of_process}")
        return 0
    find = log_files.finder(home, options.name, _dag(options.name))
    file = find()
    if file is None:
        return 0
    formatted = str if options.raw else log_files.readable
    lines, read = log_files.last_lines(file, options.lines)
    if not options.raw:
        if options.name not in log_files.process_logs(home) and (shared := _shared_application(home, options.name)):
            say(f"{options.name} runs in an application with others. 'sluiceway logs {shared}' shows its driver and tasks.\n")
        for line in log_files.error_of_driver(file, options.lines):
            say(line)
    for line in lines:
        say(formatted(line))
    if options.follow:
        for line in log_files.follow(find, file, read):
            say(formatted(line))
    return 0


def _shared_application(home: Path, name: str) -> str | None:
    """Return the name for ``logs`` of the application that a connector shares, by the stack's REST API; None if it knows none."""
    from sluiceway.errors import ConnectError
    from sluiceway.provider.dag_bundle.dag_ids import APPLICATION_PREFIX
    from sluiceway.rest.client import ConnectClient
    from sluiceway.stack.addresses import running_rest

    server = running_rest(home)
    if server is None:
        return None
    try:
        with ConnectClient(server, timeout=_ANSWER_SECONDS) as api:
            application = api.application(name)["application"]
    except ConnectError:
        return None
    return f"{APPLICATION_PREFIX}{application}" if application else None


def _dag(name: str) -> str:
    from sluiceway.provider.dag_bundle.dag_ids import dag_id

    return dag_id(name)
