"""Converts values to the bytes of cells and back, as text or as HBase's own class ``Bytes`` does. No I/O."""

from __future__ import annotations

import enum
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from sluiceway.config.definition import ConfigKey, ConfigValue, Importance
from sluiceway.config.definition import Type as KeyType
from sluiceway.config.validators import EnumText
from sluiceway.data import BigInteger, Float32, Int8, Int16, Int32, Schema, SchemaBuilder, Type, java_text
from sluiceway.errors import ConfigError, DataError

ENCODING = "hbase.encoding"
COLUMNS = "hbase.columns"


class Encoding(enum.Enum):
    """The form of values in cells."""

    TEXT = "text"
    BINARY = "binary"


def encoding_key(group: str) -> ConfigKey:
    return ConfigKey(
        name=ENCODING,
        type=KeyType.STRING,
        default=Encoding.TEXT.value,
        validator=EnumText(*(each.value for each in Encoding)),
        importance=Importance.HIGH,
        group=group,
        doc="The form of numbers and booleans in row keys and cells. text: as people write them, in UTF-8. binary: as HBase's "
        "class Bytes does, a long in 8 bytes with the highest first. Strings are UTF-8 in both.",
    )


_FORMATS = {Type.INT8: ">b", Type.INT16: ">h", Type.INT32: ">i", Type.INT64: ">q", Type.FLOAT32: ">f", Type.FLOAT64: ">d"}
_KINDS: tuple[tuple[type, Type], ...] = ((Int8, Type.INT8), (Int16, Type.INT16), (Int32, Type.INT32), (Float32, Type.FLOAT32))


