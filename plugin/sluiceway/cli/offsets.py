"""``sluiceway offsets``: shows, sets and removes a connector's offsets."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluiceway.cli.common import Subparsers, add_names, add_server, client, say
from sluiceway.cli.get import offset_rows
from sluiceway.cli.output import add_output, show, table
from sluiceway.errors import ConfigError

if TYPE_CHECKING:
    from sluiceway.rest.client import ConnectClient

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
    _add_targets(set_)
    reset = actions.add_parser("reset", help="remove all offsets of a stopped connector, which then starts from the beginning")
    add_names(reset, nargs=None)
    for each, run in ((get, run_get), (set_, run_set), (reset, run_reset)):
        add_server(each)
        each.set_defaults(run=run)


def _add_targets(parser: argparse.ArgumentParser) -> None:
    """Add the options of kafka-consumer-groups.sh --reset-offsets."""
    targets = parser.add_mutually_exclusive_group()
    targets.add_argument(
        "--to-datetime",
        dest="to",
        metavar="TIME",
        help="first record at or after a time such as 2026-11-23T09:00:00.000 (UTC unless it ends in a zone such as +01:00); the "
        "end if there is none",
    )
    targets.add_argument("--to-earliest", dest="to", action="store_const", const="earliest", help="the beginning")
    targets.add_argument("--to-latest", dest="to", action="store_const", const="latest", help="the end")
    targets.add_argument("--shift-by", type=int, metavar="N", help="N records further on, or back if it is negative")
    parser.add_argument("--topic", action="append", default=[], dest="topics", help="only this topic of a sink; repeatable")
    parser.add_argument(
        "--partition",
        action="append",
        default=[],
        dest="partitions",
        metavar="PARTITION",
        help="only this partition: the number of a sink's, or JSON with fields of a source's; repeatable",
    )
    parser.add_argument("--dry-run", action="store_true", help="print the offsets without setting them")


def run_get(options: argparse.Namespace) -> int:
    with client(options) as api:
        offsets, position = api.offsets_and_position(options.name)
    if position and not offsets and options.output == "table":
        say(position)
        return 0
    show({"offsets": offsets, **({"position": position} if position else {})}, offset_rows(offsets), options.output)
    return 0


def run_set(options: argparse.Namespace) -> int:
    by_target = options.to is not None or options.shift_by is not None
    if by_target and (options.partition is not None or options.file is not None):
        raise ConfigError("Give either a target such as --to-latest, or partitions with their offsets.")
    if not by_target and (options.topics or options.partitions or options.dry_run):
        raise ConfigError("--topic, --partition and --dry-run need --to-datetime, --to-earliest, --to-latest or --shift-by.")
    offsets = [] if by_target else _wanted(options)
    with client(options) as api:
        if by_target:
            offsets = _found(api, options)
        else:
            _check_ends(api, options.name, offsets)
        if not options.dry_run:
            say(api.alter_offsets(options.name, offsets))
    return 0


def _found(api: ConnectClient, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Print the offsets of the target beside the stored ones, and return them."""
    found = api.find_offsets(
        options.name, to=options.to, shift_by=options.shift_by, topics=options.topics, partitions=options.partitions
    )
    before = offset_rows([{"partition": each["partition"], "offset": each["before"]} for each in found])
    after = offset_rows([{"partition": each["partition"], "offset": each["offset"]} for each in found])
    head = ("PARTITION", "OFFSET", "NEW-OFFSET")
    rows = [(partition, offset, new) for (partition, offset), (_, new) in zip(before[1:], after[1:], strict=True)]
    say(table([head, *rows]))
    return [{"partition": each["partition"], "offset": each["offset"]} for each in found]


def _check_ends(api: ConnectClient, name: str, offsets: list[dict[str, Any]]) -> None:
    """Raise ConfigError for an offset beyond the end of its topic: the sink would read the whole topic again.

    Raises RestError for a topic or partition that does not exist. Kafka Connect itself checks none of this.
    """
    from sluiceway.rest.client import RestError

    for each in offsets:
        fields, offset = each.get("partition") or {}, each.get("offset") or {}
        topic, number, wanted = (fields.get("kafka_topic"), fields.get("kafka_partition"), offset.get("kafka_offset"))
        if not isinstance(topic, str) or not isinstance(number, int) or not isinstance(wanted, int):
            continue
        try:
            found = api.find_offsets(name, to="latest", topics=[topic], partitions=[str(number)])
        except RestError as error:
            if error.status in (400, 404) and "topic" in error.message:
                raise
            return  # Kafka Connect has no such request
        ends = {each["partition"]["kafka_partition"]: each["offset"]["kafka_offset"] for each in found}
        if wanted > (end := ends.get(number, wanted)):
            raise ConfigError(
                f"Offset {wanted} is beyond the end of {topic}:{number}, which is {end}. Nothing was changed. "
                "--to-latest sets the end."
            )


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
    if not options.partition.lstrip().startswith("{"):
        raise ConfigError(
            f"{options.partition!r} is no partition. Write TOPIC:NUMBER for a sink, such as orders:0, or JSON for a source, such "
            f"as '{{\"filename\": \"/data/in.txt\"}}'. 'sluiceway offsets get {options.name} -o json' shows them."
        )
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
