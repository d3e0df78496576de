"""``sluiceway signal``: sends a signal to a connector of change data capture."""

from __future__ import annotations

import argparse
import json

from sluiceway.cli.common import Subparsers, add_names, add_server, client, say
from sluiceway.errors import ConfigError


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("signal", help="send a signal to a connector of change data capture")
    add_names(parser, nargs=None)
    parser.add_argument("type", metavar="TYPE", help="execute-snapshot, stop-snapshot, pause-snapshot, resume-snapshot, or log")
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="regular expressions of tables: the data's data-collections")
    parser.add_argument("--data", default="{}", metavar="JSON", help="further data of the signal, a JSON object")
    parser.add_argument("--id", metavar="ID", help="id of the signal (default: a new one)")
    add_server(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Send the signal and print its id and topic once Kafka has acknowledged it. Raises ConfigError for data that is not JSON."""
    try:
        data = json.loads(options.data)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise ConfigError('--data must be a JSON object, such as \'{"type": "blocking"}\'.')
    if options.tables:
        data["data-collections"] = options.tables
    with client(options) as api:
        sent = api.send_signal(options.name, options.type, data, options.id)
    say(f"Signal {sent['id']} sent to topic {sent['topic']}")
    return 0
