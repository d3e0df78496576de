"""Applies the partial updates of JSON columns, which MySQL logs with binlog_row_value_options=PARTIAL_JSON. No I/O."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from sluiceway.connectors.cdc.mysql.binlog.integers import read_length
from sluiceway.connectors.cdc.mysql.binlog.json_values import json_text
from sluiceway.errors import ConnectError

_REPLACE, _INSERT, _REMOVE = range(3)
_LEG = re.compile(r'\.(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<name>[^.\[\s]+))|\[(?P<index>\d+)\]')


class _Number(str):
    """A number of a document as it is written there, so that the document's text does not change."""

    __slots__ = ()


def updated_json(text: Any, diffs: bytes) -> Any:
    """Return the text of a document after the diffs of an event. ``text`` is that before; UNAVAILABLE, if that is not known.

    The forms and the meaning of the diffs are those of ``JSON_REPLACE``, ``JSON_ARRAY_INSERT``, ``JSON_INSERT``, and
    ``JSON_REMOVE``.

    Raises:
        ConnectError: a diff does not fit the document.
    """
    if not isinstance(text, str):
        return text
    document = _parsed(text)
    for operation, path, value in _diffs(diffs):
        document = _updated(document, operation, path, value)
    return _text(document)


def _diffs(data: bytes) -> Iterator[tuple[int, str, Any]]:
    at = 0
    while at < len(data):
        operation = data[at]
        length, at = read_length(data, at + 1)
        path = data[at : at + length].decode()
        at += length
        value = None
        if operation != _REMOVE:
            length, at = read_length(data, at)
            value = _parsed(json_text(data[at : at + length]))
            at += length
        yield operation, path, value


def _updated(document: Any, operation: int, path: str, value: Any) -> Any:
    legs = _legs(path)
    if not legs:
        return value
    *parents, last = legs
    parent = document
    for leg in parents:
        parent = _child(parent, leg, path)
    if operation == _INSERT and isinstance(parent, list) and isinstance(last, int):
        parent.insert(last, value)
    elif operation == _INSERT and isinstance(parent, dict) and isinstance(last, str):
        parent.setdefault(last, value)
        members = sorted(parent.items(), key=_member_order)
        parent.clear()
        parent.update(members)
    else:
        _child(parent, last, path)
        if operation == _REMOVE:
            del parent[last]
        else:
            parent[last] = value
    return document


def _member_order(member: tuple[str, Any]) -> tuple[int, bytes]:
    """MySQL stores the members of an object in this order."""
    name = member[0].encode()
    return len(name), name


def _child(parent: Any, leg: str | int, path: str) -> Any:
    kind = list if isinstance(leg, int) else dict
    if isinstance(parent, kind) and (leg < len(parent) if isinstance(leg, int) else leg in parent):
        return parent[leg]  # type: ignore[index]
    raise ConnectError(
        f"The binary log has a partial JSON document that does not fit the one before it, which has no {path}. "
        "Set binlog_row_value_options='' on the server, and take a snapshot of the table."
    )


def _legs(path: str) -> list[str | int]:
    """Return the names and indexes of a path like ``$.a[0]."b c"``."""
    legs: list[str | int] = []
    at = 1  # behind the dollar
    while at < len(path):
        match = _LEG.match(path, at)
        if match is None:
            raise ConnectError(f"A partial update in the binary log has the unknown path {path}.")
        name, quoted, index = match["name"], match["quoted"], match["index"]
        legs.append(int(index) if index is not None else name if name is not None else json.loads(f'"{quoted}"'))
        at = match.end()
    return legs


def _parsed(text: str) -> Any:
    return json.loads(text, parse_float=_Number, parse_int=_Number, parse_constant=_Number)


def _text(value: Any) -> str:
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_text(name)}:{_text(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
