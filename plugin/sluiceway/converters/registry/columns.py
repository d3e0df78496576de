"""The columnar form of the Schema Registry's wire format: runs of messages with one schema id. Runs on executors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute

from sluiceway.api.columns import ColumnDecoder, ColumnEncoder, NotColumnar, RowFormReason, row_form
from sluiceway.columns.arrays import to_values
from sluiceway.columns.arrow_schema import arrow_type
from sluiceway.columns.text_arrays import with_nulls
from sluiceway.converters.column_runs import RunDecoder
from sluiceway.data import Schema
from sluiceway.errors import ConnectError, DataError

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray

    Convert = Callable[[AnyArray], AnyArray]

pc: Any = pyarrow.compute  # its stubs do not know all arguments

PREFIX_SIZE = 5
SMALLEST_RUN = 64
"""Shorter runs are decoded record by record, which is as fast."""
CHUNK = 8192


def registry_decoder(
    schema_of: Callable[[bytes], Schema | None], open_reader: Callable[[bytes, Schema], Convert]
) -> ColumnDecoder:
    """Return the decoder of messages in the wire format.

    ``schema_of`` returns the schema of messages with a prefix, None if only the row form reads them. It may ask the registry.
    """
    schemas: dict[bytes, Schema | None] = {}

    def find_prefix(message: bytes) -> tuple[bytes, Schema | None] | None:
        prefix = message[:PREFIX_SIZE]
        if prefix not in schemas:
            try:
                schemas[prefix] = schema_of(prefix)
            except DataError:
                return None
            except ConnectError as error:  # the row form reports it, or retries
                raise NotColumnar(str(error), RowFormReason.ERROR) from error
        return prefix, schemas[prefix]

    return RunDecoder(find_prefix, open_reader, smallest_run=SMALLEST_RUN, chunk=CHUNK)


def registry_encoder(schema: Schema, encode_row: Callable[[Any], bytes | None], write: Convert) -> ColumnEncoder:
    """Return the encoder of a schema's values.

    The row form encodes the first value of each array. It registers or looks up the schema, and its bytes before what
    ``write`` returns for that value are the prefix of all messages.
    """
    kind = arrow_type(schema)

    def encode(values: AnyArray) -> AnyArray:
        if values.type != kind:
            raise NotColumnar(f"an array of {values.type} for {schema}")
        present = values.drop_null() if values.null_count else values
        if len(present) < len(values) and _row(encode_row, None) is not None:
            raise NotColumnar("messages for null")
        if not len(present):
            return pa.nulls(len(values), pa.binary())
        payloads = write(present)
        messages = pc.binary_join_element_wise(_prefix(schema, encode_row, present, payloads), payloads, b"")
        return messages if present is values else with_nulls(values, messages, None)

    return encode


def _prefix(schema: Schema, encode_row: Callable[[Any], bytes | None], values: AnyArray, payloads: AnyArray) -> bytes:
    first: Any = payloads[0].as_py()
    (value,) = to_values(schema, values.slice(0, 1))
    message = _row(encode_row, value)
    if message is None or len(message) != PREFIX_SIZE + len(first) or not message.endswith(first):
        raise NotColumnar("a message with other bytes than the columnar form's")
    return message[:PREFIX_SIZE]


def _row(encode_row: Callable[[Any], bytes | None], value: Any) -> bytes | None:
    with row_form():
        return encode_row(value)
