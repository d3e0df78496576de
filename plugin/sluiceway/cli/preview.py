"""``sluiceway preview``: runs connector files on a few records without writing anything."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from sluiceway import exit_codes
from sluiceway.cli.apply import add_files
from sluiceway.cli.common import Subparsers, add_server, client, say
from sluiceway.cli.output import add_output, text

if TYPE_CHECKING:
    from sluiceway.config.connector_files import ConnectorFile
    from sluiceway.rest.client import ConnectClient

_WAIT_SECONDS = 90.0  # longer than a preview's process may take to start


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("preview", help="show what connector files would do with the next records; write nothing")
    add_files(parser)
    parser.add_argument("--records", type=int, default=10, metavar="N", help="number of records (default: 10)")
    parser.add_argument(
        "--seconds", type=float, default=10.0, metavar="S", help="seconds that the connector's code may take (default: 10)"
    )
    parser.add_argument(
        "--from-beginning", action="store_true", help="ignore the stored offsets of a connector with the same name"
    )
    add_output(parser)
    add_server(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print a preview of each connector. Return 3 if a config has errors, 1 if a connector or a record failed."""
    from sluiceway.cli.preview_text import lines
    from sluiceway.config.connector_files import read_connectors

    files = [connector for file in options.files for connector in read_connectors(file)]
    with client(options, timeout=options.seconds + _WAIT_SECONDS) as api:
        found = [(file, _previewed(api, file, options)) for file in files]
    if options.output == "table":
        for file, answer in found:
            for line in lines(file.name, file.config, answer):
                say(line)
    else:
        print(text([answer for _, answer in found], options.output))
    return max((_exit_code(answer) for _, answer in found), default=exit_codes.DONE)


def _previewed(api: ConnectClient, file: ConnectorFile, options: argparse.Namespace) -> dict[str, Any]:
    from sluiceway.errors import ConfigError

    plugin = file.config.get("connector.class")
    if not plugin:
        raise ConfigError(f"Connector {file.name} has no connector.class. Add it to the config.")
    config = {**file.config, "name": file.name}
    return api.preview(plugin, config, records=options.records, seconds=options.seconds, from_beginning=options.from_beginning)


def _exit_code(answer: dict[str, Any]) -> int:
    if answer["validation"] is not None:
        return exit_codes.REFUSED
    failed = answer["error"] or any(record["error"] for record in answer["records"])
    return exit_codes.FAILED if failed else exit_codes.DONE
