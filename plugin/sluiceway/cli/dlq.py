"""``sluiceway dlq``: lists, shows and replays dead letter queue records."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluiceway.cli.advice import did_you_mean
from sluiceway.cli.common import Subparsers, add_names, say, worker
from sluiceway.cli.output import table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sluiceway.config.worker import WorkerConfig
    from sluiceway.kafka.dead_letter_headers import ConsumedDeadLetter
    from sluiceway.kafka.dead_letter_topic import DeadLetterTopic


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("dlq", help="list, show or replay dead letter queue records")
    verbs = parser.add_subparsers(title="what to do", metavar="VERB", required=True)
    _add(verbs, "list", "the connectors with a dead letter queue, and how many records it holds", run_list)
    show = _add(verbs, "show", "a connector's dead letter queue records with their errors", run_show)
    _add_name(show)
    show.add_argument("-n", "--limit", type=_count, metavar="N", help="only the first N records")
    show.add_argument("--new", action="store_true", help="only records that have not been replayed")
    replay = _add(verbs, "replay", "send a connector's dead letter queue records back to their topics, each once", run_replay)
    _add_name(replay)
    replay.add_argument("--topic", metavar="TOPIC", help="send all records to this topic instead of their original topics")
    replay.add_argument("-n", "--limit", type=_count, metavar="N", help="only the next N records")
    replay.add_argument("--dry-run", action="store_true", help="print what would be sent, and send nothing")
    replay.add_argument("--keep-headers", action="store_true", help="keep the __connect.errors.* headers")


def _add(verbs: Subparsers, name: str, text: str, run: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=text)
    parser.add_argument("--worker", type=Path, metavar="WORKER.properties", help="worker file (default: that of 'sluiceway up')")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    parser.set_defaults(run=run)
    return parser


def _add_name(parser: argparse.ArgumentParser) -> None:
    add_names(parser, nargs=None)
    parser.add_argument("--dlq", metavar="TOPIC", help="dead letter queue topic, if the config no longer names it")


def run_list(options: argparse.Namespace) -> int:
    """List every connector with a dead letter queue. Connectors that share a queue all show its total count."""
    from sluiceway.errors import NotFoundError
    from sluiceway.kafka.dead_letter_topic import DeadLetterTopic

    config = worker(options.worker)
    found: list[dict[str, Any]] = []
    for name, settings in sorted(configs(config).items()):
        if not (topic := _topic_in(settings)):
            continue
        try:
            letters = DeadLetterTopic(config, topic, name)
            counts: dict[str, Any] = {"letters": letters.count(), "new": letters.not_replayed(_group(name))}
        except NotFoundError:
            counts = {"letters": 0, "new": 0}
        found.append({"connector": name, "topic": topic, **counts})
    if options.output == "json":
        return _print_json(found)
    rows = [(each["connector"], each["topic"], str(each["letters"]), str(each["new"])) for each in found]
    print(table([("CONNECTOR", "TOPIC", "RECORDS", "NOT REPLAYED"), *rows]))
    return 0


def run_show(options: argparse.Namespace) -> int:
    """Print the records while reading them, so that memory use does not grow with their number."""
    import itertools

    topic = _open(options)
    letters = itertools.islice(topic.records(_group(options.name) if options.new else None), options.limit)
    if options.output == "json":
        return _print_json([_document(letter) for letter in letters])
    count = 0
    for letter in letters:
        say(_text(letter))
        count += 1
    say(f"{count} records in {topic.topic}")
    return 0


def run_replay(options: argparse.Namespace) -> int:
    """Replay the records and print how many were sent to each topic."""
    topic = _open(options)
    done = topic.replay(
        _group(options.name), to=options.topic, keep_headers=options.keep_headers, limit=options.limit, dry_run=options.dry_run
    )
    if options.output == "json":
        return _print_json({"dryRun": options.dry_run, "sent": done.sent, "left": done.skipped})
    verb = "would be sent" if options.dry_run else "sent"
    for target, count in done.sent.items():
        say(f"{count} records {verb} to {target}")
    for reason, count in done.skipped.items():
        say(f"{count} records skipped: {reason}")
    if not done.sent:
        say(f"No records to replay in {topic.topic}")
    return 0


def _open(options: argparse.Namespace) -> DeadLetterTopic:
    from sluiceway.errors import ConfigError, NotFoundError
    from sluiceway.kafka.dead_letter_topic import DeadLetterTopic

    config = worker(options.worker)
    topic: str | None = options.dlq
    if topic is None:
        stored = configs(config)
        settings = stored.get(options.name)
        if settings is None:
            raise NotFoundError(_not_found(options.name, stored))
        topic = _topic_in(settings)
    if not topic:
        raise ConfigError(
            f"Connector {options.name} has no dead letter queue: its config does not set errors.deadletterqueue.topic.name."
        )
    return DeadLetterTopic(config, topic, options.name)


def _not_found(name: str, stored: Mapping[str, Mapping[str, str]]) -> str:
    """Return what to do about a name that no connector has: it may be a queue's topic, or misspelled."""
    owners = sorted(each for each, settings in stored.items() if _topic_in(settings) == name)
    if owners:
        return f"{name} is the dead letter queue of {', '.join(owners)}. Name the connector instead of the topic."
    question = did_you_mean(name, stored) or "'sluiceway dlq list' lists the connectors with a queue."
    return f"Connector {name} not found. {question} If it was deleted, name its queue's topic with --dlq."


