"""``sluiceway migrate``: reports on the connectors of a Connect cluster, and moves them to another one."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from sluiceway.cli.common import SERVER_VARIABLE, Subparsers, client
from sluiceway.cli.output import add_output
from sluiceway.errors import ConfigError, ConnectError

_DESCRIPTION = (
    "Report what happens to the connectors of a Kafka Connect cluster here: which plugins run them, which are missing, and "
    "what validation says. With --execute, move connectors, several side by side: stop there, copy the offsets, start here. An "
    "interrupted move continues when the command is run again. Exit codes: 0 all connectors can move or have moved, 1 some "
    "cannot, 2 for an error."
)

_ALL, _SOME, _ERROR = 0, 1, 2


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "migrate",
        help="report on the connectors of a Kafka Connect cluster, and move them here or back",
        description=_DESCRIPTION,
    )
    parser.add_argument(
        "--from", dest="source", required=True, metavar="URL", help="REST API that has the connectors, or a context's name"
    )
    parser.add_argument(
        "--to",
        dest="target",
        metavar="URL",
        help=f"REST API that gets the connectors, or a context's name (default: ${SERVER_VARIABLE} or the current context)",
    )
    parser.add_argument("--back", action="store_true", help="exchange --from and --to, to move connectors back")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "--connectors",
        metavar="NAMES",
        help="connectors, separated by commas; in a name, * and ? stand for any characters (default for the report: all)",
    )
    chosen.add_argument("--all", action="store_true", help="all connectors; with --back, those that were left stopped there")
    parser.add_argument("--execute", action="store_true", help="move the connectors that can move; the others stay as they are")
    parser.add_argument(
        "--delete-source", action="store_true", help="delete moved connectors there instead of leaving them stopped"
    )
    parser.add_argument(
        "--shared",
        action="store_true",
        help="the cluster of --to uses the internal topics of --from, whose workers may have ended (known while they respond)",
    )
    parser.add_argument(
        "--parallel", type=_count, default=4, metavar="NUMBER", help="connectors that move side by side (default: 4)"
    )
    parser.add_argument(
        "--timeout", type=float, default=300.0, metavar="SECONDS", help="time for each step of a connector (default: 300)"
    )
    parser.add_argument(
        "--connect-worker-config",
        type=Path,
        metavar="FILE",
        help="worker file of the cluster of --from; adds its internal topics and converters to the report",
    )
    parser.add_argument(
        "--worker-config",
        type=Path,
        metavar="FILE",
        help="worker file of the cluster of --to, to be compared with the other one (default: that of 'sluiceway up' if it is "
        "that cluster)",
    )
    parser.add_argument(
        "--write-worker-config",
        type=Path,
        metavar="FILE",
        help="write the worker file of a Sluiceway for the connectors of --from, given --connect-worker-config, and end",
    )
    parser.add_argument(
        "--accept",
        metavar="KEYS",
        default="",
        help="keys of the worker files, separated by commas, in which they may differ although connectors then have other bytes",
    )
    add_output(parser)
    parser.add_argument("--json", dest="output", action="store_const", const="json", help="the same as --output json")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the report or move connectors. Return 0, or 1 if not all connectors can move, or 2 for an error."""
    import sys

    try:
        return _run(options)
    except ConnectError as error:
        print(f"sluiceway: {error}", file=sys.stderr)
        return _ERROR
    except KeyboardInterrupt:
        if options.execute:
            print("sluiceway: interrupted. Run the same command again to continue.", file=sys.stderr)
        raise


def _run(options: argparse.Namespace) -> int:
    if options.execute and not (options.all or options.connectors):
        raise ConfigError("--execute moves connectors. Name them with --connectors a,b or give --all.")
    if options.write_worker_config is not None:
        return _write_worker_config(options)
    with ExitStack() as stack:
        source, target = (stack.enter_context(_client(each)) for each in (options.source, options.target))
        from sluiceway.cli.migration_cluster import MigrationCluster
        from sluiceway.cli.migration_command import Migration

        clusters = [MigrationCluster(source), MigrationCluster(target)]
        if options.back:
            clusters.reverse()
        migration = Migration(options, *clusters)
        return _ALL if (migration.execute() if options.execute else migration.report()) else _SOME


def _write_worker_config(options: argparse.Namespace) -> int:
    from sluiceway.cli.migration_worker_file import write_worker_file

    if options.connect_worker_config is None:
        raise ConfigError("--write-worker-config needs the worker file of the cluster of --from: --connect-worker-config FILE.")
    with _client(options.source) as source:
        connectors = len(source.connectors())
        lines = write_worker_file(options.connect_worker_config, options.write_worker_config, source.server, connectors)
    print("\n".join(lines))
    return _ALL


def _client(server: str | None) -> Any:
    """Return a client. A URL gets no credentials except its own, so that no token reaches the other cluster."""
    from sluiceway.rest.client import ConnectClient

    if server is not None and "://" in server:
        return ConnectClient(server.split(","))
    return client(argparse.Namespace(server=None, context=server))


def _count(given: str) -> int:
    number = int(given)
    if number < 1:
        raise ValueError(given)
    return number
