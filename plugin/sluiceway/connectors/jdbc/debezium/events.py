"""Converts Debezium's change events to records for the sink: the row after the change, or a tombstone.

An event's value is a struct of ``before``, ``after``, ``source``, ``op`` and others. Values that are not events, such as those
flattened by ``ExtractNewRecordState``, stay as they are. Runs on the executors.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sluiceway.api import SinkRecord
from sluiceway.data import Schema, Struct, Type

log = logging.getLogger(__name__)

_SOURCE = re.compile(r"\$\{source\.([^}]+)\}")
_TOPIC = "${topic}"
_DELETE, _TRUNCATE = "d", "t"


def is_event(schema: Schema | None) -> bool:
    """Return whether values of this schema are change events."""
    if schema is None or schema.type is not Type.STRUCT or (schema.name or "").rpartition(".")[2] != "Envelope":
        return False
    return all(schema.field(name) is not None for name in ("op", "after"))


@dataclass(frozen=True, slots=True)
class FieldFilter:
    """Selects the fields to write by name or ``topic:name``: those ``included``, or if empty all but those ``excluded``."""

    included: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()

    def accepts(self, topic: str, name: str) -> bool:
        """Return whether a field of a topic's values is written."""
        names = {name, f"{topic}:{name}"}
        return bool(names & self.included) if self.included else not names & self.excluded


class Events:
    """Converts records. ``collection`` is ``collection.name.format``; the table's name becomes the record's topic.

    Truncations are dropped, and so are deletions if ``deletes`` is False, as in Debezium's sink.
    """

    def __init__(self, collection: str, fields: FieldFilter, *, deletes: bool) -> None:
        self._collection = collection
        self._fields = fields
        self._deletes = deletes
        self._schemas: dict[tuple[str, Schema], tuple[Schema, Sequence[int]]] = {}

    def records(self, records: Iterable[SinkRecord]) -> Iterator[SinkRecord]:
        """Yield the records to write. An event without a row stays as it is, and the sink refuses it."""
        for record in records:
            converted = self._converted(record)
            if converted is not None:
                yield converted

    def _converted(self, record: SinkRecord) -> SinkRecord | None:
        value, schema = record.value, record.value_schema
        event = value if value is not None and is_event(schema) else None
        if event is not None:
            if event["op"] == _TRUNCATE:
                log.debug("Dropped a truncation of %s", record.topic)
                return None
            value = None if event["op"] == _DELETE else event["after"]
            if value is None and event["op"] != _DELETE:
                return record
            schema = None if value is None else value.schema
        if value is not None:
            value, schema = self._filtered(record.topic, value, schema)
        elif not self._deletes:
            return None
        table = self._table(record, event)
        if table == record.topic and value is record.value:
            return record
        return None if table is None else record.new_record(topic=table, value=value, value_schema=schema)

    def _filtered(self, topic: str, value: Any, schema: Schema | None) -> tuple[Any, Schema | None]:
        """Return a value with the selected fields only."""
        if schema is None or not isinstance(value, Struct) or not (self._fields.included or self._fields.excluded):
            return value, schema
        if (topic, schema) not in self._schemas:
            selected = [field for field in schema.fields if self._fields.accepts(topic, field.name)]
            filtered = Schema.struct([(field.name, field.schema) for field in selected], name=schema.name)
            self._schemas[topic, schema] = (filtered, [field.index for field in selected])
        filtered, indexes = self._schemas[topic, schema]
        return Struct.of(filtered, [value.values_[index] for index in indexes]), filtered

    def _table(self, record: SinkRecord, event: Struct | None) -> str | None:
        """Return the table's name; None if the format needs a source that the record does not have."""
        name = self._collection.replace(_TOPIC, record.topic.replace(".", "_"))
        if "${source." not in name:
            return name
        source = None if event is None else event["source"]
        if source is None:
            log.warning("Dropped %s, because it has no source for the table name %s", _position(record), self._collection)
            return None
        return _SOURCE.sub(lambda found: str(source[found[1]]), name)


def _position(record: SinkRecord) -> str:
    return f"{record.original_topic}-{record.original_kafka_partition}@{record.original_kafka_offset}"
