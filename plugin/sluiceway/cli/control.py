"""``sluiceway pause``, ``resume``, ``stop`` and ``delete``: asks something of connectors through the REST API."""

from __future__ import annotations

import argparse

from sluiceway.cli.common import Subparsers, add_names, add_server, client, names_of, say

_VERBS = {
    "pause": ("paused", "pause connectors: their tasks keep their place"),
    "resume": ("resumed", "resume connectors that are paused or stopped"),
    "stop": ("stopped", "stop connectors: they have no tasks until they are resumed"),
    "delete": ("deleted", "delete connectors; their offsets stay"),
}


def register(subparsers: Subparsers) -> None:
    for verb, (_, text) in _VERBS.items():
        parser = subparsers.add_parser(verb, help=text)
        add_names(parser)
        add_server(parser)
        parser.set_defaults(run=run, verb=verb)


def run(options: argparse.Namespace) -> int:
    """Ask it of each connector in turn; the first refusal ends the command."""
    with client(options) as api:
        for name in names_of(options):
            getattr(api, options.verb)(name)
            say(f"Connector {name} {_VERBS[options.verb][0]}")
    return 0