def simple_bytes(value: Any, schema: Schema | None, encoding: Encoding) -> bytes | None:
    """Return the bytes of a text, number, boolean or of bytes; None for other values. Raises DataError for numbers too large."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if schema is not None and schema.name is not None and not isinstance(value, Decimal):
        return None  # a date, or another type whose value is not what it seems to be
    if encoding is Encoding.TEXT:
        if isinstance(value, Decimal):
            return format(value, "f").encode()
        return java_text(value, schema).encode() if isinstance(value, (bool, int, float, BigInteger)) else None
    if isinstance(value, bool):
        return b"\xff" if value else b"\x00"
    if isinstance(value, Decimal):
        return _decimal(value)
    if not isinstance(value, (int, float)):
        return None
    kind = schema.type if schema is not None and schema.type in _FORMATS else _kind(value)
    try:
        return struct.pack(_FORMATS[kind], value)
    except (struct.error, OverflowError) as error:
        raise DataError(f"A number is too large for the 8 bytes of a long: {error}") from error


def _kind(value: float) -> Type:
    for python, kind in _KINDS:
        if isinstance(value, python):
            return kind
    return Type.FLOAT64 if isinstance(value, float) else Type.INT64


def _decimal(value: Decimal) -> bytes:
    """Return the scale in 4 bytes, and the unscaled number in as few as it needs."""
    if not value.is_finite():
        raise DataError(f"{value} is no decimal number")
    _sign, digits, exponent = value.as_tuple()
    unscaled = int("".join(map(str, digits))) * (-1 if value.is_signed() else 1)
    scale = -int(exponent)
    length = (unscaled + (unscaled < 0)).bit_length() // 8 + 1
    return struct.pack(">i", scale) + unscaled.to_bytes(length, "big", signed=True)


class Column(NamedTuple):
    """A column to read; without ``qualifier`` all of its family, without ``type`` as it is."""

    family: bytes
    qualifier: bytes | None
    type: str | None

    @property
    def pair(self) -> tuple[bytes, bytes | None]:
        return self.family, self.qualifier

    @property
    def field(self) -> str:
        return (self.qualifier or b"").decode()


def check_columns(_name: str, value: ConfigValue) -> None:
    """Raise ConfigError for a value that names no columns."""
    columns_of(value)


_ENTRY = re.compile(r"([^:=\s]+)(?::([^=]+))?(?:=([a-z0-9]+))?")


def columns_of(entries: ConfigValue) -> tuple[Column, ...]:
    """Return the columns of a list such as ``cf``, ``cf:name``, ``cf:age=int32``. Raises ConfigError.

    If one has a type, all must be columns; those without a type are strings.
    """
    found: list[Column] = []
    for entry in entries if isinstance(entries, list) else []:
        match = _ENTRY.fullmatch(str(entry))
        if not match:
            raise ConfigError(COLUMNS, entry, "is no family or column, such as cf, cf:name, or cf:age=int32")
        family, qualifier, kind = match.groups()
        if kind is not None and kind not in TYPES:
            raise ConfigError(COLUMNS, entry, f"has an unknown type. Known are: {', '.join(TYPES)}")
        found.append(Column(family.encode(), None if qualifier is None else qualifier.encode(), kind))
    if not any(each.type for each in found):
        return tuple(found)
    names: set[str] = set()
    for each in found:
        if each.qualifier is None:
            raise ConfigError(
                COLUMNS, each.family.decode(), "is a whole family. With types, name columns: cf:name=string, cf:age=int32"
            )
        if each.field in names:
            raise ConfigError(
                COLUMNS, each.field, "is the qualifier of two columns; it is the name of a field, so it may come once"
            )
        names.add(each.field)
    return tuple(each if each.type else each._replace(type="string") for each in found)


def _text(value: bytes) -> str:
    return value.decode()


def _boolean_text(value: bytes) -> bool:
    if value.lower() not in (b"true", b"false"):
        raise ValueError("neither true nor false")
    return value.lower() == b"true"


def _boolean_byte(value: bytes) -> bool:
    if len(value) != 1:
        raise ValueError("a boolean has one byte")
    return value != b"\x00"


def _whole(bits: int) -> Callable[[bytes], int]:
    def read(value: bytes) -> int:
        number = int(value)
        if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
            raise ValueError(f"more than {bits} bits")
        return number

    return read


def _packed(form: str) -> Callable[[bytes], Any]:
    return lambda value: struct.unpack(form, value)[0]


#: Type, and how its text and HBase's bytes of it are read, by name.
TYPES: Mapping[str, tuple[Type, Callable[[bytes], Any], Callable[[bytes], Any]]] = {
    "string": (Type.STRING, _text, _text),
    "bytes": (Type.BYTES, bytes, bytes),
    "boolean": (Type.BOOLEAN, _boolean_text, _boolean_byte),
    "int8": (Type.INT8, _whole(8), _packed(">b")),
    "int16": (Type.INT16, _whole(16), _packed(">h")),
    "int32": (Type.INT32, _whole(32), _packed(">i")),
    "int64": (Type.INT64, _whole(64), _packed(">q")),
    "float32": (Type.FLOAT32, float, _packed(">f")),
    "float64": (Type.FLOAT64, float, _packed(">d")),
}


def reader_of(type_: str, encoding: Encoding) -> Callable[[bytes], Any]:
    """Return the function that reads the bytes of a cell. It raises ValueError or struct.error."""
    _type, of_text, of_binary = TYPES[type_]
    return of_text if encoding is Encoding.TEXT else of_binary


def row_schema(columns: Sequence[Column], name: str) -> Schema:
    """Return the schema of rows with declared columns, each optional."""
    builder = SchemaBuilder.struct().name(name)
    for each in columns:
        builder.field(each.field, SchemaBuilder(TYPES[str(each.type)][0]).optional().build())
    return builder.build()


def binary_text(key: bytes) -> str:
    r"""Return bytes as HBase's shell shows them: printable characters as they are, others and spaces as ``\x00``."""
    return "".join(chr(byte) if 32 < byte < 127 and byte != 92 else f"\\x{byte:02X}" for byte in key)


def is_binary_text(text: object) -> bool:
    """Return whether this is what ``binary_text`` returns for some bytes."""
    try:
        return isinstance(text, str) and binary_text(from_binary_text(text)) == text
    except ValueError:
        return False


def from_binary_text(text: str) -> bytes:
    """Return the bytes of a text of ``binary_text``. Raises ValueError."""
    made = re.sub(r"\\x([0-9A-Fa-f]{2})", lambda match: chr(int(match[1], 16)), text)
    return made.encode("latin-1")
