"""Makes Singer's messages of sink records, and keeps them until a flush. No I/O. Loads msgspec."""

from __future__ import annotations

import abc
import datetime as dt
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from sluiceway.api import SinkRecord, TopicPartition
from sluiceway.connectors.simple_values import record_name
from sluiceway.connectors.singer.inferred import Inferred, loads
from sluiceway.connectors.singer.sink_config import (
    KAFKA_FIELDS,
    ON_NULL,
    PK_FIELDS,
    PK_MODE,
    TOPIC_PLACEHOLDER,
    OnNull,
    PkMode,
    SinkOptions,
)
from sluiceway.connectors.singer.typed import INTEGER, STRING, JsonSchema, merged_properties, moment_text, nested
from sluiceway.data import Schema, Struct, Type
from sluiceway.data.instant import timestamp_of
from sluiceway.errors import DataError

_encode = msgspec.json.Encoder(decimal_format="number").encode
_KAFKA_SCHEMAS: tuple[JsonSchema, ...] = ({"type": STRING}, {"type": INTEGER}, {"type": INTEGER})


class Part(abc.ABC):
    """Makes the fields of an object of keys or values with one schema, or without one.

    ``shape`` is what they are without a schema.
    """

    shape: Inferred | None = None

    @abc.abstractmethod
    def take(self, value: Any) -> dict[str, Any]:
        """Return the JSON form of a value's fields. Raises DataError."""

    @abc.abstractmethod
    def properties(self) -> dict[str, JsonSchema]:
        """Return the schemas of the fields."""


class _Typed(Part):
    """Structs of one schema."""

    def __init__(self, schema: Schema, what: str, *, replace_nulls: bool) -> None:
        if schema.type is not Type.STRUCT:
            raise DataError(f"Its {what} is no object, but has a schema of the type {schema.type.value}. {_advice(what)}")
        fields = [(each, nested(each.schema, each.name, replace_nulls=replace_nulls)) for each in schema.fields]
        self._properties = {field.name: part.schema for field, part in fields}
        self._fields = tuple((field.name, field.index, part.convert) for field, part in fields)
        self._what = what

    def take(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, Struct):
            raise DataError(f"Its {self._what} is no struct, but {_kind(value)}.")
        values = value.values_
        return {name: convert(values[index]) for name, index, convert in self._fields}

    def properties(self) -> dict[str, JsonSchema]:
        return self._properties


