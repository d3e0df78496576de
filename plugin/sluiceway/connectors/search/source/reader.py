"""Reads the documents of one shard, pass by pass. Runs on the executors."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from sluiceway.api import Offset, SourceRecord
from sluiceway.connectors.errors import UnreachableError
from sluiceway.connectors.search.client import RefusedError, is_busy
from sluiceway.connectors.search.source.client import SourceClient
from sluiceway.connectors.search.source.config import (
    INCREMENTING_FIELD,
    INDEX,
    SEQ_NO,
    TIMESTAMP_FIELD,
    Mode,
    SourceOptions,
)
from sluiceway.connectors.search.source.indexes import Shard, topic_of
from sluiceway.connectors.search.source.position import NANOS, NUMBERS, TIMES, Bounds, Position, search_body
from sluiceway.data import INT64_SCHEMA, STRING_SCHEMA, Header, Headers
from sluiceway.errors import ConnectError

log = logging.getLogger(__name__)

_NO_INDEX, _NO_VIEW = "index_not_found_exception", "search_context_missing_exception"
_MOST_LOST_VIEWS = 3  # in a row, without a page between them
_METADATA = (
    ("_index", STRING_SCHEMA),
    ("_id", STRING_SCHEMA),
    ("_version", INT64_SCHEMA),
    (SEQ_NO, INT64_SCHEMA),
    ("_primary_term", INT64_SCHEMA),
)


class ShardReader:
    """Reads a shard from the last document read, or all of it with mode=bulk.

    A pass reads from one point in time. If that expires, or its node ends, the pass continues from another one.

    Attributes:
        due: when the next pass begins, by the monotonic clock; 0 before the first one.
        moved: an offset to store that no record has; None if there is none.
    """

    def __init__(
        self,
        shard: Shard,
        options: SourceOptions,
        client: SourceClient,
        stored: Offset | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.shard = shard
        self.due = 0.0
        self.moved: Offset | None = None
        self._options = options
        self._client = client
        self._clock = clock
        self._topic = topic_of(options.topic_prefix, shard.origin)
        self._partition = shard.partition
        self._position = position = Position.of(stored, shard.uuid, options)
        if position.finished:
            self._position = Position()
        self._resumed = options.mode is Mode.BULK and self._position.number is not None
        self._view: str | None = None
        self._lost: list[str] = []
        self._bounds = Bounds()
        self._began = 0.0
        self._ends = False
        self._nanos = False
        self._checked = False
        self._read_up_to: float | None = None

    @property
    def partition(self) -> dict[str, Any]:
        return self._partition

    def next(self) -> list[SourceRecord] | None:
        """Return the records of the next page; None at the end of a pass.

        Raises UnreachableError and, if the server refuses the search, RefusedError; the next call continues.
        """
        try:
            if self._ends or (self._view is None and not self._begin()):
                self._end()
                return None
            hits = self._page()
        except RefusedError as error:
            if error.kind == _NO_INDEX:
                self._gone()
                return None
            raise
        self._ends = len(hits) < self._options.rows
        if not hits:
            self._end()
            return None
        records = [self._record(hit) for hit in hits]
        self._resumed = False
        self.moved = None
        return records

    def lag(self, now: float) -> float | None:
        """Return the age of the moment up to which all documents have been read, in seconds. Any thread may ask."""
        read = self._read_up_to
        return None if read is None else max(0.0, now - read)

    def close(self) -> None:
        """Close the points in time, as far as the server answers soon."""
        views, self._view = [*self._lost, *([] if self._view is None else [self._view])], None
        self._lost = []
        for each in views:
            self._client.close_view(each)

    def _begin(self) -> bool:
        """Begin a pass, or continue one with another point in time. Return False if there is nothing to read."""
        self._began = time.monotonic()
        self._bounds = bounds = Bounds()
        if not self._checked and not self._check_field():
            return False
        if self._options.before is not None:
            bounds = Bounds(before=self._options.before)
            self._client.refresh(self.shard.index)  # the run has waited for what comes late, but not until it can be searched
        elif self._options.mode is Mode.TIMESTAMP:
            bounds = Bounds(before=int((self._clock() - self._options.delay) * 1000))
        elif self._options.follows_writes:
            written = self._written()
            if written <= (-1 if self._position.number is None else self._position.number):
                return False
            bounds = Bounds(number=written)
            self._client.refresh(self.shard.index)  # what all copies have can be searched in all of them from now on
        self._view = self._client.open_view(self.shard.index, self.shard.number, self._options.keep_alive)
        self._bounds = bounds
        return True

    def _written(self) -> int:
        """Return the number up to which no write is missing on any copy."""
        found = self._client.checkpoints(self.shard.index)
        if found is None or found.uuid != self.shard.uuid:
            raise RefusedError(0, f"{self.shard.index} was deleted.", _NO_INDEX)
        if self.shard.number not in found.numbers:
            raise UnreachableError(f"The primary of {self.shard} is not active.")
        return found.numbers[self.shard.number]

    def _check_field(self) -> bool:
        """Return whether the index has the field; raise ConnectError if it has documents without it, or of another type."""
        if self._options.field != SEQ_NO:
            types = self._client.field_types(self.shard.index, self._options.field)
            if not types and not self._client.has_documents(self.shard.index):
                return False  # its first document may define the field
            if (problem := field_problem(self._options, self.shard.index, types)) is not None:
                raise ConnectError(problem)
            self._nanos = NANOS in types[self._options.field]
        self._checked = True
        return True

    def _page(self) -> list[dict[str, Any]]:
        body = search_body(self._options, self._position, self._bounds, nanos=self._nanos)
        for _ in range(_MOST_LOST_VIEWS):
            assert self._view is not None  # noqa: S101 (a pass has begun)
            view = {"id": self._view, "keep_alive": f"{self._options.keep_alive}ms"}
            try:
                page = self._client.page(self._view, {**body, "pit": view})
            except (UnreachableError, RefusedError) as error:
                expired = isinstance(error, RefusedError) and error.kind == _NO_VIEW
                if not expired:
                    self._lost.append(self._view)  # it may exist, on a node that does not answer
                self._view = None
                if not expired:
                    raise
                log.info("The point in time of %s has expired: opening another one", self.shard)
                self._view = self._client.open_view(self.shard.index, self.shard.number, self._options.keep_alive)
            else:
                self._view = page.view
                return page.hits
        raise UnreachableError(
            f"The points in time of {self.shard} expire at once. Raise point.in.time.keep.alive.ms, or let a proxy send the "
            "requests of a client to one cluster."
        )

    def _record(self, hit: dict[str, Any]) -> SourceRecord:
        source = hit.get("_source")
        if source is None:
            raise ConnectError(f"The index {self.shard.index} keeps no _source, so that its documents cannot be read.")
        sort = hit["sort"]
        self._position = position = Position(sort[0] if len(sort) > 1 else None, sort[-1])
        offset = position.offset(self.shard.uuid, self._options)
        headers = _headers(hit) if self._options.headers else ()
        return SourceRecord(self._partition, offset, self._topic, source, None, hit["_id"], STRING_SCHEMA, headers=headers)

    def _end(self) -> None:
        """End a pass."""
        if self._view is not None:
            self.close()
        self._ends = False
        self._read_up_to = self._began - (self._options.delay if self._options.mode is Mode.TIMESTAMP else 0.0)
        self.due = self._began + self._options.poll_interval
        if self._options.follows_writes and self._bounds.number is not None:
            if self._bounds.number != self._position.number:  # the last writes were deletes, or do not match the query
                self._position = Position(number=self._bounds.number)
                self.moved = self._position.offset(self.shard.uuid, self._options)
        elif self._options.mode is Mode.BULK:
            if self._resumed:  # an earlier task had read it to its end
                self.due = 0.0
            else:
                self.moved = Position(number=self._position.number, finished=True).offset(self.shard.uuid, self._options)
            self._position, self._resumed = Position(), False

    def _gone(self) -> None:
        """Wait for the connector to take a deleted index away from this task."""
        log.info("The index %s is gone: checking again in %g s", self.shard.index, self._options.index_interval)
        self._view, self._ends, self._checked = None, False, False
        self.due = time.monotonic() + self._options.index_interval


def field_problem(options: SourceOptions, index: str, types: dict[str, set[str]]) -> str | None:
    """Return what is wrong with the field by which documents are sorted; None if it can be used.

    Args:
        types: the types of the field and of the objects that it is in, by their paths.
    """
    key = TIMESTAMP_FIELD if options.mode is Mode.TIMESTAMP else INCREMENTING_FIELD
    wanted = TIMES if options.mode is Mode.TIMESTAMP else NUMBERS
    found = types.get(options.field, set())
    if not found:
        return (
            f"The documents of the index {index} have no field {options.field}, or it is not indexed. Set {key} to a field of "
            f"the type {' or '.join(sorted(wanted))}, or leave the index out of {INDEX}."
        )
    if not found <= wanted:
        return (
            f"The field {options.field} of the index {index} has the type {', '.join(sorted(found))}, by which documents cannot "
            f"be read. Set {key} to a field of the type {' or '.join(sorted(wanted))}."
        )
    if any("nested" in each for each in types.values()):
        return (
            f"The field {options.field} of the index {index} is in nested objects. Set {key} to a field of the document itself."
        )
    return None


def explained(error: Exception) -> str:
    """Return the text of a failed request, with what may be done about a cluster that is busy."""
    text = str(error)
    if isinstance(error, RefusedError) and is_busy(error.status) and "oint In Time" in text:
        return f"{text}. Close points in time of other programs, or raise search.max_open_pit_context."
    return text


def _headers(hit: dict[str, Any]) -> Headers:
    return tuple(Header(name, hit[name], schema) for name, schema in _METADATA)
