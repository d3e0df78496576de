"""``sluiceway plugins``: lists the installed plugins; the same as ``get plugins``."""

from __future__ import annotations

from sluiceway.cli import get
from sluiceway.cli.common import Subparsers, add_server
from sluiceway.cli.output import add_output


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("plugins", help="list the installed plugins")
    get.add_all_plugins(parser)
    add_output(parser)
    add_server(parser)
    parser.set_defaults(run=get.run, kind="plugins")
