"""``sluiceway preview``: runs connector files on a few records without writing anything."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from sluiceway import exit_codes
from sluiceway.cli.apply import add_files
from sluiceway.cli.common import Subparsers, add_server, client, naming_refused, say
from sluiceway.cli.output import add_output, text

if TYPE_CHECKING:
    from sluiceway.config.connector_files import ConnectorFile
    from sluiceway.rest.client import ConnectClient

_WAIT_SECONDS = 90.0  # longer than a preview's process may take to start


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("preview", help="show what connector files would do with the next records; write nothing")
    add_files(parser)
    parser.add_argument("--records", type=_records, default=10, metavar="N", help="number of records (default: 10, at most 100)")
    parser.add_argument(
        "--seconds",
        type=_seconds,
        default=10.0,
        metavar="S",
        help="seconds that the connector's code may take (default: 10, at most 60)",
    )
    parser.add_argument(
        "--from-beginning", action="store_true", help="ignore the stored offsets of a connector with the same name"
    )
    add_output(parser)
    add_server(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print a preview of each connector. Return 3 if a config has errors, 1 if a connector or a record failed."""
    from sluiceway.cli.findings import print_unread_keys
    from sluiceway.cli.preview_text import lines
    from sluiceway.config.connector_files import read_connectors

    files = [connector for file in options.files for connector in read_connectors(file)]
    with client(options, timeout=options.seconds + _WAIT_SECONDS) as api:
        found = [(file, _previewed(api, file, options)) for file in files]
        if options.output == "table":
            for file, answer in found:
                for line in lines(file.name, file.config, answer):
                    say(line)
                if answer["validation"] is None:  # errors come with these warnings
                    print_unread_keys(api, file.name, file.config, file.config)
    if options.output != "table":
        print(text([answer for _, answer in found], options.output))
    return max((_exit_code(answer) for _, answer in found), default=exit_codes.DONE)


def _previewed(api: ConnectClient, file: ConnectorFile, options: argparse.Namespace) -> dict[str, Any]:
    from sluiceway.errors import ConfigError

    plugin = file.config.get("connector.class")
    if not plugin:
        raise ConfigError(f"Connector {file.name} has no connector.class. Add it to the config.")
    config = {**file.config, "name": file.name}
    with naming_refused(file.name):
        return api.preview(
            plugin, config, records=options.records, seconds=options.seconds, from_beginning=options.from_beginning
        )


def _records(text: str) -> int:
    from sluiceway.preview.request import MOST_RECORDS

    if not text.isdecimal() or not 1 <= int(text) <= MOST_RECORDS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {MOST_RECORDS}")
    return int(text)


def _seconds(text: str) -> float:
    from sluiceway.preview.request import MOST_SECONDS

    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds up to {MOST_SECONDS:g}")
    return seconds


def _exit_code(answer: dict[str, Any]) -> int:
    if answer["validation"] is not None:
        return exit_codes.REFUSED
    failed = answer["error"] or any(record["error"] for record in answer["records"])
    return exit_codes.FAILED if failed else exit_codes.DONE