class _Untyped(Part):
    """Objects without a schema. Their schema is what they have in common."""

    def __init__(self, what: str) -> None:
        self.shape = self._shape = Inferred()
        self._what = what

    def take(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise DataError(f"Its {self._what} is no object, but {_kind(value)}. {_advice(self._what)}")
        taken: dict[str, Any] = self._shape.take(value)
        return taken

    def properties(self) -> dict[str, JsonSchema]:
        return self._shape.properties()


class _Single(Part):
    """Keys that are single values, as a field of a name."""

    def __init__(self, name: str, schema: Schema | None, *, replace_nulls: bool) -> None:
        self._name = name
        self._typed = None if schema is None else nested(schema, name, replace_nulls=replace_nulls)
        self.shape = Inferred() if schema is None else None

    def take(self, value: Any) -> dict[str, Any]:
        if self.shape is None:
            return {self._name: value if self._typed is None else self._typed.convert(value)}
        taken: dict[str, Any] = self.shape.take({self._name: value})
        return taken

    def properties(self) -> dict[str, JsonSchema]:
        if self.shape is not None:
            return self.shape.properties()
        return {} if self._typed is None else {self._name: self._typed.schema}


class _Nothing(Part):
    """No fields."""

    def take(self, _value: Any) -> dict[str, Any]:
        return {}

    def properties(self) -> dict[str, JsonSchema]:
        return {}


class Described(NamedTuple):
    """The content of a SCHEMA message."""

    properties: Mapping[str, JsonSchema]
    keys: Sequence[str]

    def message(self, stream: str) -> bytes:
        schema = {"type": "object", "properties": self.properties}
        return _encode({"type": "SCHEMA", "stream": stream, "schema": schema, "key_properties": self.keys}) + b"\n"

    def with_(self, other: Described) -> Described | None:
        """Return what describes the records of both; None if there is nothing."""
        both = merged_properties(self.properties, other.properties) if list(self.keys) == list(other.keys) else None
        return None if both is None else Described(both, self.keys)


class Form:
    """Makes the objects of a stream's records with one key schema and one value schema."""

    def __init__(self, options: SinkOptions, key: Part, value: Part) -> None:
        self._mode, self._names = options.pk_mode, options.pk_fields
        self._key, self._value = key, value
        self._kafka = options.pk_fields or KAFKA_FIELDS

    def line(self, record: SinkRecord) -> bytes:
        """Return a record's fields as JSON. Raises DataError."""
        made = self._value.take(record.value)
        keys = self._keys_of(record, made)
        for name, value in keys.items():
            if value is None:
                raise DataError(f"The field {name} of its key is null.")
        made |= keys
        try:
            return _encode(made)
        except (OverflowError, ValueError, RecursionError) as error:
            raise DataError(f"It has no form in JSON: {type(error).__name__}.") from None

    def _keys_of(self, record: SinkRecord, values: Mapping[str, Any]) -> Mapping[str, Any]:
        mode = self._mode
        if mode is PkMode.NONE:
            return {}
        if mode is PkMode.KAFKA:
            topic, partition = record.original_topic_partition
            return dict(zip(self._kafka, (topic, partition, record.original_kafka_offset), strict=True))
        found = values if mode is PkMode.RECORD_VALUE else self._key.take(record.key)
        names = self._names or found
        missing = next((name for name in names if name not in found), None)
        if missing is not None:
            part = "value" if mode is PkMode.RECORD_VALUE else "key"
            raise DataError(f"Its {part} has no field {missing}, which {PK_FIELDS} names.")
        return {name: found[name] for name in names}

    def described(self) -> Described:
        """Return the fields and key properties of the records taken so far."""
        values = self._value.properties()
        keys = self._key_schemas(values)
        properties = {**keys, **{name: each for name, each in values.items() if name not in keys}}
        return Described(properties, list(keys))

    def _key_schemas(self, values: Mapping[str, JsonSchema]) -> Mapping[str, JsonSchema]:
        mode = self._mode
        if mode is PkMode.NONE:
            return {}
        if mode is PkMode.KAFKA:
            return dict(zip(self._kafka, _KAFKA_SCHEMAS, strict=True))
        found = values if mode is PkMode.RECORD_VALUE else self._key.properties()
        return {name: _without_null(found[name]) for name in self._names or found if name in found}

    def fit(self) -> Callable[[bytes], bytes] | None:
        """Return what makes a line as later records want it, which have turned fields into texts; None if none has."""
        keys = set(self._key_schemas(self._value.properties())) if self._mode is not PkMode.RECORD_VALUE else set()
        shapes: dict[str, Inferred] = {}
        if self._value.shape is not None:
            shapes.update({name: shape for name, shape in self._value.shape.fields.items() if name not in keys and shape.mixed})
        if self._key.shape is not None:
            shapes.update({name: shape for name, shape in self._key.shape.fields.items() if name in keys and shape.mixed})
        if not shapes:
            return None

        def fitted(line: bytes) -> bytes:
            made = loads(line)
            for name in made.keys() & shapes.keys():
                made[name] = shapes[name].fit(made[name])
            return _encode(made)

        return fitted


def _without_null(schema: JsonSchema) -> JsonSchema:
    """Return the schema of a key, which is never null."""
    kind = schema["type"]
    return {**schema, "type": next(each for each in kind if each != "null")} if isinstance(kind, list) else schema


def _kind(value: Any) -> str:
    return "null" if value is None else f"of the type {type(value).__name__}"


def _advice(what: str) -> str:
    return "Put it into a field with the transform HoistField." if what == "value" else f"Name one field for it in {PK_FIELDS}."


class Forms:
    """The forms of a stream's records."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._made: dict[tuple[Schema | None, bool, Schema | None], Form] = {}
        self._untyped_value = _Untyped("value")
        self._untyped_key = _Untyped("key")
        self._single_key: _Single | None = None

    def of(self, record: SinkRecord) -> Form:
        """Return the form of a record. Raises DataError for one that no record of its schemas can have."""
        by_key = self._options.pk_mode is PkMode.RECORD_KEY
        key_schema, nested_key = (record.key_schema, isinstance(record.key, (Mapping, Struct))) if by_key else (None, False)
        known = key_schema, nested_key, record.value_schema
        form = self._made.get(known)
        if form is None:
            key = self._key(record) if by_key else _Nothing()
            form = self._made[known] = Form(self._options, key, self._value(record))
        return form

    def _value(self, record: SinkRecord) -> Part:
        if record.value_schema is None:
            return self._untyped_value
        return _Typed(record.value_schema, "value", replace_nulls=self._options.replace_nulls)

    def _key(self, record: SinkRecord) -> Part:
        schema, names, replace = record.key_schema, self._options.pk_fields, self._options.replace_nulls
        if record.key is None:
            raise DataError(f"It has no key, and {PK_MODE}=record_key takes key_properties from it.")
        if isinstance(record.key, (Mapping, Struct)):
            return self._untyped_key if schema is None else _Typed(schema, "key", replace_nulls=replace)
        if len(names) != 1:
            raise DataError(
                f"Its key is a single value, so {PK_FIELDS} must name one field for it; it names {', '.join(names) or 'none'}."
            )
        if schema is not None:
            return _Single(names[0], schema, replace_nulls=replace)
        if self._single_key is None:
            self._single_key = _Single(names[0], None, replace_nulls=replace)
        return self._single_key


class _Entry(NamedTuple):
    partition: TopicPartition
    offset: int
    form: Form
    line: bytes
    extracted: str | None


class Streams:
    """Records that wait for a flush, by stream. ``count`` and ``size`` are the numbers of records and of bytes."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._forms: dict[str, Forms] = {}
        self._entries: dict[str, list[_Entry]] = {}
        self.count = self.size = 0

    def add(self, record: SinkRecord) -> None:
        """Keep a record, unless it is a tombstone that is ignored. Raises DataError."""
        if record.value is None:
            if self._options.on_null is OnNull.IGNORE:
                return
            raise DataError(
                f"{record_name(record)} has no value, and a target cannot delete. {ON_NULL}=ignore skips such records."
            )
        stream = self._options.stream.replace(TOPIC_PLACEHOLDER, record.topic)
        forms = self._forms.get(stream)
        if forms is None:
            forms = self._forms[stream] = Forms(self._options)
        try:
            form = forms.of(record)
            line = form.line(record)
        except DataError as error:
            raise DataError(f"{record_name(record)} cannot be sent to the target: {_sentence(error)}") from None
        moment = None if record.timestamp is None else timestamp_of(record.timestamp)
        extracted = moment_text(moment) if isinstance(moment, dt.datetime) else None
        entry = _Entry(record.original_topic_partition, record.original_kafka_offset, form, line, extracted)
        self._entries.setdefault(stream, []).append(entry)
        self.count += 1
        self.size += len(line)

    def messages(self) -> Iterator[bytes]:
        """Yield the lines of messages for what waits: for each stream its SCHEMA, and RECORDs.

        A SCHEMA follows in between only where records have nothing in common with those before: for many targets it is a flush.
        """
        for stream, entries in self._entries.items():
            start = b'{"type":"RECORD","stream":' + _encode(stream) + b',"record":'
            schemas = _schemas(stream, list(dict.fromkeys(entry.form for entry in entries)))
            fits = {form: form.fit() for form in schemas}
            last = b""
            for entry in entries:
                schema, fit = schemas[entry.form], fits[entry.form]
                if schema != last:
                    yield schema
                    last = schema
                time = b"" if entry.extracted is None else b',"time_extracted":"' + entry.extracted.encode() + b'"'
                yield start + (entry.line if fit is None else fit(entry.line)) + time + b"}\n"

    def ends(self) -> dict[TopicPartition, int]:
        """Return the next offset after those that wait, for each partition that has some."""
        found: dict[TopicPartition, int] = {}
        for entry in self._all():
            found[entry.partition] = max(found.get(entry.partition, 0), entry.offset + 1)
        return found

    def starts(self) -> dict[TopicPartition, int]:
        """Return the first offset that waits, for each partition that has some."""
        found: dict[TopicPartition, int] = {}
        for entry in self._all():
            found[entry.partition] = min(found.get(entry.partition, entry.offset), entry.offset)
        return found

    def clear(self) -> None:
        self._entries.clear()
        self.count = self.size = 0

    def drop(self, partitions: Collection[TopicPartition], since: int = 0) -> None:
        """Forget what waits of partitions, from an offset on."""
        for stream, entries in list(self._entries.items()):
            kept = [each for each in entries if each.partition not in partitions or each.offset < since]
            if kept:
                self._entries[stream] = kept
            else:
                del self._entries[stream]
        left = list(self._all())
        self.count, self.size = len(left), sum(len(each.line) for each in left)

    def _all(self) -> Iterator[_Entry]:
        for entries in self._entries.values():
            yield from entries


def _schemas(stream: str, forms: Sequence[Form]) -> dict[Form, bytes]:
    """Return the SCHEMA message for each form: one for all, if there is one."""
    described = {form: form.described() for form in forms}
    common: Described | None = described[forms[0]]
    for form in forms[1:]:
        common = None if common is None else common.with_(described[form])
    return {form: (common or each).message(stream) for form, each in described.items()}


def _sentence(error: DataError) -> str:
    text = str(error)
    return text if text[:1].isupper() else f"{text}."


def state_of(ends: Mapping[TopicPartition, int]) -> dict[str, Any]:
    """Return the STATE behind records: the next offset of each topic partition."""
    return {"kafka": {f"{topic}-{partition}": offset for (topic, partition), offset in sorted(ends.items())}}


def messages_of(options: SinkOptions, records: Sequence[SinkRecord]) -> list[str]:
    """Return the messages for some records, for a preview. Raises DataError."""
    streams = Streams(options)
    for record in records:
        streams.add(record)
    return [line.decode().rstrip() for line in streams.messages()]
