"""``sluiceway topics`` and ``read``: lists the topics of the cluster, and shows records of one."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluiceway.cli.advice import did_you_mean
from sluiceway.cli.common import Subparsers, say, worker
from sluiceway.cli.output import FORMATS, add_output, show, text
from sluiceway.errors import ConfigError, NotFoundError

if TYPE_CHECKING:
    from sluiceway.config.worker import WorkerConfig
    from sluiceway.kafka.topic_sample import TopicSample

_SECONDS = 30.0
_KINDS = ("earliest", "latest")


def register(subparsers: Subparsers) -> None:
    topics = subparsers.add_parser("topics", help="list the topics of the Kafka cluster and how many records they have")
    topics.add_argument("-a", "--all", action="store_true", help="also topics whose names begin with __")
    add_output(topics)
    read = subparsers.add_parser("read", help="show records of a topic: keys, values, headers, and timestamps")
    read.add_argument("topic", metavar="TOPIC")
    read.add_argument(
        "--from",
        dest="start",
        type=_start,
        default="earliest",
        metavar="WHERE",
        help="earliest, latest for the newest records of each partition, an offset, or a time such as 2026-11-23T09:00:00 (UTC "
        "unless it ends in a zone); default: earliest",
    )
    read.add_argument("-n", "--limit", type=_count, default=10, metavar="N", help="number of records (default: 10)")
    read.add_argument(
        "--connector",
        metavar="NAME",
        help="use this connector's converters (default: a sink's that reads the topic, else a source's that wrote to it)",
    )
    read.add_argument("--show-secrets", action="store_true", help="do not mask secrets")
    read.add_argument("-o", "--output", choices=FORMATS, default="table", help="output format (default: table)")
    for each, run in ((topics, run_topics), (read, run_read)):
        each.add_argument(
            "--worker", type=Path, metavar="WORKER.properties", help="worker file (default: that of 'sluiceway up')"
        )
        each.set_defaults(run=run)


def run_topics(options: argparse.Namespace) -> int:
    """Print each topic with its number of partitions and of offsets between their beginnings and ends."""
    found = [
        {"topic": name, "partitions": partitions, "records": records}
        for name, partitions, records in _sample(worker(options.worker)).sizes()
        if options.all or not name.startswith("__")
    ]
    rows = [tuple(map(str, each.values())) for each in found]
    show(found, [("TOPIC", "PARTITIONS", "RECORDS"), *rows], options.output)
    return 0


def run_read(options: argparse.Namespace) -> int:
    """Print records of a topic. Nothing is committed."""
    from sluiceway.cli.dlq import configs as connector_configs
    from sluiceway.cli.topic_records import RecordReader

    config = worker(options.worker)
    sample = _sample(config)
    known = sample.topics()
    if options.topic not in known:
        question = did_you_mean(options.topic, known) or "'sluiceway topics' lists those that exist."
        raise NotFoundError(f"Topic {options.topic} does not exist. {question}")
    configs = connector_configs(config) if config.config_topic in known else {}  # to look must not create the topic

    def writers() -> list[str]:
        return _users(config, options.topic) if config.status_topic in known else []

    mask = not options.show_secrets
    with RecordReader.of(config, configs, options.topic, options.connector, mask=mask, writers=writers) as reader:
        documents = (reader.document(message) for message in _messages(sample, options))
        if options.output != "table":
            print(text(list(documents), options.output))
            return 0
        count = 0
        for document in documents:
            say("\n".join(_lines(document)))
            count += 1
        say(f"{count} records, {reader.how}")
    return 0


def _users(config: WorkerConfig, topic: str) -> list[str]:
    """Return the connectors that have used a topic, from the status topic."""
    from sluiceway.storage.status_backing_store import KafkaStatusBackingStore

    store = KafkaStatusBackingStore(config, brief=True)
    store.start()
    try:
        return [name for name in sorted(store.snapshot()) if topic in store.topics(name)]
    finally:
        store.stop()


def _sample(config: WorkerConfig) -> TopicSample:
    from sluiceway.kafka.clients import consumer_config
    from sluiceway.kafka.topic_sample import TopicSample

    return TopicSample(config, consumer_config(config, "sluiceway-read", "sluiceway-read"), {})


def _messages(sample: TopicSample, options: argparse.Namespace) -> Iterator[Any]:
    topics, deadline = [options.topic], time.monotonic() + _SECONDS
    if options.start == "latest":
        return sample.newest(topics, options.limit, deadline)
    return sample.read(topics, sample.starts(options.topic, options.start), options.limit, deadline)


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield a record's position and time, then its parts, each on one line without control characters."""
    yield f"{document['topic']}:{document['partition']}:{document['offset']}  {document['timestamp'] or 'no timestamp'}"
    for part in ("key", "value"):
        yield f"  {part:<6}  {json.dumps(document[part])}"
    for header in document["headers"]:
        yield f"  header  {json.dumps(header['key'])} = {json.dumps(header['value'])}"
    if document.get("error"):
        yield f"  error   {' '.join(document['error'].split())}"


def _start(where: str) -> str | int | datetime:
    if where in _KINDS:
        return where
    if where.isdecimal():
        return int(where)
    try:
        moment = datetime.fromisoformat(where.replace("Z", "+00:00").replace("z", "+00:00"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{where!r} is neither earliest, latest, an offset, nor a time") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)


def _count(number: str) -> int:
    count = int(number)
    if count < 1:
        raise ConfigError(f"-n {number}: the number of records must be at least 1.")
    return count
