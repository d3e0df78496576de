"""Compiles the function from rows to records for each table, which keeps the cost of a row low. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sluiceway.api import Partition, SourceRecord
from sluiceway.connectors.jdbc.dialects.values import Convert
from sluiceway.connectors.jdbc.source.offsets import (
    INCREMENTING_FIELD,
    NANOS_FIELD,
    TIMESTAMP_FIELD,
    timestamp_offset,
    whole_number,
)
from sluiceway.data import Schema, Struct, Type
from sluiceway.data.generated import Code

WHOLE = (Type.INT8, Type.INT16, Type.INT32, Type.INT64)

MakeRecords = Callable[[Sequence[Any]], list[SourceRecord]]


def records_function(
    schema: Schema,
    converters: Sequence[Convert | None],
    partition: Partition,
    topic: str,
    *,
    key: tuple[Schema, Sequence[int]] | None = None,
    incrementing: int | None = None,
    timestamp: tuple[int, Convert] | None = None,
    width: int | None = None,
    offset_fields: Mapping[str, Any] | None = None,
) -> MakeRecords:
    """Return the function from rows to records.

    A row has the schema's fields in order, and possibly more: ``width`` values in all. ``incrementing`` is the index of the
    offset's number, ``timestamp`` the index of its timestamp and the conversion to UTC; without both, records have no
    offset. ``key`` is the schema of the record's key and its fields' indexes. ``offset_fields`` are added to each offset.
    """
    # Attributes are set one by one, because calls of constructors would cost more than all the rest.
    code = Code(SourceRecord=SourceRecord, Struct=Struct, new=object.__new__)
    values = [_value(code, f"v{index}", convert) for index, convert in enumerate(converters)]
    row = "".join(f"v{index}, " for index in range(width or len(values)))
    own, lines = code.bind(schema), []
    fields = [f"{name!r}: {value!r}" for name, value in (offset_fields or {}).items()]
    if timestamp is not None:
        lines.append(f"t = {code.bind(timestamp_offset)}({code.bind(timestamp[1])}(v{timestamp[0]}))")
        fields += [f"{name!r}: t[{name!r}]" for name in (TIMESTAMP_FIELD, NANOS_FIELD)]
    if incrementing is not None:
        whole = schema.fields[incrementing].schema.type in WHOLE
        number = values[incrementing] if whole else f"{code.bind(whole_number)}(v{incrementing})"
        fields.append(f"{INCREMENTING_FIELD!r}: {number}")
    lines += _struct("s", own, values)
    key_name, key_schema = "None", "None"
    if key is not None:
        key_name, key_schema = "k", code.bind(key[0])
        lines += _struct(key_name, key_schema, [values[index] for index in key[1]])
    attributes = {
        "source_partition": code.bind(partition),
        "source_offset": f"{{{', '.join(fields)}}}" if fields else "None",
        "topic": code.bind(topic),
        "kafka_partition": "None",
        "timestamp": "None",
        "headers": "()",
        "key_schema": key_schema,
        "key": key_name,
        "value_schema": own,
        "value": "s",
    }
    lines += ["r = new(SourceRecord)", *(f"r.{name} = {value}" for name, value in attributes.items()), "append(r)"]
    body = ["records = []", "append = records.append", f"for {row}in rows:", *(f"    {line}" for line in lines), "return records"]
    return code.callable(code.function("rows", body))


def _struct(name: str, schema: str, values: Sequence[str]) -> list[str]:
    return [f"{name} = new(Struct)", f"{name}.schema = {schema}", f"{name}.values_ = [{', '.join(values)}]"]


def _value(code: Code, name: str, convert: Convert | None) -> str:
    return name if convert is None else f"(None if {name} is None else {code.bind(convert)}({name}))"


def hold_back_equal_times(
    records: Sequence[SourceRecord], before: dict[str, Any] | None, following: dict[str, Any] | None
) -> None:
    """Set each record's offset to the last timestamp of which no row follows, so that a restart skips no row.

    ``before`` is the offset before the first record, ``following`` that of the row after the last one, None if there is
    none. Changes the records in place.
    """
    safe, offsets = before, [record.source_offset for record in records]
    for record, own, after in zip(records, offsets, [*offsets[1:], following], strict=True):
        if after != own:
            safe = dict(own or {})
        record.source_offset = safe
