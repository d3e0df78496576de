"""Columnar forms of StringConverter and ByteArrayConverter. Loads Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from sluiceway.api import Column, ColumnEncoder, ColumnRun
from sluiceway.columns.text import java_texts
from sluiceway.data import OPTIONAL_BYTES_SCHEMA, OPTIONAL_STRING_SCHEMA, Schema

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray


def decode_utf8(data: AnyArray) -> Sequence[ColumnRun]:
    """Decode UTF-8. Raises pyarrow.ArrowInvalid for other bytes, which the row form replaces."""
    return [ColumnRun(0, len(data), Column(OPTIONAL_STRING_SCHEMA, data.cast(pa.utf8())))]


def utf8_encoder(schema: Schema) -> ColumnEncoder:
    """Return the encoder of values as text in UTF-8."""

    def encode(values: AnyArray) -> AnyArray:
        return java_texts(schema, values).cast(pa.binary())

    return encode


def decode_bytes(data: AnyArray) -> Sequence[ColumnRun]:
    """Return the bytes as they are."""
    return [ColumnRun(0, len(data), Column(OPTIONAL_BYTES_SCHEMA, data))]


def encode_bytes(values: AnyArray) -> AnyArray:
    """Return the bytes as they are."""
    return values
