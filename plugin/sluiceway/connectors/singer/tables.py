"""Makes Connect's records of a stream's lines, as columns or one by one. No I/O. Loads msgspec."""

from __future__ import annotations

import datetime as dt
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from sluiceway.api import Column, ColumnBatch
from sluiceway.connectors.singer.fields import (
    EXTRACTED_AT,
    Field,
    Kind,
    Layout,
    has_more_digits,
    micros_of,
    parse_timestamp,
    read_value,
    to_millis,
)
from sluiceway.connectors.singer.messages import Message
from sluiceway.data import Struct
from sluiceway.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from sluiceway.api.columns import AnyArray

log = logging.getLogger(__name__)

_NULL = b"null"
_FIELD = "f{}"
_NUMBER = "^[-0-9]"
_AFTER_MINUTES = len("2026-01-01T10:00")
_TYPES: Mapping[Kind, Any] = {
    Kind.STRING: str | None,
    Kind.INTEGER: int | None,
    Kind.DOUBLE: float | None,
    Kind.BOOLEAN: bool | None,
    Kind.DECIMAL: msgspec.Raw,
    Kind.DATE: str | None,
    Kind.TIMESTAMP: str | None,
    Kind.MICRO_TIMESTAMP: str | None,
    Kind.JSON: msgspec.Raw,
    Kind.NUMBER: msgspec.Raw,
}
_fields_of = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class NoColumnsError(Exception):
    """Lines have no columnar form: they are read one by one, which finds the bad one and says what is wrong."""


class Table:
    """The lines of a stream with one schema, as records of a topic. Tables that share ``told`` say each thing once."""

    def __init__(self, layout: Layout, topic: str, told: set[tuple[str, str]] | None = None) -> None:
        self.layout = layout
        self.topic = topic
        self._decoder = _decoder(layout.fields, strict=True)
        self._told = set() if told is None else told  # what the log has a line about, by stream and field

    def columns(self, lines: Sequence[Message]) -> ColumnBatch:
        """Return a batch of records. Raises NoColumnsError. Loads Arrow."""
        import pyarrow as pa

        from sluiceway.columns.arrays import struct_array

        layout = self.layout
        rows = self._rows(b"\n".join([line.record for line in lines]))
        if len(rows) != len(lines):
            raise NoColumnsError
        try:
            arrays = [
                self._array(field, list(map(attrgetter(_FIELD.format(number)), rows)))
                for number, field in enumerate(layout.fields)
            ]
            arrays += [self._extra(field, lines) for field in layout.extra]
            key = Column(None, None)
            if layout.key_schema is not None:
                keys = [arrays[number] for number in layout.keys]
                required = [not field.schema.optional for field in layout.key_schema.fields]
                if any(array.null_count and needed for array, needed in zip(keys, required, strict=True)):
                    raise NoColumnsError
                key = Column(layout.key_schema, struct_array(layout.key_schema, keys))
            value = Column(layout.schema, struct_array(layout.schema, arrays)) if arrays else None
        except (pa.ArrowException, ValueError, OverflowError, TypeError) as error:
            raise NoColumnsError from error
        if value is None:
            raise NoColumnsError
        return ColumnBatch(topic=self.topic, partition=None, key=key, value=value, count=len(lines))

    def row(self, line: Message) -> tuple[Struct, Struct | None]:
        """Return the value and the key of a line. Raises DataError, without data of the record."""
        layout = self.layout
        found = self._fields(bytes(line.record))
        try:
            values = [read_value(field, found.get(field.name)) for field in layout.fields]
            for field in layout.extra:
                values.append(_version(line) if field.name != EXTRACTED_AT else _extracted(field, line))
            for name in found.keys() - {field.name for field in layout.fields}:
                self._leave_out(name)
            key = self._key(values)
        except DataError as error:
            raise DataError(f"A record of stream {layout.stream} does not match its schema: {error}.") from None
        self._warn_of_cut(values, found)
        return Struct.of(layout.schema, values), key

    def _key(self, values: Sequence[Any]) -> Struct | None:
        schema = self.layout.key_schema
        if schema is None:
            return None
        keys = [values[number] for number in self.layout.keys]
        for field, value in zip(schema.fields, keys, strict=True):
            if value is None and not field.schema.optional:
                raise DataError(f"the field {field.name} of its key is null, or missing")
        return Struct.of(schema, keys)

    def _fields(self, record: bytes) -> Mapping[str, bytes]:
        try:
            return {name: bytes(data) for name, data in _fields_of(record).items()}
        except msgspec.MsgspecError:
            pass
        try:  # NaN and the like, which Python writes
            loaded = json.loads(record)
        except ValueError:
            loaded = None
        if not isinstance(loaded, dict):
            raise DataError(f"A record of stream {self.layout.stream} is no JSON object.")
        return {name: json.dumps(value).encode() for name, value in loaded.items()}

    def _rows(self, data: bytes) -> list[Any]:
        try:
            return self._decoder.decode_lines(data)
        except msgspec.ValidationError as error:
            if "unknown field" not in str(error):
                raise NoColumnsError from error
        except msgspec.MsgspecError as error:
            raise NoColumnsError from error
        known = {field.name for field in self.layout.fields}
        for line in data.split(b"\n"):
            for name in self._fields(line).keys() - known:
                self._leave_out(name)
        try:
            return self._decoder.decode_lines(data)
        except msgspec.MsgspecError as error:
            raise NoColumnsError from error

    def _leave_out(self, name: str) -> None:
        """Say once that records have a field that the schema does not, and read such records from now on."""
        if self._decoder.strict_fields:
            self._decoder = _decoder(self.layout.fields, strict=False)
        if self._is_new(name):
            log.warning(
                "Records of stream %s have the field %s, which its schema does not have: it is left out",
                *(self.layout.stream, name),
            )

    # --- columns ---

    def _array(self, field: Field, values: list[Any]) -> AnyArray:
        import pyarrow as pa
        import pyarrow.compute as pc

        from sluiceway.columns.arrow_schema import arrow_type

        kind = field.form.kind
        if kind in (Kind.JSON, Kind.NUMBER, Kind.DECIMAL):
            texts = _texts(values)
            if kind is Kind.JSON:
                return texts
            if pc.all(pc.match_substring_regex(texts, _NUMBER)).as_py() is False:
                raise NoColumnsError
            return texts if kind is Kind.NUMBER else texts.cast(arrow_type(field.form.schema()))
        if kind in (Kind.TIMESTAMP, Kind.MICRO_TIMESTAMP):
            return self._timestamps(field, pa.array(values, pa.utf8()))
        if kind is Kind.DATE:
            return pa.array(values, pa.utf8()).cast(pa.date32())
        return pa.array(values, arrow_type(field.form.schema()))

    def _timestamps(self, field: Field, texts: pa.StringArray) -> AnyArray:
        import pyarrow as pa
        import pyarrow.compute as pc

        found: Any
        millis: AnyArray
        # Arrow reads the same as parse_timestamp, and times without seconds.
        after: Any = pc.utf8_slice_codeunits(texts, _AFTER_MINUTES, _AFTER_MINUTES + 1)
        if pc.all(pc.equal(after, pa.scalar(":"))).as_py() is False:
            raise NoColumnsError
        try:
            found = texts.cast(pa.timestamp("us", tz="UTC"))
        except pa.ArrowInvalid:  # without a zone
            found = texts.cast(pa.timestamp("us")).view(pa.timestamp("us", tz="UTC"))
        if field.form.kind is Kind.MICRO_TIMESTAMP:
            whole: AnyArray = found.view(pa.int64())
            return whole
        millis = pc.floor_temporal(found, 1, unit="millisecond")
        if not millis.equals(found):
            self._note_cut(field.name)
        return millis.cast(pa.timestamp("ms", tz="UTC"))

    def _extra(self, field: Field, lines: Sequence[Message]) -> AnyArray:
        import pyarrow as pa

        if field.name != EXTRACTED_AT:
            return pa.array(list(map(_version, lines)), pa.int64())
        texts = pa.array(list(map(_extracted_at, lines)), pa.utf8())
        return texts if field.form.kind is Kind.STRING else self._timestamps(field, texts)

    # --- digits that the form of timestamps cannot hold ---

    def _warn_of_cut(self, values: Sequence[Any], found: Mapping[str, bytes]) -> None:
        for field, value in zip(self.layout.fields, values, strict=False):
            timestamp = field.form.kind in (Kind.TIMESTAMP, Kind.MICRO_TIMESTAMP)
            if timestamp and value is not None and (self.layout.stream, field.name) not in self._told:
                text = json.loads(found[field.name])
                if has_more_digits(text, 3 if field.form.kind is Kind.TIMESTAMP else 6):
                    self._note_cut(field.name)

    def _is_new(self, field: str) -> bool:
        known = (self.layout.stream, field) in self._told
        self._told.add((self.layout.stream, field))
        return not known

    def _note_cut(self, name: str) -> None:
        if name != EXTRACTED_AT and self._is_new(name):
            log.warning(
                "Field %s of stream %s has timestamps with more digits than singer.timestamps allows: they are cut. Set it to "
                "microseconds or string to keep them.",
                *(name, self.layout.stream),
            )


