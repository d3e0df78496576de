"""Debezium's change events as the sink's records: what a row is after its change, or that it is gone. Executor.

An event's value is a struct ``before``, ``after``, ``source``, ``op``, ...; what was flattened (``ExtractNewRecordState``) or
never was an event is taken as it is.
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
    """Whether records of this value schema are change events that were not flattened."""
    if schema is None or schema.type is not Type.STRUCT or (schema.name or "").rpartition(".")[2] != "Envelope":
        return False
    return all(schema.field(name) is not None for name in ("op", "after"))


@dataclass(frozen=True, slots=True)
class FieldFilter:
    """Which fields of a value are written: names, or ``topic:name``; those that are ``included`` if there are any."""

    included: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()

    def takes(self, topic: str, name: str) -> bool:
        names = {name, f"{topic}:{name}"}
        return bool(names & self.included) if self.included else not names & self.excluded


class Events:
    """Makes records fit for the sink. ``collection`` is how tables are named; the name becomes the record's topic.

    Truncations, and deletions where ``deletes`` is False, are passed over, as Debezium's sink does.
    """

    def __init__(self, collection: str, fields: FieldFilter, *, deletes: bool) -> None:
        self._collection = collection
        self._fields = fields
        self._deletes = deletes
        self._chosen: dict[tuple[str, Schema], tuple[Schema, Sequence[int]]] = {}

    def records(self, records: Iterable[SinkRecord]) -> Iterator[SinkRecord]:
        """Give what is to be written. An event that has no row to write is given as it is, for the sink to refuse."""
        for record in records:
            made = self._made(record)
            if made is not None:
                yield made

    def _made(self, record: SinkRecord) -> SinkRecord | None:
        value, schema = record.value, record.value_schema
        event = value if value is not None and is_event(schema) else None
        if event is not None:
            if event["op"] == _TRUNCATE:
                log.debug("A truncation of %s is passed over", record.topic)
                return None
            value = None if event["op"] == _DELETE else event["after"]
            if value is None and event["op"] != _DELETE:
                return record
            schema = None if value is None else value.schema
        if value is not None:
            value, schema = self._chosen_of(record.topic, value, schema)
        elif not self._deletes:
            return None
        table = self._table(record, event)
        if table == record.topic and value is record.value:
            return record
        return None if table is None else record.new_record(topic=table, value=value, value_schema=schema)

    def _chosen_of(self, topic: str, value: Any, schema: Schema | None) -> tuple[Any, Schema | None]:
        """Return a value with the fields that are written."""
        if schema is None or not isinstance(value, Struct) or not (self._fields.included or self._fields.excluded):
            return value, schema
        if (topic, schema) not in self._chosen:
            taken = [field for field in schema.fields if self._fields.takes(topic, field.name)]
            made = Schema.struct([(field.name, field.schema) for field in taken], name=schema.name)
            self._chosen[topic, schema] = (made, [field.index for field in taken])
        chosen, places = self._chosen[topic, schema]
        return Struct.of(chosen, [value.values_[place] for place in places]), chosen

    def _table(self, record: SinkRecord, event: Struct | None) -> str | None:
        """Return the table's name; None if it is made of what the record has not."""
        name = self._collection.replace(_TOPIC, record.topic.replace(".", "_"))
        if "${source." not in name:
            return name
        source = None if event is None else event["source"]
        if source is None:
            log.warning("%s has no source to make the table's name %s of, and is passed over", _place(record), self._collection)
            return None
        return _SOURCE.sub(lambda found: str(source[found[1]]), name)


def _place(record: SinkRecord) -> str:
    return f"{record.original_topic}-{record.original_kafka_partition}@{record.original_kafka_offset}"
