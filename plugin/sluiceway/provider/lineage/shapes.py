"""Reads a few of the newest records of topics: their fields and their size, for OpenLineage. Runs in the Airflow task."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sluiceway.config.worker import WorkerConfig
from sluiceway.data import Schema, Struct
from sluiceway.runtime.task_converters import Converters, task_converters

log = logging.getLogger(__name__)

_RECORDS = 5  # of each topic partition
_TOPICS = 20
_SECONDS = 4.0
_TYPES: Mapping[type, str] = {bool: "boolean", int: "int64", float: "double", str: "string", bytes: "bytes"}


class FieldShape(NamedTuple):
    """A field of a data set. ``type`` is a type of Kafka Connect, or the last part of a logical type's name."""

    name: str
    type: str
    doc: str | None = None


@dataclass(slots=True)
class TopicShape:
    """The fields of a topic's newest record that has a value, and the average size of the records that were read, in bytes."""

    fields: tuple[FieldShape, ...] = ()
    record_bytes: float = 0.0
    _records: int = field(default=0, repr=False)

    def add(self, size: int, fields: tuple[FieldShape, ...]) -> None:
        """Take a record into account. A partition's newest one comes last."""
        self.record_bytes = (self.record_bytes * self._records + size) / (self._records + 1)
        self._records += 1
        self.fields = fields or self.fields


def read_shapes(config: Mapping[str, str], worker: WorkerConfig, topics: Collection[str]) -> dict[str, TopicShape]:
    """Return the shapes of topics that exist and have records. Takes four seconds at most; logs what fails.

    Args:
        config: the connector's, for its converters.
    """
    from sluiceway.kafka.clients import internal_consumer_config
    from sluiceway.kafka.topic_sample import TopicSample

    wanted = sorted(topics)[:_TOPICS]
    shapes: dict[str, TopicShape] = {}
    if not wanted:
        return shapes
    try:
        with closing(task_converters(config, worker, preview=True)) as converters:
            sample = TopicSample(worker, internal_consumer_config(worker, "sluiceway-lineage"), {})
            for message in sample.newest(wanted, _RECORDS, time.monotonic() + _SECONDS):
                key, value = message.key() or b"", message.value()
                fields = _fields(converters, message.topic(), value)
                shapes.setdefault(message.topic(), TopicShape()).add(len(key) + len(value or b""), fields)
    except Exception as error:  # noqa: BLE001 (a converter may raise anything; a run does not depend on it)
        log.info("The fields and sizes of records are missing in OpenLineage's events: %s", error)
    return shapes


def _fields(converters: Converters, topic: str, value: bytes | None) -> tuple[FieldShape, ...]:
    if value is None:
        return ()
    try:
        return fields_of(*converters.value.to_connect_data(topic, value))
    except Exception as error:  # noqa: BLE001 (a record that cannot be converted is the task's concern)
        log.debug("A record of topic %s has no known fields: %s", topic, error)
        return ()


def fields_of(schema: Schema | None, value: Any) -> tuple[FieldShape, ...]:
    """Return the fields of a value: of a struct or a map, otherwise the one field ``value``. No I/O."""
    if schema is not None and (schema.fields or isinstance(value, Struct)):
        return tuple(FieldShape(each.name, _type_name(each.schema), each.schema.doc) for each in schema.fields)
    if isinstance(value, Mapping):
        return tuple(FieldShape(str(name), _type_of(each)) for name, each in value.items())
    if schema is not None:
        return (FieldShape("value", _type_name(schema), schema.doc),)
    return () if value is None else (FieldShape("value", _type_of(value)),)


def _type_name(schema: Schema) -> str:
    return schema.name.rpartition(".")[2] if schema.name and schema.type.primitive else schema.type.value


def _type_of(value: object) -> str:
    if isinstance(value, Mapping):
        return "map"
    return "array" if isinstance(value, list | tuple) else _TYPES.get(type(value), "")
