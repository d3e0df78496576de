"""``sluiceway broker``: runs one Apache Kafka broker on this machine."""

from __future__ import annotations

import argparse
from pathlib import Path

from sluiceway.cli.common import Subparsers, say


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("broker", help="start, stop or show an Apache Kafka broker on this machine")
    parser.add_argument("action", choices=("start", "stop", "status"))
    parser.add_argument("--port", type=_port, help="port to listen on (default: the port of the last start, or a free one)")
    parser.add_argument("--dir", type=Path, metavar="FOLDER", help="the broker's folder (default: .sluiceway/broker)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Start, stop or show the broker. ``status`` returns 1 if the broker is not running."""
    from sluiceway.folders import state_home
    from sluiceway.stack.broker import EmbeddedBroker

    broker = EmbeddedBroker(options.dir or state_home() / "broker", port=options.port)
    if options.action == "start":
        say(f"Kafka is running on {broker.start(progress=say)}; log: {broker.status().log}")
        return 0
    if options.action == "stop":
        say("Kafka is stopped; its data is kept" if broker.stop() else "Kafka was not running")
        return 0
    status = broker.status()
    if not status.running:
        say(f"Kafka is not running; data: {status.data}")
        return 1
    say(f"Kafka is running on {status.bootstrap}, process {status.pid}; log: {status.log}; data: {status.data}")
    return 0


def _port(text: str) -> int:
    port = int(text)
    if not 0 < port < 65536:
        raise ValueError(text)
    return port
