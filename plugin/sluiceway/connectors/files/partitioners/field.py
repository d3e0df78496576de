"""The partitioner by values of fields. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sluiceway.api import SinkRecord
from sluiceway.api.columns import ColumnBatch, NotColumnar, RowFormReason
from sluiceway.connectors.files.partitioners.base import (
    EncodedColumns,
    Partitioner,
    nested_column,
    nested_value,
    struct_or_map,
)
from sluiceway.connectors.path_elements import check_length, path_element
from sluiceway.data import Type
from sluiceway.errors import DataError

_TYPES = (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.STRING, Type.BOOLEAN)


class FieldPartitioner(Partitioner):
    """Writes ``<field>=<value>`` for each field: integers, strings and booleans. Characters that end a name are escaped."""

    def __init__(self, fields: Sequence[str], delimiter: str = "/", *, replace_nulls: bool = True) -> None:
        """``replace_nulls`` is ``replace.null.with.default``."""
        self.fields = tuple(fields)
        self._replace_nulls = replace_nulls
        self._delimiter = delimiter

    def encode(self, record: SinkRecord, now: int) -> str:
        value = struct_or_map(record)
        return self._delimiter.join(_folder(field, nested_value(value, field, self._replace_nulls)) for field in self.fields)

    def encode_columns(self, batch: ColumnBatch, now: int) -> EncodedColumns:
        import numpy as np

        columns, codes = [], np.zeros(len(batch), dtype=np.int64)
        for name in self.fields:
            schema, array = nested_column(batch, name)
            if schema.type not in _TYPES or schema.name is not None:
                raise NotColumnar(f"folders by {schema}", RowFormReason.SCHEMA, field=name)
            encoded = array.dictionary_encode()
            values, places = encoded.dictionary.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False)
            # Numbered again after each field: the product of the counts of values of many fields exceeds 64 bits.
            _, rows, codes = np.unique(codes * len(values) + places, return_index=True, return_inverse=True)
            columns.append((values, places))
        return EncodedColumns([self._name([values[places[row]] for values, places in columns]) for row in rows], codes)

    def _name(self, values: Sequence[Any]) -> str:
        parts = []
        for name, value in zip(self.fields, values, strict=True):
            try:
                parts.append(_folder(name, value))
            except DataError as error:
                raise NotColumnar(str(error), RowFormReason.ERROR, field=name) from error
        return self._delimiter.join(parts)


def _folder(field: str, value: Any) -> str:
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, (int, str)):
        text = str(value)
    else:
        raise DataError(
            f"Cannot partition by the field {field} with the value {value!r}: it has to be an integer, a string or a boolean."
        )
    return check_length(f"{path_element(field)}={path_element(text)}")
