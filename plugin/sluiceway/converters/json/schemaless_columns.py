"""Decodes messages without a schema: a chunk is parsed as one JSON document. It returns the same values as the row form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sluiceway.api.columns import Column, ColumnDecoder, ColumnRun, Refusal, RowFormReason
from sluiceway.converters.json.joined_payloads import parse_payloads
from sluiceway.converters.json.parser import loads_exactly
from sluiceway.errors import DataError

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray

    Decode = Callable[[bytes | None], Any]

_CHUNK = 1000
_BAD = Refusal(RowFormReason.ERROR, "a message is not JSON")


def schemaless_decoder(decode: Decode) -> ColumnDecoder:
    """Return the columnar form of a row form that decodes a message to a schemaless value."""

    def decode_columns(messages: AnyArray) -> Sequence[ColumnRun]:
        runs: list[ColumnRun] = []
        for start in range(0, len(messages), _CHUNK):
            part = messages.slice(start, _CHUNK)
            values, end = _values(part, decode), start + len(part)
            last = runs[-1] if runs else None
            if last is None or (last.column is None) != (values is None):
                column, refusal = (None, _BAD) if values is None else (Column(None, None, values), None)
                runs.append(ColumnRun(start, end, column, refusal))
            else:
                if last.column is not None and isinstance(last.column.objects, list) and values is not None:
                    last.column.objects.extend(values)
                runs[-1] = last._replace(end=end)
        return runs

    return decode_columns


def _values(messages: AnyArray, decode: Decode) -> list[Any] | None:
    """Return the values of messages; None if the row form must report one of them."""
    present = messages.drop_null() if messages.null_count else messages
    try:
        values = parse_payloads(present, loads_exactly) if len(present) else []
    except ValueError:  # an unusual message: decode them one by one
        try:
            return [decode(message) for message in messages.to_pylist()]
        except DataError:
            return None
    if present is messages:
        return values
    found = iter(values)
    return [next(found) if is_valid else None for is_valid in messages.is_valid().to_pylist()]
