"""Configs, records and stores for tests of exactly-once sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from sluiceway.api import Offset, SourceRecord
from sluiceway.config.worker import WorkerConfig
from sluiceway.connectors.verifiable.checker import Verdict, check
from sluiceway.connectors.verifiable.numbering import TopicRecord, from_topic
from sluiceway.data import STRING_SCHEMA
from sluiceway.storage.connector_offset_backing_store import ConnectorOffsetBackingStore
from sluiceway.storage.factory import open_source_offsets
from sluiceway.storage.offset_backing_store import KafkaOffsetBackingStore
from support.engine_connectors import SOURCE
from support.transactions import seen

VERIFIABLE = "sluiceway.connectors.verifiable.source.VerifiableSourceConnector"
PARTITION = {"file": "p"}

Worker = dict[str, str]
Names = Callable[[str], str]
Store = KafkaOffsetBackingStore | ConnectorOffsetBackingStore


def config_of(name: str, connector: str = SOURCE, **more: str) -> dict[str, str]:
    given = {key.replace("_", "."): value for key, value in more.items()}
    return {"name": name, "connector.class": connector, "topic": name, **given}


def records(topic: str, *numbers: int, **more: Any) -> list[SourceRecord]:
    return [SourceRecord(PARTITION, {"position": number}, topic, str(number), STRING_SCHEMA, **more) for number in numbers]


def values(worker: Worker, topic: str, *, committed: bool = True) -> list[int]:
    return [int(message.value() or b"") for message in seen(worker["bootstrap.servers"], topic, committed=committed)]


def judged(worker: Worker, topic: str) -> Verdict:
    found = seen(worker["bootstrap.servers"], topic)
    return check(from_topic(TopicRecord(topic, 0, message.key(), message.value()) for message in found))


def stored(store: Store, name: str) -> Offset | None:
    return store.get(name, [PARTITION])[0]


def verifiable(name: str, **more: str) -> dict[str, str]:
    numbers = {
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
        "key.converter": "JsonConverter",
        "key.converter.schemas.enable": "false",
    }
    return {**config_of(name, VERIFIABLE, **more), **numbers}


def exactly_once_worker(bootstrap: str, unique: Names) -> Worker:
    """Return properties of a worker with exactly-once support and internal topics of its own."""
    properties = {
        "bootstrap.servers": bootstrap,
        "group.id": unique("group"),
        "exactly.once.source.support": "enabled",
        "key.converter": "StringConverter",
        "value.converter": "StringConverter",
        "offset.storage.partitions": "3",
        "offset.flush.interval.ms": "600000",
    }
    for kind in ("config", "offset", "status"):
        properties |= {f"{kind}.storage.topic": unique(kind), f"{kind}.storage.replication.factor": "1"}
    return properties


@contextmanager
def opened_stores(worker: Worker) -> Iterator[Callable[[dict[str, str]], Any]]:
    """Yield a function that opens a task's offset store; close the stores at the end."""
    with ExitStack() as stack:

        def opened(config: dict[str, str]) -> Store:
            store = open_source_offsets(WorkerConfig.of(worker), config)
            store.start()
            stack.callback(store.stop)
            return store

        yield opened
