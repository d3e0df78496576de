"""PartitionRouting: chooses the partition of a change event by fields of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sluiceway.api import SourceRecord, Transform
from sluiceway.api.transform import R
from sluiceway.config.definition import ConfigDef, Importance, Type, Width
from sluiceway.data import Schema, Struct
from sluiceway.data import Type as SchemaType
from sluiceway.errors import ConnectError, DataError
from sluiceway.java.blanks import trim
from sluiceway.java.numbers import wrap
from sluiceway.transforms.debezium.envelope import (
    AFTER,
    BEFORE,
    DELETE,
    MESSAGE,
    OPERATION,
    TRUNCATE,
    cast_to_struct,
    is_envelope,
    operation_of,
    typed,
)
from sluiceway.transforms.debezium.errors import DebeziumError
from sluiceway.transforms.debezium.hashes import java_hash, murmur_hash
from sluiceway.transforms.debezium.options import (
    Options,
    config_def,
    option,
    positive_integer,
    required,
    without_empty_elements,
)
from sluiceway.transforms.util.mappings import java_split

_FIELDS, _PARTITIONS, _FUNCTION = "partition.payload.fields", "partition.topic.num", "partition.hash.function"
_GROUP = "partitions"
_OPTIONS = (
    option(
        _FIELDS,
        Type.LIST,
        "List of payload fields to use for compute partition.",
        "Fields of the change event that decide the partition, such as source.table or after.name. change.name is the field of "
        "the row before a delete and after any other change. Fields that a record does not have are left out.",
        importance=Importance.HIGH,
        width=Width.NONE,
        group=_GROUP,
        order=1,
        checks=(required, without_empty_elements),
    ),
    option(
        _PARTITIONS,
        Type.INT,
        "Number of partition configured for topic",
        "Number of partitions of the topic.",
        importance=Importance.HIGH,
        width=Width.NONE,
        group=_GROUP,
        order=2,
        checks=(required, positive_integer),
    ),
    option(
        _FUNCTION,
        Type.STRING,
        "Hash function",
        "Hash function of the values: java (Java's hashCode) or murmur.",
        default="java",
        width=Width.NONE,
        group=_GROUP,
        order=3,
    ),
)
_CONFIG = config_def(_OPTIONS)
_INT_MAX = (1 << 31) - 1

HashFunction = Callable[[Any, Schema], int]


class PartitionRouting(Transform):
    """Sets the partition of change events of source connectors to a hash of some of their fields."""

    java_class = "io.debezium.transforms.partitions.PartitionRouting"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _CONFIG

    def configure(self, config: Mapping[str, str]) -> None:
        options = Options(_OPTIONS, config)
        options.require_valid((_FIELDS, _PARTITIONS))
        self._paths = [[trim(name) for name in java_split(field, ".")] for field in options.items(_FIELDS)]
        self._partitions = options.integer(_PARTITIONS)
        murmur = trim(options.text(_FUNCTION) or "").lower() == "murmur"
        self._hash: HashFunction = murmur_hash if murmur else java_hash

    def apply(self, record: R) -> R | Sequence[R] | None:
        if record.value is None or not is_envelope(record.value_schema):
            return record
        value = cast_to_struct(record.value)
        try:
            if not isinstance(record, SourceRecord):
                raise TypeError("PartitionRouting is for source connectors only.")
            partition = self._partition(value)
        except (ConnectError, TypeError, IndexError) as error:
            raise DebeziumError(f"Unprocessable message {value}") from error
        return record if partition is None else record.new_record(kafka_partition=partition)

    def _partition(self, value: Struct) -> int | None:
        """Return the partition, None to leave it to the producer."""
        if operation_of(value) in (TRUNCATE, MESSAGE):
            return None
        found = [each for path in self._paths if (each := _at(path, value)) is not None]
        if not found:
            return None
        total = sum(self._hash(each, schema) for each, schema in found)
        positive = wrap(total, 32) & _INT_MAX
        return (0 if positive == _INT_MAX else positive) % self._partitions


def _at(path: Sequence[str], value: Struct) -> tuple[Any, Schema] | None:
    """Return the value at a path with its schema, None if there is none."""
    try:
        struct: Struct | None = value
        for name in path[:-1]:
            if struct is None:
                return None
            struct = typed(struct, _resolved(name, value), SchemaType.STRUCT)
        if struct is None:
            return None
        found = struct[path[-1]]
    except DataError:  # no such field, or it is no struct
        return None
    field = struct.schema.field(path[-1])
    return None if found is None or field is None else (found, field.schema)


def _resolved(name: str, value: Struct) -> str:
    if name != "change":
        return name
    operation = typed(value, OPERATION, SchemaType.STRING)
    return BEFORE if operation is not None and str(operation).lower() == DELETE else AFTER
