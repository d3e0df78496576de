"""The interface of partitioners, and the partitioner by Kafka partition. No I/O."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from sluiceway.api import SinkRecord
from sluiceway.api.columns import ColumnBatch, NotColumnar, RowFormReason
from sluiceway.data import Schema, Struct, Type
from sluiceway.data.null_values import read_field
from sluiceway.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from sluiceway.api.columns import AnyArray


@dataclass(frozen=True, slots=True)
class EncodedColumns:
    """The encoded partitions of a batch: ``names``, and for each record the index of its name; None if all have the first."""

    names: Sequence[str]
    indices: np.ndarray[Any, Any] | None = None


class Partitioner(abc.ABC):
    """Chooses the folder of a record below its topic's folder. ``now`` is in milliseconds since the epoch."""

    @abc.abstractmethod
    def encode(self, record: SinkRecord, now: int) -> str:
        """Return the folder of a record. Raises DataError if it has none."""

    @abc.abstractmethod
    def encode_columns(self, batch: ColumnBatch, now: int) -> EncodedColumns:
        """Return the folders of a batch. Raises NotColumnar."""

    def time_of(self, record: SinkRecord, now: int) -> int:
        """Return the time by which a record rotates files, by default the wall clock. Raises DataError if it has none."""
        return now

    def times_of(self, batch: ColumnBatch, now: int) -> np.ndarray[Any, Any] | None:
        """Return ``time_of`` for a batch, or None for the wall clock. Raises NotColumnar."""
        return None

    @property
    def by_record_time(self) -> bool:
        """Whether ``time_of`` depends on the record."""
        return False

    @property
    def by_partition(self) -> bool:
        """Whether ``encode`` depends only on the record's topic partition."""
        return False


class DefaultPartitioner(Partitioner):
    """Writes ``partition=<Kafka partition>``."""

    def encode(self, record: SinkRecord, now: int) -> str:
        return f"partition={record.kafka_partition}"

    @property
    def by_partition(self) -> bool:
        return True

    def encode_columns(self, batch: ColumnBatch, now: int) -> EncodedColumns:
        return EncodedColumns([f"partition={batch.partition}"])


def nested_value(value: Any, name: str, replace_nulls: bool) -> Any:
    """Return the field of a struct or map; dots lead into nested ones. Raises DataError if there is none.

    ``replace_nulls``: whether a null of an optional field is read as its default.
    """
    found = value
    for part in _path(value, name):
        if not isinstance(found, Mapping) or part not in found:
            raise DataError(f"The value has no field {name}, by which files are partitioned")
        found = read_field(found, part, replace=replace_nulls) if isinstance(found, Struct) else found[part]
    return found


def _path(value: Any, name: str) -> list[str]:
    """Return the names on the way to a field; a field whose name has dots wins."""
    return [name] if isinstance(value, Mapping) and name in value else name.split(".")


def nested_column(batch: ColumnBatch, name: str) -> tuple[Schema, AnyArray]:
    """Return the schema and array of a value's field. Raises NotColumnar if there is none, or if its nulls have a default."""
    schema, array = batch.value.schema, batch.value.values
    if schema is None or array is None or schema.type is not Type.STRUCT or array.null_count:
        raise NotColumnar(f"a field of {schema}", RowFormReason.SCHEMA, field=name)
    for part in [name] if schema.field(name) is not None else name.split("."):
        field = schema.field(part) if schema.type is Type.STRUCT else None
        if field is None:
            raise NotColumnar("there is no such field", RowFormReason.ERROR, field=name)
        schema, array = field.schema, cast("pa.StructArray", array).field(field.index)
        if array.null_count:
            raise NotColumnar("null in a field by which files are partitioned", field=name)
    return schema, array


def struct_or_map(record: SinkRecord) -> Struct | Mapping[str, Any]:
    """Return a record's value. Raises DataError unless it has fields."""
    if not isinstance(record.value, Mapping):
        raise DataError("Files are partitioned by a field, but the value is neither a struct nor a map.")
    return record.value
