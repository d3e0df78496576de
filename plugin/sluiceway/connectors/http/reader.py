"""Reads the pages of a list, run by run, on a thread of its own. Runs on executors."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

import orjson

from sluiceway.api import Offset, SourceRecord
from sluiceway.api.outage import Outage
from sluiceway.backoff import Backoff
from sluiceway.connectors.errors import UnreachableError
from sluiceway.connectors.http.client import Answer, HttpClient
from sluiceway.connectors.http.connection import shown_url
from sluiceway.connectors.http.paging import Page, next_page
from sluiceway.connectors.http.pointers import filled, found_at, is_scalar, text_of
from sluiceway.connectors.http.position import Position, hash_of, is_after, moment_of
from sluiceway.connectors.http.retries import RETRIES
from sluiceway.connectors.http.source_config import (
    ANSWER_OFFSETS,
    DIRECTION,
    ETAG,
    KEY,
    LIST,
    MODIFIED,
    OFFSETS,
    PARAMS,
    TIMESTAMP,
    URL,
    SourceOptions,
)
from sluiceway.data import BYTES_SCHEMA, STRING_SCHEMA
from sluiceway.errors import ConnectError, DataError

log = logging.getLogger(__name__)

_NOT_MODIFIED = 304
_VALIDATORS = ((ETAG, "etag", "If-None-Match"), (MODIFIED, "last-modified", "If-Modified-Since"))


@dataclass(slots=True)
class Batch:
    """The new records of a page, and the offset to store when Kafka has them; None for none. The last one of a run ``ends``."""

    records: list[SourceRecord] = field(default_factory=list)
    bad: list[tuple[SourceRecord, ConnectError]] = field(default_factory=list)
    offset: Offset | None = None
    ends: bool = False


class Reader:
    """Asks for pages until it is stopped. ``waiting`` is told why it waits, and when that is over."""

    def __init__(
        self, options: SourceOptions, client: HttpClient, stored: Offset | None, waiting: Callable[[object, float], None]
    ) -> None:
        self._options = options
        self._client = client
        self._position = Position.of(stored)
        self._waiting = waiting
        self._outage = Outage(options.retries.unreachable)
        self._stopping = threading.Event()
        self._next_request = 0.0
        self._warned = False
        self.requests = 0

    def stop(self) -> None:
        """End the wait between runs and attempts. Another thread calls it."""
        self._stopping.set()

    def batches(self) -> Iterator[Batch]:
        """Yield the pages of one run after the other. Raises ConnectError for what does not pass."""
        while not self._stopping.is_set():
            began = time.monotonic()
            yield from self._run()
            self._stopping.wait(max(0.0, began + self._options.interval - time.monotonic()))

    def _run(self) -> Iterator[Batch]:
        """Yield the pages of a run. Its requests have the position at its begin."""
        options, first = self._options, self._position
        page: Page | None = Page(number=options.first_page)
        position = first
        while page is not None:
            answer = self._answer(page, first)
            if answer is None:
                return
            if answer.status == _NOT_MODIFIED:
                break
            content = None if options.values == "body" else _parsed(answer)
            items = [answer.body] if options.values == "body" else self._items(content, answer)
            batch, position = self._batch(items, first, position)
            page = next_page(options, page, answer, content, len(items))
            if page is None:
                position = self._completed(position, answer, content)
            if options.ascending or page is None:
                batch.offset = None if position == self._position else position.offset
                self._position = position
            batch.ends = page is None
            yield batch
        else:
            return
        yield Batch(ends=True)

    # Requests.

    def _answer(self, page: Page, position: Position) -> Answer | None:
        """Return the answer to a request, after attempts with growing pauses; None if the reader is stopped."""
        options, retries = self._options, self._options.retries
        pauses = Backoff(retries.backoff, retries.longest_backoff)
        while True:
            self._stopping.wait(max(0.0, self._next_request - time.monotonic()))
            if self._stopping.is_set():
                return None
            self._next_request = time.monotonic() + options.pause
            try:
                answer = self._ask(page, position)
            except UnreachableError as error:
                self._outage.lasts(error)
                pause = max(pauses.next(), error.pause)
                if retries.most is not None and pauses.failures > retries.most:
                    raise ConnectError(f"{error} (after {pauses.failures} attempts, more than {RETRIES} allows)") from error
                log.warning("Trying again in %.1f s: %s", pause, error)
                self._waiting(error, pause)
                self._stopping.wait(pause)
                continue
            self._outage.ended()
            if pauses.failures:
                self._waiting(None, 0.0)
            return answer

    def _ask(self, page: Page, position: Position) -> Answer:
        options = self._options
        given = {**options.initial, **position.values}
        values = {**{f"offset.{name}": value for name, value in given.items()}, **page.values(options)}
        headers = {name: text for name, template in options.headers if (text := filled(template, values)) is not None}
        if options.conditional:
            headers |= {header: text_of(given[name]) for name, _from, header in _VALIDATORS if name in given}
        body = None if options.body is None else self._body(options.body, values, headers)
        self.requests += 1
        url = self._url(values) if page.url is None else page.url
        answer = self._client.send(options.method, url, headers, body, most=options.most_bytes, follows=options.method == "GET")
        if answer.is_success or (answer.status == _NOT_MODIFIED and options.conditional):
            return answer
        raise ConnectError(f"{shown_url(url)} answered with HTTP {answer.status}: {answer.text} Check {URL} and {PARAMS}.")

    def _url(self, values: dict[str, Any]) -> str:
        options = self._options
        url = filled(options.url, values, lambda text: quote(text, safe=""))
        if url is None:
            raise ConnectError(f"The offset has no value for a placeholder of {URL}.")
        pairs = [(name, filled(template, values)) for name, template in options.params]
        query = "&".join(f"{quote(name, safe='')}={quote(text, safe='')}" for name, text in pairs if text is not None)
        return url if not query else f"{url}{'&' if '?' in url else '?'}{query}"

    @staticmethod
    def _body(template: str, values: dict[str, Any], headers: dict[str, str]) -> bytes:
        """Return the body, in which values cannot end a text of JSON."""
        if not any(name.lower() == "content-type" for name in headers):
            headers["Content-Type"] = "application/json"
        is_json = "json" in next(value for name, value in headers.items() if name.lower() == "content-type")
        complete = _Complete(values)
        text = filled(template, complete, (lambda each: orjson.dumps(each).decode()[1:-1]) if is_json else str)
        return (text or "").encode()

    # Records.

    def _items(self, content: Any, answer: Answer) -> list[Any]:
        found = found_at(self._options.list, content)
        if isinstance(found, list):
            return found
        if found is None:
            if not self._warned:
                log.warning("%s has nothing at %s=%s: no records", shown_url(answer.url), LIST, self._options.list)
                self._warned = True
            return []
        return [found]

    def _batch(self, items: list[Any], first: Position, position: Position) -> tuple[Batch, Position]:
        """Return the new records of a page, and the position behind it. Raises ConnectError for a list in another order."""
        batch, cursor = Batch(), self._options.cursor
        for item in items:
            try:
                values = self._offset_values(item)
                if cursor is not None:
                    hash_ = hash_of(item)
                    if first.has(cursor, values, hash_):
                        continue
                    self._check_order(cursor, values, position)
                    position = position.after(cursor, values, hash_)
                record = self._record(item, values)
                if self._options.ascending:
                    record.source_partition, record.source_offset = self._options.partition, position.offset
                batch.records.append(record)
            except DataError as error:
                raw = item if isinstance(item, bytes) else orjson.dumps(item)
                batch.bad.append((SourceRecord(None, None, self._options.topic, raw, BYTES_SCHEMA), error))
        return batch, position

    def _offset_values(self, item: Any) -> dict[str, Any]:
        values = {name: found_at(pointer, item) for name, pointer in self._options.offsets.items()}
        for name, value in values.items():
            if not is_scalar(value):
                told = "nothing" if value is None else f"a {type(value).__name__}"
                raise DataError(f"An item has {told} at {self._options.offsets[name]}, which {OFFSETS} names as {name}.")
        return values

    def _check_order(self, cursor: str, values: dict[str, Any], position: Position) -> None:
        last = position.values.get(cursor)
        if self._options.ascending and last is not None and is_after(last, values[cursor]):
            raise ConnectError(
                f"The list is not in ascending order: {cursor} {values[cursor]!r} follows {last!r}. Set {DIRECTION} to IMPLICIT: "
                "with ASC, records could be lost."
            )

    def _record(self, item: Any, values: dict[str, Any]) -> SourceRecord:
        options = self._options
        key = text_of(values[KEY]) if KEY in values else None
        key_schema = None if key is None else STRING_SCHEMA
        at = self._timestamp(values[TIMESTAMP]) if TIMESTAMP in values else None
        if options.values == "body":
            return SourceRecord(None, None, options.topic, item, BYTES_SCHEMA)
        value, schema = found_at(options.value, item), None
        if options.values == "string":
            value, schema = orjson.dumps(value).decode(), STRING_SCHEMA
        return SourceRecord(None, None, options.topic, value, schema, key, key_schema, timestamp=at)

    def _timestamp(self, value: Any) -> int:
        """Return a time in milliseconds. Raises DataError."""
        if isinstance(value, str):
            moment = moment_of(value)
            if moment is not None:
                return moment.millis
            try:
                value = float(value)
            except ValueError:
                raise DataError(f"The {TIMESTAMP} {value!r} is no time of ISO 8601, and no number. Check {OFFSETS}.") from None
        try:
            return int(value * (1000 if self._options.in_seconds else 1))
        except (OverflowError, ValueError) as error:
            raise DataError(f"The {TIMESTAMP} {value!r} is no time. Check {OFFSETS}.") from error

    def _completed(self, position: Position, answer: Answer, content: Any) -> Position:
        """Return the position at the end of a run, with what the last answer has for the next one."""
        options, more = self._options, {}
        for name, pointer in options.answer_offsets.items():
            value = found_at(pointer, content)
            if value is not None and not is_scalar(value):
                told = f"{shown_url(answer.url)} has a {type(value).__name__} at {pointer}"
                raise ConnectError(f"{told}, which {ANSWER_OFFSETS} names as {name}.")
            if value is not None:
                more[name] = value
        if options.conditional:
            more |= {name: answer.headers[header] for name, header, _to in _VALIDATORS if header in answer.headers}
        return replace(position, values={**position.values, **more}) if more else position


class _Complete(dict[str, Any]):
    """Values in which what is missing is empty."""

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(name, "")

    def __missing__(self, name: str) -> str:
        return ""


def _parsed(answer: Answer) -> Any:
    try:
        return orjson.loads(answer.body)
    except orjson.JSONDecodeError as error:
        raise ConnectError(f"{shown_url(answer.url)} gave no JSON ({error}): {answer.text} Check {URL}.") from error