def _version(line: Message) -> int | None:
    return line.version if isinstance(line.version, int) and not isinstance(line.version, bool) else None


def _extracted_at(line: Message) -> str | None:
    return line.time_extracted if isinstance(line.time_extracted, str) else None


def _extracted(field: Field, line: Message) -> Any:
    """Return the value of the metadata field of the time of extraction."""
    text = _extracted_at(line)
    if text is None or field.form.kind is Kind.STRING:
        return text
    try:
        moment: dt.datetime = parse_timestamp(text)
    except ValueError as error:
        raise DataError(f"time_extracted has {error}") from None
    return micros_of(moment) if field.form.kind is Kind.MICRO_TIMESTAMP else to_millis(moment)


def _texts(values: Sequence[msgspec.Raw]) -> pa.StringArray:
    """Return JSON texts, and null for null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts: Any = pa.array(list(map(bytes, values)), pa.binary()).cast(pa.utf8())
    found: pa.StringArray = pc.if_else(pc.equal(texts, pa.scalar("null")), pa.scalar(None, pa.utf8()), texts)
    return found


class _Decoder(NamedTuple):
    decode_lines: Callable[[bytes], list[Any]]
    strict_fields: bool


def _decoder(fields: Sequence[Field], *, strict: bool) -> _Decoder:
    """Return a decoder of records, whose attributes are numbered; fields that the schema lacks are errors if it is strict."""
    names = {_FIELD.format(number): field.name for number, field in enumerate(fields)}
    made = msgspec.defstruct(
        "Record",
        [
            (name, _TYPES[field.form.kind], msgspec.Raw(_NULL) if _TYPES[field.form.kind] is msgspec.Raw else None)
            for name, field in zip(names, fields, strict=True)
        ],
        rename=names,
        forbid_unknown_fields=strict,
        gc=False,
    )
    return _Decoder(msgspec.json.Decoder(made).decode_lines, strict)
