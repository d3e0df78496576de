"""Converts Connect's values from and to the form in which they cross to the plugin host, a batch at a time.

The bytes are those of Python's ``marshal`` module in version 2, whose few type codes the host's ``Values.java`` reads and writes.
A value with a schema crosses as the schema's number and a plain value; a schema's definition crosses once. Python numbers its
schemas with even numbers, Java with odd ones.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from sluiceway.data import BigInteger, Float32, Header, Headers, Instant, Int8, Int16, Int32, Schema, Struct, Type, millis_of
from sluiceway.data.instant import MOMENT_TYPES, date_of, time_of, timestamp_of
from sluiceway.data.logical import DATE, DECIMAL, TIME, TIMESTAMP
from sluiceway.data.text import java_text
from sluiceway.errors import DataError

Convert = Callable[[Any], Any]

_FORMAT = 2  # of marshal: without references, interned strings and short forms; the same in all versions of Python
_MOST_SCHEMAS = 1000  # a connector that keeps making new schemas must not exhaust the memory
_MOMENTS: Mapping[str, Convert] = {DATE: date_of, TIME: time_of, TIMESTAMP: timestamp_of}
_TAGS: Mapping[type, str] = {Int8: "b", Int16: "s", Int32: "i"}
_SIMPLE = {str, bool, type(None), int, float, bytes}
_BASES: Mapping[Type, type] = {
    **dict.fromkeys((Type.INT8, Type.INT16, Type.INT32, Type.INT64), int),
    **dict.fromkeys((Type.FLOAT32, Type.FLOAT64), float),
    Type.STRING: str,
    Type.BOOLEAN: bool,
    Type.BYTES: bytes,
}


class Values:
    """The numbers of the schemas that crossed, and the conversions for each. Belongs to one host. Not thread-safe."""

    def __init__(self) -> None:
        self._writers: dict[Schema | None, tuple[int, Convert | None]] = {None: (-1, self._untyped)}
        self._readers: dict[int, tuple[Schema | None, Convert | None]] = {-1: (None, self._typed)}
        self._announced: list[Any] = []
        self._next = 0
        self._exact = True
        self._reset = False  # announced with the next rows

    def dumps(self, rows: Callable[[], Any]) -> bytes:
        """Return the bytes of what ``rows`` returns, which calls ``plain`` for values. Raises DataError for invalid values."""
        if len(self._readers) > _MOST_SCHEMAS or not self._exact:
            self._forget(exact=True)
        try:
            return self._dumped(rows)
        except ValueError:  # a subclass, such as an enum's member: marshal takes exact types only
            self._forget(exact=False)
        try:
            return self._dumped(rows)
        except (ValueError, TypeError) as error:
            raise DataError(f"A value cannot be passed to Java: {error}") from error

    def _dumped(self, rows: Callable[[], Any]) -> bytes:
        plain = rows()
        data = marshal.dumps((self._reset, self._announced, plain), _FORMAT)
        self._announced, self._reset = [], False
        return data

    def _forget(self, *, exact: bool) -> None:
        self._writers = {None: (-1, self._untyped)}
        self._readers = {-1: (None, self._typed)}
        self._announced, self._next, self._reset, self._exact = [], 0, True, exact

    def loads(self, data: bytes | memoryview) -> Any:
        """Return the rows that Java wrote; ``value`` returns the values in them."""
        rows, schemas = marshal.loads(data)  # noqa: S302 (written by the host, a child process)
        for number, definition in schemas:
            self._register(number, _schema(definition))
        return rows

    def plain(self, schema: Schema | None, value: Any) -> tuple[int, Any]:
        """Return a schema's number and the plain form of a value."""
        known = self._writers.get(schema)
        if known is None:
            known = self._announce(schema)
        number, convert = known
        return number, value if convert is None or value is None else convert(value)

    def value(self, number: int, plain: Any) -> tuple[Schema | None, Any]:
        """Return the schema of this number and the value of a plain form."""
        schema, convert = self._readers[number]
        return schema, plain if convert is None or plain is None else convert(plain)

    def plain_headers(self, headers: Headers) -> list[tuple[Any, ...]]:
        """Return headers as rows."""
        return [(key, *self.plain(schema, value)) for key, value, schema in headers]

    def headers(self, rows: Sequence[tuple[str, int, Any]]) -> Headers:
        """Return the headers in rows."""
        found = []
        for key, number, plain in rows:
            schema, value = self.value(number, plain)
            found.append(Header(key, value, schema))
        return tuple(found)

    def _announce(self, schema: Schema | None) -> tuple[int, Convert | None]:
        assert schema is not None  # noqa: S101 (None has its number from the start)
        number, self._next = self._next, self._next + 2
        self._announced.append((number, _definition(schema)))
        self._register(number, schema)
        return self._writers[schema]

    def _register(self, number: int, schema: Schema) -> None:
        self._writers[schema] = number, _to_plain(schema, exact=self._exact)
        self._readers[number] = schema, _from_plain(schema)

    def _untyped(self, value: Any) -> Any:
        """Return the plain form of a value without a schema. Numbers narrower than Java's Long and Double get a tag."""
        kind = type(value)
        if kind in _SIMPLE:
            return ("n", str(value)) if kind is int and not -(1 << 63) <= value < 1 << 63 else value
        if kind is dict or (isinstance(value, Mapping) and not isinstance(value, Struct)):
            return {self._untyped(key): self._untyped(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._untyped(item) for item in value]
        return ("S", *self.plain(value.schema, value)) if isinstance(value, Struct) else _special(value)

    def _typed(self, value: Any) -> Any:
        """Return the value without a schema that has this plain form."""
        kind = type(value)
        if kind is dict:
            return {self._typed(key): self._typed(item) for key, item in value.items()}
        if kind is list:
            return [self._typed(item) for item in value]
        if kind is not tuple:
            return value
        return self.value(value[1], value[2])[1] if value[0] == "S" else _UNTAGGED[value[0]](value[1])


def _definition(schema: Schema) -> list[Any]:
    inner = (schema.key_schema, schema.value_schema)
    convert = _to_plain(schema, exact=False)
    return [
        schema.type.name,
        schema.optional,
        schema.name,
        schema.version,
        schema.doc,
        dict(schema.parameters),
        *(None if each is None else _definition(each) for each in inner),
        [[field.name, _definition(field.schema)] for field in schema.fields],
        schema.default if convert is None or schema.default is None else convert(schema.default),
    ]


def _schema(definition: Sequence[Any]) -> Schema:
    type_, optional, name, version, doc, parameters, key, value, fields, default = definition
    schema = Schema(
        Type[type_],
        optional=optional,
        name=name,
        version=version,
        doc=doc,
        parameters=parameters,
        key_schema=None if key is None else _schema(key),
        value_schema=None if value is None else _schema(value),
        fields=[(field, _schema(inner)) for field, inner in fields],
    )
    if default is None:
        return schema
    convert = _from_plain(schema)
    return schema.replace(default=default if convert is None else convert(default))


def _to_plain(schema: Schema, *, exact: bool) -> Convert | None:
    """Return the conversion of a schema's values, other than None, to plain ones; None if they are plain already.

    ``exact`` leaves values of simple types as they are, for speed; marshal refuses subclasses then.
    """
    if schema.name == DECIMAL:
        return str
    if schema.name in _MOMENTS:
        return _millis
    if schema.type is Type.STRUCT:
        return _struct_to_plain([_to_plain(field.schema, exact=exact) for field in schema.fields])
    if schema.type is Type.ARRAY:
        return _list_converter(_to_plain(_of(schema.value_schema), exact=exact))
    if schema.type is Type.MAP:
        return _map_converter(_to_plain(_of(schema.key_schema), exact=exact), _to_plain(_of(schema.value_schema), exact=exact))
    return None if exact else _base_converter(schema)


def _from_plain(schema: Schema) -> Convert | None:
    if schema.name == DECIMAL:
        return Decimal
    if (moment := _MOMENTS.get(schema.name or "")) is not None:
        return moment
    if schema.type is Type.STRUCT:
        return _struct_from_plain(schema, [_from_plain(field.schema) for field in schema.fields])
    if schema.type is Type.ARRAY:
        items = _from_plain(_of(schema.value_schema))
        return None if items is None else _list_converter(items)
    if schema.type is Type.MAP:
        key, value = _from_plain(_of(schema.key_schema)), _from_plain(_of(schema.value_schema))
        return None if key is value is None else _map_converter(key, value)
    return None


def _of(schema: Schema | None) -> Schema:
    assert schema is not None  # noqa: S101 (arrays and maps have their schemas)
    return schema


def _millis(value: Any) -> int:
    return millis_of(value)


def _base_converter(schema: Schema) -> Convert:
    base = _BASES[schema.type]

    def convert(value: Any) -> Any:
        if isinstance(value, base) or (base is bytes and isinstance(value, (bytearray, memoryview))):
            return base(value)
        raise DataError(f"Invalid object for schema type {schema.type.name}: {type(value).__name__}")

    return convert


def _struct_to_plain(fields: Sequence[Convert | None]) -> Convert:
    special = [(index, convert) for index, convert in enumerate(fields) if convert is not None]
    if not special:
        return _struct_values

    def convert(value: Any) -> list[Any]:
        values = list(_struct_values(value))
        for index, field in special:
            if values[index] is not None:
                values[index] = field(values[index])
        return values

    return convert


def _struct_values(value: Any) -> list[Any]:
    if not isinstance(value, Struct):
        raise DataError(f"Invalid object for schema type STRUCT: {type(value).__name__}")
    return value.values_


def _struct_from_plain(schema: Schema, fields: Sequence[Convert | None]) -> Convert:
    special = [(index, convert) for index, convert in enumerate(fields) if convert is not None]

    def convert(values: list[Any]) -> Struct:
        for index, field in special:
            if values[index] is not None:
                values[index] = field(values[index])
        return Struct.of(schema, values)

    return convert


def _list_converter(items: Convert | None) -> Convert:
    if items is None:
        return list
    return lambda values: [None if value is None else items(value) for value in values]


def _map_converter(keys: Convert | None, values: Convert | None) -> Convert:
    keys, values = keys or _same, values or _same
    return lambda pairs: {
        None if key is None else keys(key): None if value is None else values(value) for key, value in pairs.items()
    }


def _same(value: Any) -> Any:
    return value


def _special(value: Any) -> Any:
    tag = _TAGS.get(type(value))
    if tag is not None:
        return tag, int(value)
    if isinstance(value, Float32):
        return "f", float(value)
    if isinstance(value, BigInteger):
        return "n", str(int(value))
    if isinstance(value, Decimal):
        return "d", str(value)
    if isinstance(value, MOMENT_TYPES):
        return "t", millis_of(value)
    for base in (str, bool, int, float):
        if isinstance(value, base):
            return base(value)
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    raise DataError(f"A value without a schema cannot be passed to Java: {type(value).__name__} {java_text(value)[:100]}")


_UNTAGGED: Mapping[str, Convert] = {
    "b": Int8,
    "s": Int16,
    "i": Int32,
    "f": Float32,
    "n": lambda text: BigInteger(int(text)),
    "d": Decimal,
    "t": lambda millis: timestamp_of(millis) if isinstance(millis, int) else Instant(millis),
}
