"""Reads and writes Java's serialization of ``Object[]`` with numbers, texts, and times. No I/O.

Debezium keeps the keys of incremental snapshots in source offsets in this form. Values are pairs of the simple class name and a
Python value: ``("Integer", 5)``. The reader follows the grammar of the Java Object Serialization Specification, chapter 6.
"""

from __future__ import annotations

import datetime as dt
import struct
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from sluiceway.java.serialization import MalformedError, serialized_string

JavaValue = tuple[str, Any]

_MAGIC = b"\xac\xed\x00\x05"
_NULL, _REFERENCE, _CLASS, _OBJECT, _STRING, _ARRAY, _BLOCK, _END = b"p", b"q", b"r", b"s", b"t", b"u", b"w", b"x"
_LONG_STRING = b"|"
_FIRST_HANDLE = 0x7E0000
_WRITES_METHOD = 1
_ENDED = object()
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)

_PRIMITIVES = {"B": ">b", "C": ">H", "D": ">d", "F": ">f", "I": ">i", "J": ">q", "S": ">h", "Z": ">?"}


@dataclass(eq=False, slots=True)
class _Class:
    """A class descriptor: its serial version, flags, fields by type code and name, and its superclass."""

    name: str
    version: int
    flags: int = 2
    fields: tuple[tuple[str, str, str], ...] = ()
    parent: _Class | None = None


_NUMBER = _Class("java.lang.Number", 0x86AC951D0B94E08B)
_DATE = _Class("java.util.Date", 0x686A81014B597419, 3)
_OBJECTS = _Class("[Ljava.lang.Object;", 0x90CE589F1073296C)
_BYTES = _Class("[B", 0xACF317F8060854E0)


def _number(name: str, version: int, code: str) -> _Class:
    return _Class(f"java.lang.{name}", version, 2, ((code, "value", ""),), _NUMBER)


_INTEGER_FIELDS = ("bitCount", "bitLength", "firstNonzeroByteNum", "lowestSetBit", "signum")
_BIG_INTEGER = _Class(
    "java.math.BigInteger",
    0x8CFC9F1FA93BFB1D,
    3,
    (*(("I", name, "") for name in _INTEGER_FIELDS), ("[", "magnitude", "[B")),
    _NUMBER,
)
_BIG_DECIMAL = _Class(
    "java.math.BigDecimal",
    0x54C71557F981284F,
    3,
    (("I", "scale", ""), ("L", "intVal", "Ljava/math/BigInteger;")),
    _NUMBER,
)
_SIMPLE = {
    "Integer": _number("Integer", 0x12E2A0A4F7818738, "I"),
    "Long": _number("Long", 0x3B8BE490CC8F23DF, "J"),
    "Short": _number("Short", 0x684D37133460DA52, "S"),
    "Float": _number("Float", 0xDAEDC9A2DB3CF0EC, "F"),
    "Double": _number("Double", 0x80B3C24A296BFB04, "D"),
    "Boolean": _Class("java.lang.Boolean", 0xCD207280D59CFAEE, 2, (("Z", "value", ""),)),
}
_UUID = _Class("java.util.UUID", 0xBC9903F7986D852F, 2, (("J", "leastSigBits", ""), ("J", "mostSigBits", "")))
_TIMESTAMP = _Class("java.sql.Timestamp", 0x2618D5C80153BF65, 2, (("I", "nanos", ""),), _DATE)
_SQL_DATE = _Class("java.sql.Date", 0x14FA46683F356697, 2, (), _DATE)


def dump_array(values: Sequence[JavaValue | None] | None) -> bytes:
    """Return the bytes that ``ObjectOutputStream`` writes for an array, or for null."""
    return _MAGIC + _Writer().array(values)


