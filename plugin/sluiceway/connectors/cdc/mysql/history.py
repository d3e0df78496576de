"""Writes and reads the schema history topic in Debezium's format (``KafkaSchemaHistory``)."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping
from typing import Any

from sluiceway.connectors.cdc.mysql.binlog.gtids import MariaDbGtidSet, MySqlGtidSet
from sluiceway.connectors.cdc.mysql.ddl.model import Tables
from sluiceway.connectors.cdc.mysql.ddl.statements import TableChange, apply_statement
from sluiceway.connectors.cdc.mysql.ddl.table_changes import change_documents, parse_id, read_table
from sluiceway.errors import ConnectError
from sluiceway.kafka.admin import create_topic, partition_count
from sluiceway.kafka.clients import AdminClient, TopicPartitionOffset, consumer, producer, to_librdkafka

log = logging.getLogger(__name__)

_KAFKA = "kafka."
_READ_SECONDS = 60.0
_BATCH = 500
_FOREVER = "-1"


class SchemaHistory:
    """The schema history of one connector. Used by one thread.

    Args:
        keys: the config keys after ``schema.history.internal.``.
        prefix: the topic prefix.
    """

    def __init__(self, keys: Mapping[str, str], prefix: str) -> None:
        self._prefix = prefix
        self.topic = keys.get("kafka.topic", "")
        self._servers = keys.get("kafka.bootstrap.servers", "")
        self._producer_keys = {key.removeprefix("producer."): value for key, value in keys.items() if key.startswith("producer.")}
        self._consumer_keys = {key.removeprefix("consumer."): value for key, value in keys.items() if key.startswith("consumer.")}
        self._producer: Any = None

    def create(self) -> None:
        """Create the topic unless it exists: one partition, kept forever.

        Raises:
            ConnectError: the brokers do not allow it, or cannot be reached.
        """
        keys = {"bootstrap.servers": self._servers, **self._security()}
        settings = {"retention.ms": _FOREVER, "retention.bytes": _FOREVER, "cleanup.policy": "delete"}
        admin = AdminClient({**to_librdkafka(keys)})
        if partition_count(admin, self.topic) is None:
            create_topic(admin, self.topic, partitions=1, settings=settings)

    def _security(self) -> dict[str, str]:
        return {key: value for key, value in self._producer_keys.items() if key.startswith(("security.", "sasl.", "ssl."))}

    def record(self, change: TableChange, position: Mapping[str, Any]) -> None:
        """Append a change, and wait until Kafka has it.

        Raises:
            ConnectError: Kafka does not store the record.
        """
        document = {
            "source": {"server": self._prefix},
            "position": dict(position),
            "ts_ms": time.time_ns() // 1_000_000,
            "databaseName": change.database,
            "ddl": change.ddl,
            "tableChanges": change_documents(change),
        }
        self._send(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode())

    def _send(self, value: bytes) -> None:
        if self._producer is None:
            keys = {"linger.ms": "0", "acks": "all", **self._producer_keys, "bootstrap.servers": self._servers}
            self._producer = producer(to_librdkafka(keys))
        failures: list[Any] = []
        self._producer.produce(
            self.topic, value, partition=0, on_delivery=lambda error, _message: failures.append(error) if error else None
        )
        left = self._producer.flush(_READ_SECONDS)
        if failures or left:
            raise ConnectError(
                f"Cannot write the schema history topic '{self.topic}' at {self._servers}: "
                f"{failures[0] if failures else 'timeout'}. Check schema.history.internal.kafka.bootstrap.servers."
            )

    def close(self) -> None:
        if self._producer is not None:
            self._producer.flush(5)
            self._producer = None

    def recover(self, offset: Mapping[str, Any], tables: Tables) -> bool:
        """Apply the records up to an offset to the tables. Return False if the topic is missing or has no records."""
        found = False
        for document in self._documents():
            if document.get("source", {}).get("server") != self._prefix:
                continue
            found = True
            if is_at_or_before(document.get("position") or {}, offset):
                _apply(document, tables)
        return found

    def _documents(self) -> Iterator[dict[str, Any]]:
        keys = {
            **self._consumer_keys,
            "bootstrap.servers": self._servers,
            "group.id": f"{self._prefix}-schemahistory",
            "enable.auto.commit": "false",
            "auto.offset.reset": "earliest",
        }
        reader = consumer(to_librdkafka(keys))
        try:
            if self.topic not in reader.list_topics(timeout=_READ_SECONDS).topics:
                return
            low, high = reader.get_watermark_offsets(TopicPartitionOffset(self.topic, 0), timeout=_READ_SECONDS)
            if low > 0:
                log.warning(
                    "The schema history topic '%s' lost its first %s records to retention. Set retention.ms=-1 for it.",
                    self.topic,
                    low,
                )
            reader.assign([TopicPartitionOffset(self.topic, 0, low)])
            deadline = time.monotonic() + _READ_SECONDS
            position = low
            while position < high and time.monotonic() < deadline:
                for message in reader.consume(min(_BATCH, high - position), 1.0):  # waits until it has so many
                    if message.error() is not None:
                        continue
                    position = int(message.offset() or 0) + 1
                    document = _document(message.value())
                    if document is not None:
                        yield document
        finally:
            reader.close()


def _document(value: bytes | None) -> dict[str, Any] | None:
    try:
        document = json.loads(value or b"null")
    except ValueError:
        log.warning("The schema history topic has a record that is no JSON document; it is skipped.")
        return None
    return document if isinstance(document, dict) else None


def _apply(document: Mapping[str, Any], tables: Tables) -> None:
    """Apply one record: its table changes, or its statement if it has none."""
    changes = document.get("tableChanges") or []
    for change in changes:
        table = tables.id(*parse_id(str(change["id"])))
        if change.get("previousId"):
            tables.remove(tables.id(*parse_id(str(change["previousId"]))))
        if change["type"] == "DROP":
            tables.remove(table)
        elif change.get("table"):
            tables.put(read_table(table, change["table"], change.get("comment")))
        else:
            tables.remove(table)
            tables.uncertain.add(table)
    if not changes and document.get("ddl"):
        apply_statement(tables, str(document["ddl"]), str(document.get("databaseName") or ""))


def is_at_or_before(position: Mapping[str, Any], offset: Mapping[str, Any]) -> bool:
    """Whether a history record's position is not after an offset: by GTIDs where both have them, else by file and position."""
    recorded, desired = position.get("gtids"), offset.get("gtids")
    if recorded and desired and recorded != desired:
        return _gtids_before(str(recorded), str(desired))
    same = bool(recorded and desired)
    return _order(position, within=same) <= _order(offset, within=same)


def _order(position: Mapping[str, Any], *, within: bool) -> tuple[Any, ...]:
    """Return what positions are compared by; ``within`` the same transaction only its events and rows."""
    inner = (int(position.get("event") or 0), int(position.get("row") or 0))
    return inner if within else (str(position.get("file") or ""), int(position.get("pos") or 0), *inner)


def _gtids_before(recorded: str, desired: str) -> bool:
    if ":" in recorded:
        return MySqlGtidSet.parse(desired).contains_all(MySqlGtidSet.parse(recorded))
    wanted = MariaDbGtidSet.parse(desired)
    return all(wanted.contains(gtid) for gtid in recorded.split(",") if gtid)
