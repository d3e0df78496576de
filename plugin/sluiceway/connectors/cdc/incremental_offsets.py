"""Keeps the progress of incremental snapshots in source offsets, in Debezium's keys, so that either can continue. No I/O.

Debezium's keys hold the tables, and the keys of the first one: the last key sent and the largest.
``sluiceway_incremental_ranges`` adds the keys of further entries, which only the rest of an initial snapshot has; Debezium would
read these tables entirely. ``sluiceway_incremental_requests`` has what Debezium's keys cannot express: names of tables with a dot
or a quote, and requests of several signals.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.java.object_arrays import dump_array, load_array
from sluiceway.java.serialization import MalformedError

log = logging.getLogger(__name__)

INITIAL_SIGNAL, NEW_TABLES_SIGNAL = "initial-snapshot", "new-tables"
OWN_SIGNALS = frozenset({INITIAL_SIGNAL, NEW_TABLES_SIGNAL})
"""The signals' ids of incremental snapshots that no signal has requested: the rest of an initial snapshot, and new tables."""

_PREFIX = "incremental_snapshot_"
PRIMARY_KEY, MAXIMUM_KEY = f"{_PREFIX}primary_key", f"{_PREFIX}maximum_key"
COLLECTIONS, CORRELATION_ID = f"{_PREFIX}collections", f"{_PREFIX}correlation_id"
RANGES, REQUESTS = "sluiceway_incremental_ranges", "sluiceway_incremental_requests"
_ID, _CONDITION, _SURROGATE = f"{COLLECTIONS}_id", f"{COLLECTIONS}_additional_condition", f"{COLLECTIONS}_surrogate_key"


@dataclass(slots=True)
class Request:
    """A table to read in the order of its columns ``key``.

    ``after`` is the last key that was read, ``sent`` the last one whose rows were returned, where a restart continues. Keys have
    texts as the database writes them, bytes, or None. ``kinds`` are the Java classes of the key's values. ``unique`` tells that
    no two rows have the same key.
    """

    table: TableId
    signal: str
    condition: str | None = None
    surrogate: str | None = None
    key: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    unique: bool = True
    after: list[Any] | None = None
    sent: list[Any] | None = None
    maximum: list[Any] | None = None
    tables: str = ""
    chunks: int = 0
    rows: int = 0
    total: int | None = None
    last: bool = False


def stored(requests: Sequence[Request]) -> dict[str, Any]:
    """Return the keys of an offset for the requests that are not finished; nothing if there are none."""
    if not requests:
        return {}
    first = requests[0]
    collections = [
        {_ID: str(each.table), _CONDITION: each.condition or None, _SURROGATE: each.surrogate or None} for each in requests
    ]
    exact = all(each.signal == first.signal and _table(str(each.table)) == each.table for each in requests)
    ranges = [
        [index, _dumped(each.sent, each.kinds), _dumped(each.maximum, each.kinds)]
        for index, each in enumerate(requests)
        if index and (each.sent is not None or each.maximum is not None)
    ]
    return {
        PRIMARY_KEY: _dumped(first.sent, first.kinds),
        MAXIMUM_KEY: _dumped(first.maximum, first.kinds),
        COLLECTIONS: json.dumps(collections, separators=(",", ":")),
        CORRELATION_ID: first.signal,
        **({RANGES: json.dumps(ranges, separators=(",", ":"))} if ranges else {}),
        **({} if exact else {REQUESTS: json.dumps([[*each.table, each.signal] for each in requests], separators=(",", ":"))}),
    }


def loaded(offset: Mapping[str, Any]) -> list[Request]:
    """Return the unfinished requests of an offset, ours or Debezium's."""
    entries, signal = json.loads(offset.get(COLLECTIONS) or "[]"), str(offset.get(CORRELATION_ID) or "")
    exact = json.loads(offset.get(REQUESTS) or "[]")
    if len(exact) != len(entries):
        exact = [[*_table(str(entry[_ID])), signal] for entry in entries]
    requests = [
        Request(TableId(schema, table), own, entry.get(_CONDITION) or None, entry.get(_SURROGATE) or None)
        for entry, (schema, table, own) in zip(entries, exact, strict=True)
    ]
    if requests:
        _set_keys(requests[0], offset.get(PRIMARY_KEY), offset.get(MAXIMUM_KEY))
    for index, sent, maximum in json.loads(offset.get(RANGES) or "[]"):
        if index < len(requests):
            _set_keys(requests[index], sent, maximum)
    return requests


def _table(name: str) -> TableId:
    """Return the table that a name of Debezium's stands for."""
    return TableId(*name.replace('"', "").split(".")[-2:])


def _set_keys(request: Request, sent: str | None, maximum: str | None) -> None:
    try:
        request.sent, request.maximum = _loaded(sent), _loaded(maximum)
    except (MalformedError, ValueError) as error:
        log.warning("The incremental snapshot of %s starts again, because its stored key is unknown: %s", request.table, error)
        request.sent = request.maximum = None
    request.after = request.sent


def _dumped(key: Sequence[Any] | None, kinds: Sequence[str]) -> str:
    if key is None:
        return dump_array(None).hex()
    types = [*kinds, *["String"] * (len(key) - len(kinds))]
    pairs = zip(types, key, strict=False)
    return dump_array([None if value is None else _java(kind, value) for kind, value in pairs]).hex()


def _loaded(text: str | None) -> list[Any] | None:
    found = load_array(bytes.fromhex(text)) if text else None
    return None if found is None else [None if value is None else _text(value) for value in found]


_WHOLE_NUMBERS = {"Short": 16, "Integer": 32, "Long": 64}
"""The bits of Java's numbers."""

_PARSERS: dict[str, Callable[[str], Any]] = {
    "Float": float,
    "Double": float,
    "UUID": uuid.UUID,
    "Timestamp": dt.datetime.fromisoformat,
    "Date": dt.date.fromisoformat,
    "Boolean": lambda text: text in ("t", "true", "1"),
}


def _java(kind: str, value: Any) -> tuple[str, Any]:
    """Return a value with its Java class: the column's, or a wider one if this class cannot hold it."""
    if isinstance(value, bytes):
        return "bytes", value
    text = str(value)
    parse = _PARSERS.get(kind)
    try:
        if kind in _WHOLE_NUMBERS:
            return _whole_number(kind, int(text))
        if kind == "BigDecimal" and (number := Decimal(text)).is_finite():
            return kind, number
        return ("String", text) if parse is None else (kind, parse(text))
    except (ValueError, ArithmeticError):
        return "String", text


def _whole_number(kind: str, number: int) -> tuple[str, Any]:
    bits = (number if number >= 0 else ~number).bit_length() + 1
    if bits <= _WHOLE_NUMBERS[kind]:
        return kind, number
    return ("Long", number) if bits <= _WHOLE_NUMBERS["Long"] else ("BigDecimal", Decimal(number))


def _text(value: Any) -> Any:
    """Return a Java value as the database writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None).isoformat(sep=" ")
    if isinstance(value, Decimal):
        return format(value, "f")
    return value if isinstance(value, bytes) else str(value)