def configs(config: WorkerConfig) -> Mapping[str, Mapping[str, str]]:
    """Return the configs of all connectors, from the config topic."""
    from sluiceway.storage.config_backing_store import KafkaConfigBackingStore

    store = KafkaConfigBackingStore(config)
    store.start()
    try:
        state = store.snapshot()
    finally:
        store.stop()
    return {name: entry.config for name in state.names() if (entry := state.entry(name)) is not None and entry.config}


def _topic_in(settings: Mapping[str, str]) -> str:
    from sluiceway.config.connector import DLQ_TOPIC

    return settings.get(DLQ_TOPIC, "").strip()


def _group(name: str) -> str:
    """Return the consumer group whose offsets mark which records have been replayed."""
    return f"sluiceway-dlq-{name}"


def _document(letter: ConsumedDeadLetter) -> dict[str, Any]:
    return {
        "partition": letter.partition,
        "offset": letter.offset,
        "timestamp": letter.timestamp,
        "replayed": letter.replayed,
        "key": _readable(letter.key),
        "value": _readable(letter.value),
        "headers": [{"key": key, "value": _readable(value)} for key, value in letter.headers],
    }


def _readable(data: bytes | None) -> Any:
    """Return bytes as text if they are UTF-8, else as ``{"base64": ...}``."""
    import base64

    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _text(letter: ConsumedDeadLetter) -> str:
    origin = ", ".join(
        f"{name} {text}" for name in ("topic", "partition", "offset") if (text := letter.context(name)) is not None
    )
    lines = [f"{letter.partition}:{letter.offset}  from {origin or 'an unknown topic'}"]
    if stage := letter.context("stage"):
        lines.append(f"  {stage}  {letter.context('exception.class.name')}: {letter.context('exception.message')}")
    if letter.replayed:
        lines.append(f"  replayed {letter.replayed} times")
    lines.append(f"  key    {_shown(letter.key)}")
    lines.append(f"  value  {_shown(letter.value)}")
    return "\n".join(lines)


def _shown(data: bytes | None) -> str:
    """Return bytes as one line without control characters, which a terminal might execute."""
    return json.dumps(_readable(data), ensure_ascii=True)


def _print_json(document: object) -> int:
    print(json.dumps(document, indent=2, ensure_ascii=False))
    return 0


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number
