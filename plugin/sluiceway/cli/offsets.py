"""``sluiceway offsets``: shows, sets and removes a connector's offsets."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from sluiceway.cli.common import Subparsers, add_names, add_server, client, say
from sluiceway.cli.get import offset_rows
from sluiceway.cli.output import add_output, show
from sluiceway.errors import ConfigError

_TOPIC_PARTITION = re.compile(r"([A-Za-z0-9._-]+):(\d+)")


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("offsets", help="show, set or remove a connector's offsets")
    actions = parser.add_subparsers(title="what to do", metavar="ACTION", required=True)
    get = actions.add_parser("get", help="show a connector's offsets")
    add_names(get, nargs=None)
    add_output(get)
    set_ = actions.add_parser("set", help="set offsets of a stopped connector")
    add_names(set_, nargs=None)
    set_.add_argument("partition", nargs="?", metavar="PARTITION", help="JSON, or TOPIC:NUMBER of a sink")
    set_.add_argument("offset", nargs="?", metavar="OFFSET", help="JSON, or a number of a sink; null removes the offset")
    set_.add_argument("-f", "--file", type=Path, metavar="FILE", help="JSON, as 'offsets get -o json' prints it")
    reset = actions.add_parser("reset", help="remove all offsets of a stopped connector, which then starts from the beginning")
    add_names(reset, nargs=None)
    for each, run in ((get, run_get), (set_, run_set), (reset, run_reset)):
        add_server(each)
        each.set_defaults(run=run)


def run_get(options: argparse.Namespace) -> int:
    with client(options) as api:
        offsets = api.offsets(options.name)
    show({"offsets": offsets}, offset_rows(offsets), options.output)
    return 0


def run_set(options: argparse.Namespace) -> int:
    offsets = _wanted(options)
    with client(options) as api:
        say(api.alter_offsets(options.name, offsets))
    return 0


def run_reset(options: argparse.Namespace) -> int:
    with client(options) as api:
        say(api.reset_offsets(options.name))
    return 0


def _wanted(options: argparse.Namespace) -> list[dict[str, Any]]:
    if options.file is not None:
        return _of_file(options.file)
    if options.offset is None:
        raise ConfigError("No offsets given. Name a partition and its offset, or a file with --file.")
    found = _TOPIC_PARTITION.fullmatch(options.partition)
    if found:
        offset = _json(options.offset, "the offset")
        position = offset if offset is None or isinstance(offset, dict) else {"kafka_offset": offset}
        return [{"partition": {"kafka_topic": found[1], "kafka_partition": int(found[2])}, "offset": position}]
    return [{"partition": _json(options.partition, "the partition"), "offset": _json(options.offset, "the offset")}]


def _of_file(file: Path) -> list[dict[str, Any]]:
    try:
        document = _json(file.read_text(encoding="utf-8"), str(file))
    except OSError as error:
        raise ConfigError(f"Cannot read {file}: {error.strerror}.") from error
    offsets = document.get("offsets") if isinstance(document, dict) else document
    if not isinstance(offsets, list):
        raise ConfigError(f'{file} has another form than {{"offsets": [{{"partition": .., "offset": ..}}, ..]}}.')
    return offsets


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ConfigError(f"Cannot parse {what} as JSON: {error}.") from error
