"""``sluiceway apply``: makes or changes connectors from files."""

from __future__ import annotations

import argparse
from pathlib import Path

from sluiceway.cli.common import Subparsers, add_server, client, say


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("apply", help="make connectors from files, or change their config")
    parser.add_argument("-f", "--file", type=Path, action="append", required=True, metavar="FILE", dest="files",
                        help=".properties, or JSON as for the REST API; may be repeated")  # fmt: skip
    add_server(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Apply each file in turn, after all of them were read; the first refusal ends the command."""
    from sluiceway.config.properties import read_connector_file
    from sluiceway.errors import ConfigError

    configs = {file: read_connector_file(file) for file in options.files}
    for file, config in configs.items():
        if not config.get("name"):
            raise ConfigError(f"{file} does not say the connector's name.")
    with client(options) as api:
        for config in configs.values():
            created = api.put_config(config["name"], config)
            say(f"Connector {config['name']} {'created' if created else 'configured'}")
    return 0