class _Writer:
    """Writes one stream; classes that were written before are references."""

    def __init__(self) -> None:
        self._handles: dict[object, int] = {}
        self._next = _FIRST_HANDLE
        self._kinds: dict[str, Callable[[Any], bytes]] = {
            "String": self._string,
            "BigDecimal": self._decimal,
            "bytes": self._bytes,
            "UUID": self._uuid,
            "Timestamp": self._timestamp,
            "Date": self._date,
        }

    def array(self, values: Sequence[JavaValue | None] | None) -> bytes:
        if values is None:
            return _NULL
        head = _ARRAY + self._class(_OBJECTS)
        self._take()
        return head + struct.pack(">i", len(values)) + b"".join(map(self._value, values))

    def _value(self, value: JavaValue | None) -> bytes:
        if value is None:
            return _NULL
        kind, data = value
        found = _SIMPLE.get(kind)
        if found is not None:
            return self._object(found) + struct.pack(_PRIMITIVES[found.fields[0][0]], data)
        return self._kinds[kind](data)

    def _take(self) -> None:
        self._next += 1

    def _object(self, cls: _Class) -> bytes:
        head = _OBJECT + self._class(cls)
        self._take()
        return head

    def _class(self, cls: _Class | None) -> bytes:
        if cls is None:
            return _NULL
        known = self._handles.get(cls)
        if known is not None:
            return _REFERENCE + struct.pack(">I", known)
        self._handles[cls] = self._next
        self._take()
        name = cls.name.encode()
        parts = [_CLASS, struct.pack(">H", len(name)), name, struct.pack(">QBH", cls.version, cls.flags, len(cls.fields))]
        for code, field_name, type_name in cls.fields:
            parts += (code.encode(), struct.pack(">H", len(field_name)), field_name.encode())
            if type_name:
                parts.append(self._string(type_name, keep=True))
        return b"".join((*parts, _END, self._class(cls.parent)))

    def _string(self, text: str, *, keep: bool = False) -> bytes:
        known = self._handles.get(text)
        if known is not None:
            return _REFERENCE + struct.pack(">I", known)
        if keep:
            self._handles[text] = self._next
        self._take()
        return serialized_string(text)[len(_MAGIC) :]

    def _bytes(self, data: bytes) -> bytes:
        head = _ARRAY + self._class(_BYTES)
        self._take()
        return head + struct.pack(">i", len(data)) + data

    def _decimal(self, value: Decimal) -> bytes:
        sign, digits, exponent = value.as_tuple()
        scale = -int(exponent)
        unscaled = int(Decimal((sign, digits, 0)))
        head = self._object(_BIG_DECIMAL) + struct.pack(">i", scale)
        return head + self._integer(unscaled) + _END

    def _integer(self, value: int) -> bytes:
        magnitude = abs(value).to_bytes((abs(value).bit_length() + 7) // 8, "big")
        signum = (value > 0) - (value < 0)
        head = self._object(_BIG_INTEGER) + struct.pack(">5i", -1, -1, -2, -2, signum)
        return head + self._bytes(magnitude) + _END

    def _uuid(self, value: uuid.UUID) -> bytes:
        return self._object(_UUID) + struct.pack(">QQ", value.int & (1 << 64) - 1, value.int >> 64)

    def _millis(self, moment: dt.datetime) -> bytes:
        return _BLOCK + b"\x08" + struct.pack(">q", (moment - _EPOCH) // dt.timedelta(seconds=1) * 1000) + _END

    def _timestamp(self, value: dt.datetime) -> bytes:
        moment = value if value.tzinfo is not None else value.replace(tzinfo=dt.timezone.utc)
        return self._object(_TIMESTAMP) + self._millis(moment) + struct.pack(">i", moment.microsecond * 1000)

    def _date(self, value: dt.date) -> bytes:
        moment = dt.datetime(value.year, value.month, value.day, tzinfo=dt.timezone.utc)
        return self._object(_SQL_DATE) + self._millis(moment)


def load_array(data: bytes) -> list[Any] | None:
    """Return the Python values of an array, or None for null. Raises MalformedError for other classes and other bytes."""
    if not data.startswith(_MAGIC):
        raise MalformedError("it does not begin with the header of a serialized object")
    try:
        found = _Reader(data).content()
    except (struct.error, IndexError, UnicodeDecodeError, OverflowError) as error:
        raise MalformedError(f"it ends in the middle or is broken: {error}") from error
    if found is None:
        return None
    if not isinstance(found, list):
        raise MalformedError("it is not an array of objects")
    return [_python(value) for value in found]


@dataclass(eq=False, slots=True)
class _Instance:
    """An object: its class, the values of its fields, and what its class wrote besides them."""

    cls: _Class
    values: dict[str, Any] = field(default_factory=dict)
    written: list[Any] = field(default_factory=list)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = len(_MAGIC)
        self._handles: list[Any] = []

    def content(self) -> Any:
        kind = self._take(1)
        readers: dict[bytes, Callable[[], Any]] = {
            _NULL: lambda: None,
            _REFERENCE: lambda: self._handles[self._number(">I") - _FIRST_HANDLE],
            _CLASS: self._class,
            _OBJECT: self._object,
            _STRING: lambda: self._text(">H"),
            _LONG_STRING: lambda: self._text(">Q"),
            _ARRAY: self._array,
            _BLOCK: lambda: self._take(self._number(">B")),
            _END: lambda: _ENDED,
        }
        if kind not in readers:
            raise MalformedError(f"byte {self._at - 1} begins nothing known")
        return readers[kind]()

    def _take(self, count: int) -> bytes:
        if count < 0 or self._at + count > len(self._data):
            raise MalformedError(f"it ends in the middle, at byte {len(self._data)}")
        self._at += count
        return self._data[self._at - count : self._at]

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _text(self, form: str) -> str:
        text = self._take(self._number(form)).replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
        text = text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
        self._handles.append(text)
        return text

    def _name(self) -> str:
        return self._take(self._number(">H")).decode()

    def _class(self) -> _Class:
        found = _Class(self._name(), self._number(">Q"))
        self._handles.append(found)
        found.flags = self._number(">B")
        fields = []
        for _ in range(self._number(">H")):
            code, name = self._take(1).decode(), self._name()
            fields.append((code, name, "" if code in _PRIMITIVES else str(self.content())))
        found.fields = tuple(fields)
        while self.content() is not _ENDED:
            pass
        found.parent = self.content()
        return found

    def _object(self) -> _Instance:
        cls = self.content()
        found = _Instance(cls)
        self._handles.append(found)
        lineage: list[_Class] = []
        while cls is not None:
            lineage.insert(0, cls)
            cls = cls.parent
        for each in lineage:
            for code, name, _ in each.fields:
                found.values[name] = self._number(_PRIMITIVES[code]) if code in _PRIMITIVES else self.content()
            if each.flags & _WRITES_METHOD:
                while (written := self.content()) is not _ENDED:
                    found.written.append(written)
        return found

    def _array(self) -> list[Any] | bytes:
        cls = self.content()
        place = len(self._handles)
        self._handles.append(None)
        count = self._number(">i")
        code = cls.name[1:2]
        found: list[Any] | bytes
        if code == "B":
            found = self._take(count)
        else:
            found = [self._number(_PRIMITIVES[code]) if code in _PRIMITIVES else self.content() for _ in range(count)]
        self._handles[place] = found
        return found


def _python(value: Any) -> Any:
    """Return the Python value of an element. Raises MalformedError for a class that is not known."""
    if not isinstance(value, _Instance):
        return value
    name, values = value.cls.name, value.values
    if name.startswith("java.lang.") and "value" in values:
        return values["value"]
    if name == _BIG_INTEGER.name:
        return int.from_bytes(values["magnitude"], "big") * values["signum"]
    if name == _BIG_DECIMAL.name:
        return _decimal(_python(values["intVal"]), values["scale"])
    if name == "io.debezium.data.SpecialValueDecimal" and values.get("decimalValue") is not None:
        return _python(values["decimalValue"])
    if name == _UUID.name:
        return uuid.UUID(int=(values["mostSigBits"] % (1 << 64)) << 64 | values["leastSigBits"] % (1 << 64))
    if value.written and name in (_TIMESTAMP.name, _SQL_DATE.name, "java.sql.Time", _DATE.name):
        return _moment(name, value)
    raise MalformedError(f"objects of the class {name} are not supported")


def _decimal(unscaled: int, scale: int) -> Decimal:
    """Return a decimal with all of its digits, which may be more than a context has."""
    digits = Decimal(abs(unscaled)).as_tuple().digits
    return Decimal((int(unscaled < 0), digits, -scale))


def _moment(name: str, value: _Instance) -> Any:
    moment = _EPOCH + dt.timedelta(milliseconds=struct.unpack(">q", value.written[0])[0])
    if name == _SQL_DATE.name:
        return moment.date()
    if name == "java.sql.Time":
        return moment.time()
    if name == _TIMESTAMP.name:
        return moment.replace(microsecond=value.values["nanos"] // 1000)
    return moment
