"""``sluiceway pause``, ``resume``, ``stop`` and ``delete``: changes the state of connectors through the REST API."""

from __future__ import annotations

import argparse

from sluiceway.cli.common import Subparsers, add_names, add_server, client, names_of, say

_VERBS = {
    "pause": ("paused", "pause connectors; their tasks stay assigned"),
    "resume": ("resumed", "resume paused or stopped connectors"),
    "stop": ("stopped", "stop connectors; they have no tasks until resumed"),
    "delete": ("deleted", "delete connectors; their offsets are kept"),
}


def register(subparsers: Subparsers) -> None:
    for verb, (_, text) in _VERBS.items():
        parser = subparsers.add_parser(verb, help=text)
        add_names(parser)
        add_server(parser)
        parser.set_defaults(run=run, verb=verb)


def run(options: argparse.Namespace) -> int:
    """Send the request for each connector in turn; stop at the first that the server refuses."""
    with client(options) as api:
        for name in names_of(options):
            getattr(api, options.verb)(name)
            say(f"Connector {name} {_VERBS[options.verb][0]}")
    return 0
