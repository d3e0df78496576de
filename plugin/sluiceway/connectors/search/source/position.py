"""Source offsets, and the searches that continue after them. No I/O.

Within a shard, ``_seq_no`` is different for each document and stays the same until the document is written again, on all
copies and in all points in time. So it orders documents with equal values of a field, and a search continues after a document
although its point in time is gone. Numbers of two shards have nothing to do with each other: each shard is a partition.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sluiceway.api import Offset, Partition
from sluiceway.connectors.search.source.config import SEQ_NO, Mode, SourceOptions
from sluiceway.data.instant import EPOCH
from sluiceway.errors import ConnectError

NANOS = "date_nanos"
TIMES = frozenset(("date", NANOS))
NUMBERS = frozenset(("long", "integer", "short", "byte"))

_MODE, _UUID, _FIELD, _VALUE, _NUMBER, _FINISHED = "mode", "uuid", "field", "value", "seq_no", "finished"
_FORM = '{"mode": "timestamp", "field": "@timestamp", "value": 1767225600000}'
_NANOS_OF_MILLI = 1_000_000


@dataclass(frozen=True, slots=True)
class Position:
    """The last document read: the field's value, as the server sorts by it, and its ``_seq_no``; None before the first one.

    With a value alone, documents with this value are read too. ``finished`` is that a pass of mode=bulk has ended there.
    """

    value: int | None = None
    number: int | None = None
    finished: bool = False

    @classmethod
    def of(cls, offset: Offset | None, uuid: str, options: SourceOptions) -> Position:
        """Return the position of a stored offset in the index with this UUID. Raises ConnectError for an invalid offset.

        Numbers of an index with the same name that was deleted mean nothing in this one.
        """
        if not offset:
            return cls()
        _check(offset)
        bulk = options.mode is Mode.BULK
        if (offset[_MODE] == Mode.BULK.value) != bulk:  # a position within all documents is none among the new ones
            return cls()
        if not bulk and offset.get(_FIELD) != options.field:
            raise ConnectError(
                f"The stored offset is of the field {offset.get(_FIELD)}, but the config names {options.field}. Name the former "
                "again, or stop the connector and reset its offsets to read all documents."
            )
        number = offset.get(_NUMBER) if offset.get(_UUID, uuid) == uuid else None
        return cls(offset.get(_VALUE), number, bool(offset.get(_FINISHED)))

    def offset(self, uuid: str, options: SourceOptions) -> dict[str, Any]:
        """Return the offset to store."""
        found: dict[str, Any] = {_MODE: options.mode.value, _UUID: uuid}
        if options.mode is not Mode.BULK:
            found[_FIELD] = options.field
        if self.value is not None:
            found[_VALUE] = self.value
        if self.number is not None:
            found[_NUMBER] = self.number
        if self.finished:
            found[_FINISHED] = True
        return found


def check_offset(partition: Partition | None, offset: Offset | None) -> None:
    """Raise ConnectError for an offset that no task can start from. None deletes the offset."""
    if set(partition or {}) != {"index", "shard"} or type((partition or {})["shard"]) is not int:
        raise ConnectError(f'A source partition is {{"index": "orders", "shard": 0}}, not {dict(partition or {})}.')
    if offset is not None:
        _check(offset)


def _check(offset: Offset) -> None:
    if offset.get(_MODE) not in {each.value for each in Mode}:
        raise ConnectError(f"The field 'mode' of an offset must be a mode, not {offset.get(_MODE)!r}: write {_FORM}.")
    for name in (_VALUE, _NUMBER):
        if type(offset.get(name, 0)) is not int:
            raise ConnectError(f"The field '{name}' of an offset must be a whole number, not {offset[name]!r}: write {_FORM}.")


class Bounds(NamedTuple):
    """The end of a pass: the time in milliseconds since the epoch, or the number, up to which documents are read.

    Later ones may become visible out of order.
    """

    before: int | None = None
    number: int | None = None


def search_body(options: SourceOptions, position: Position, bounds: Bounds, *, nanos: bool = False) -> dict[str, Any]:
    """Return the search of the documents after a position, without its point in time; ``nanos``: the field is date_nanos."""
    conditions: list[Mapping[str, Any]] = [] if options.query is None else [options.query]
    sort: list[dict[str, Any]] = [{SEQ_NO: "asc"}]
    body: dict[str, Any] = {"size": options.rows, "track_total_hits": False}
    if options.field != SEQ_NO:
        sort.insert(0, {options.field: "asc"})
        conditions.append(_range(options, position, bounds, nanos=nanos))
        if position.value is not None and position.number is not None:
            body["search_after"] = [position.value, position.number]
    elif position.number is not None:
        body["search_after"] = [position.number]
    if bounds.number is not None:
        conditions.append({"range": {SEQ_NO: {"lte": bounds.number}}})
    if conditions:
        body["query"] = {"bool": {"filter": conditions}}
    if options.include or options.exclude:
        body["_source"] = {"includes": list(options.include), "excludes": list(options.exclude)}
    if options.headers:
        body |= {"version": True, "seq_no_primary_term": True}
    return {**body, "sort": sort}


def _range(options: SourceOptions, position: Position, bounds: Bounds, *, nanos: bool) -> Mapping[str, Any]:
    """Return the condition on the field; documents without one do not match it."""
    limits: dict[str, Any] = {}
    if options.mode is not Mode.TIMESTAMP:
        if position.value is not None:
            limits["gte"] = position.value
    else:
        first = options.initial
        if position.value is not None:
            first = position.value // _NANOS_OF_MILLI if nanos else position.value
        moments = {"gte": _moment(first), "lt": _moment(bounds.before)}
        limits = {name: moment for name, moment in moments.items() if moment is not None}
        if limits:
            limits["format"] = "strict_date_optional_time"
    return {"range": {options.field: limits}} if limits else {"exists": {"field": options.field}}


def _moment(millis: int | None) -> str | None:
    """Return a time as text, whatever form the field's own have; None if it has no form, so that it is no limit."""
    if millis is None:
        return None
    try:
        moment = EPOCH + dt.timedelta(milliseconds=millis)
    except OverflowError:
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
