"""Infers the JSON Schema of values without a schema, which grows wider with each value. No I/O."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from sluiceway.connectors.singer.typed import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    STRING,
    JsonSchema,
    base64_text,
    double,
    mapped,
    moment_text,
    single,
)
from sluiceway.data import Float32, Struct
from sluiceway.errors import DataError

_OBJECT, _ARRAY = "object", "array"
_DATE_TIME, _DATE, _TIME, _BASE64 = "date-time", "date", "time", "base64"
_TEXTS: Mapping[str, JsonSchema] = {
    STRING: {"type": STRING},
    _BASE64: {"type": STRING, "contentEncoding": "base64"},
    **{form: {"type": STRING, "format": form} for form in (_DATE_TIME, _DATE, _TIME)},
}
_NUMBERS = {INTEGER, NUMBER}
_MOST_NAMES = 1000
_DEEPEST = 100


class Inferred:
    """The kinds of the values of one part of records, and those of the parts of objects and arrays.

    Values of several kinds become texts: those that are no texts, their JSON. So a value may need ``fit`` after later values were
    taken. Objects below the first one with more than 1,000 names have values of any kind.
    """

    __slots__ = ("_depth", "_fields", "_free", "_items", "_kinds", "_learned")

    def __init__(self, depth: int = 0, learned: list[tuple[set[str], str]] | None = None) -> None:
        self._learned = [] if learned is None else learned  # by the value that is taken now, anywhere in it
        self._kinds: set[str] = set()
        self._fields: dict[str, Inferred] = {}
        self._items: Inferred | None = None
        self._free = False
        self._depth = depth

    def take(self, value: Any) -> Any:
        """Return the JSON form of a value, and widen the schema for it. Raises DataError, with the schema as it was."""
        self._learned.clear()
        try:
            return self._take(value, "")
        except DataError:
            for kinds, kind in self._learned:
                kinds.discard(kind)
            raise

    def _take(self, value: Any, path: str) -> Any:
        if value is None:
            return None
        if isinstance(value, Mapping):
            return self._object(value, path)
        if isinstance(value, (list, tuple)):
            return self._array(value, path)
        if isinstance(value, Struct):
            return self._take(_of_struct(value, path), path)
        kind, plain = _single(value, path)
        self._learn(kind)
        return plain

    def _learn(self, kind: str) -> None:
        if kind not in self._kinds:
            self._kinds.add(kind)
            self._learned.append((self._kinds, kind))

    def _object(self, value: Mapping[Any, Any], path: str) -> dict[str, Any]:
        self._check_depth(path)
        if not all(isinstance(name, str) for name in value):
            raise DataError(f"the field {path or 'at the top'} is a map with keys that are no texts")
        fields, made = self._fields, {}
        for name, each in value.items():
            part = fields.get(name)
            if part is None:
                part = fields[name] = Inferred(self._depth + 1, self._learned)
            made[name] = part._take(each, f"{path}.{name}" if path else name)
        self._learn(_OBJECT)
        self._free = self._free or (self._depth > 0 and len(fields) > _MOST_NAMES)
        if self._free:
            fields.clear()
        return made

    def _array(self, value: list[Any] | tuple[Any, ...], path: str) -> list[Any]:
        self._check_depth(path)
        if self._items is None:
            self._items = Inferred(self._depth + 1, self._learned)
        made = [self._items._take(each, f"{path}[]") for each in value]
        self._learn(_ARRAY)
        return made

    def _check_depth(self, path: str) -> None:
        if self._depth >= _DEEPEST:
            raise DataError(f"the field {path[:100]}... is more than {_DEEPEST} levels deep")

    @property
    def known(self) -> bool:
        """Whether there was a value that is not null."""
        return bool(self._kinds)

    @property
    def fields(self) -> Mapping[str, Inferred]:
        return self._fields

    def schema(self) -> JsonSchema:
        """Return the schema of the values so far, which allows null. Fields that were null each time are left out."""
        return {**self._schema(), "type": ["null", self._schema()["type"]]}

    def properties(self) -> dict[str, JsonSchema]:
        """Return the schemas of the fields of an object, without those that were null each time."""
        return {name: part.schema() for name, part in self._fields.items() if part.known}

    def _schema(self) -> JsonSchema:
        if self._is_mixed:
            return _TEXTS[STRING]
        if self._kinds == {_OBJECT}:
            return {"type": _OBJECT} if self._free else {"type": _OBJECT, "properties": self.properties()}
        if self._kinds == {_ARRAY}:
            known = self._items is not None and self._items.known
            return {"type": _ARRAY, "items": self._items.schema()} if known and self._items else {"type": _ARRAY}
        if self._kinds <= _NUMBERS:
            return {"type": NUMBER if NUMBER in self._kinds else INTEGER}
        if self._kinds == {BOOLEAN}:
            return {"type": BOOLEAN}
        return _TEXTS[next(iter(self._kinds)) if len(self._kinds) == 1 else STRING]

    @property
    def _is_mixed(self) -> bool:
        """Whether values are of kinds that only a text has in common."""
        return len(self._kinds) > 1 and not self._kinds <= _NUMBERS and not self._kinds <= _TEXTS.keys()

    @property
    def mixed(self) -> bool:
        """Whether values, or parts of them, need ``fit``."""
        parts = [] if self._is_mixed or self._free else [*self._fields.values(), *([self._items] if self._items else [])]
        return self._is_mixed or any(part.mixed for part in parts)

    def fit(self, plain: Any) -> Any:
        """Return the JSON form of a value that ``take`` has returned, with texts where the schema now has them."""
        if plain is None:
            return None
        if self._is_mixed:
            return plain if isinstance(plain, str) else json_text(plain)
        if isinstance(plain, dict) and not self._free:
            return {name: self._fields[name].fit(each) for name, each in plain.items()}
        if isinstance(plain, list) and self._items is not None:
            return [self._items.fit(each) for each in plain]
        return plain


def json_text(plain: Any) -> str:
    """Return the JSON of a value, with all digits of decimals."""
    import msgspec

    return msgspec.json.Encoder(decimal_format="number").encode(plain).decode()


def _text(value: str) -> str:
    if not value.isascii():
        value.encode()  # raises for half a surrogate pair
    return value


def _finite(value: Decimal) -> Decimal:
    if not value.is_finite():
        raise ValueError("NaN and infinities are no JSON")
    return value


# In this order: a bool is an int, and a datetime a date.
_SINGLE: tuple[tuple[type | tuple[type, ...], str, Callable[[Any], Any]], ...] = (
    (str, STRING, _text),
    (bool, BOOLEAN, bool),
    (int, INTEGER, int),
    (Float32, NUMBER, single),
    (float, NUMBER, double),
    (Decimal, NUMBER, _finite),
    (dt.datetime, _DATE_TIME, moment_text),
    (dt.date, _DATE, dt.date.isoformat),
    (dt.time, _TIME, lambda value: value.isoformat(timespec="milliseconds")),
    ((bytes, bytearray, memoryview), _BASE64, base64_text),
)


def _single(value: Any, path: str) -> tuple[str, Any]:
    """Return the kind of a single value, and its JSON form. Raises DataError."""
    for types, kind, convert in _SINGLE:
        if isinstance(value, types):
            try:
                return kind, convert(value)
            except (ValueError, OverflowError) as error:
                raise DataError(f"the field {path or 'at the top'} has a value that JSON does not have: {error}") from None
    raise DataError(f"the field {path or 'at the top'} has a value that JSON does not have ({type(value).__name__})")


def _of_struct(value: Struct, path: str) -> Any:
    """Return a struct in a value without a schema as a dict."""
    return mapped(value.schema, path, replace_nulls=True).convert(value)


def loads(line: bytes) -> Any:
    """Return what ``take`` has returned, from its JSON."""
    return json.loads(line, parse_float=Decimal)
