"""Refuses Avro records of a few bytes that would make billions of items. No I/O."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from sluiceway.converters.registry.avro_connect import AvroTypes, Resolved
from sluiceway.errors import DataError

_MOST_ITEMS = 100_000

Skip = Callable[[bytes, int], int]
"""Returns the position behind the value at a position. Raises IndexError if the data ends before."""

_FIXED_SIZES = {"null": 0, "boolean": 1, "float": 4, "double": 8}


def check_of(types: AvroTypes, node: Any) -> Callable[[bytes], None] | None:
    """Return a function that raises DataError for a record of an Avro schema with more items than it has bytes for.

    An item takes at least a byte, so a record's bytes limit its items, unless they are nulls, or records without fields: there,
    five bytes make billions of items. None if the schema has no list of such items. Takes no recursive schema.
    """
    sizes = _Sizes(types)
    if not sizes.has_empty_items(node, ""):
        return None
    skip = sizes.skip(node, "")

    def check(data: bytes) -> None:
        try:
            skip(data, 0)
        except IndexError:
            return  # the decoder says what is wrong

    return check


class _Sizes:
    """What values of a schema's types take in Avro's binary encoding."""

    def __init__(self, types: AvroTypes) -> None:
        self._types = types

    def _parts(self, resolved: Resolved) -> list[Any]:
        node = resolved.node
        if resolved.kind == "record":
            return [field["type"] for field in node["fields"]]
        return list(node.get("branches", ())) or [node[key] for key in ("items", "values") if key in node]

    def has_empty_items(self, node: Any, namespace: str) -> bool:
        resolved = self._types.resolve(node, namespace)
        if resolved.kind == "array" and self._is_empty(resolved.node["items"], resolved.namespace):
            return True
        return any(self.has_empty_items(part, resolved.namespace) for part in self._parts(resolved))

    def _is_empty(self, node: Any, namespace: str) -> bool:
        """Return whether each value of a type takes no byte."""
        resolved = self._types.resolve(node, namespace)
        if resolved.kind == "record":
            return all(self._is_empty(part, resolved.namespace) for part in self._parts(resolved))
        return resolved.kind == "null" or (resolved.kind == "fixed" and resolved.node["size"] == 0)

    def skip(self, node: Any, namespace: str) -> Skip:
        """Return the function that skips a value of a type."""
        resolved = self._types.resolve(node, namespace)
        kind = resolved.kind
        if kind in _FIXED_SIZES or kind == "fixed":
            size = _FIXED_SIZES[kind] if kind in _FIXED_SIZES else int(resolved.node["size"])
            return lambda data, at: at + size
        if kind in ("string", "bytes"):
            return _skip_bytes
        parts = [self.skip(part, resolved.namespace) for part in self._parts(resolved)]
        if kind == "record":
            return lambda data, at: functools.reduce(lambda position, part: part(data, position), parts, at)
        if kind in ("array", "map"):
            empty = kind == "array" and self._is_empty(resolved.node["items"], resolved.namespace)
            items = [_skip_bytes, *parts] if kind == "map" else parts
            return functools.partial(_skip_blocks, items, empty)
        if kind == "union":
            return functools.partial(_skip_branch, parts)
        return lambda data, at: _long(data, at)[1]  # int, long, and enum


def _skip_bytes(data: bytes, at: int) -> int:
    size, at = _long(data, at)
    return _within(data, at + max(size, 0))


def _skip_branch(branches: list[Skip], data: bytes, at: int) -> int:
    number, at = _long(data, at)
    return branches[number](data, at)


def _skip_blocks(parts: list[Skip], empty: bool, data: bytes, at: int) -> int:
    total = 0
    while True:
        count, at = _long(data, at)
        if count == 0:
            return at
        if count < 0:  # followed by the size of the block
            count, at = -count, _long(data, at)[1]
        total += count
        if empty and total > _MOST_ITEMS:
            raise DataError(f"A list has {total} items that take no bytes; {_MOST_ITEMS} are allowed.")
        for _ in range(0 if empty else count):
            for part in parts:
                at = _within(data, part(data, at))


def _within(data: bytes, at: int) -> int:
    if at > len(data):
        raise IndexError
    return at


def _long(data: bytes, at: int) -> tuple[int, int]:
    """Return the number at a position, and the position behind it."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
