"""``sluiceway validate``: checks connector files without creating anything."""

from __future__ import annotations

import argparse

from sluiceway import exit_codes
from sluiceway.cli.apply import add_files
from sluiceway.cli.common import Subparsers, add_server, client, say
from sluiceway.cli.output import add_output, text


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("validate", help="check connector files; exit code 3 if one has errors")
    add_files(parser)
    add_output(parser)
    add_server(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the errors and warnings of each connector. Return 3 if there are errors."""
    from sluiceway.cli.findings import checked
    from sluiceway.config.connector_files import read_connectors

    files = [connector for file in options.files for connector in read_connectors(file)]
    with client(options) as api:
        found = [checked(api, file.name, file.config) for file in files]
    if options.output == "table":
        for findings in found:
            for line in findings.lines():
                say(line)
    else:
        print(text([findings.to_json() for findings in found], options.output))
    return exit_codes.REFUSED if any(findings.errors for findings in found) else exit_codes.DONE
