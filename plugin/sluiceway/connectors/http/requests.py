"""Makes requests of records: their URLs, bodies, and idempotency keys. No I/O."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from sluiceway.api import Converter, SinkRecord
from sluiceway.connectors.http.sink_config import NULLS, PLACEHOLDER, SinkOptions
from sluiceway.connectors.simple_values import record_name, simple_bytes
from sluiceway.data import Schema, Struct
from sluiceway.discovery import converter_class
from sluiceway.errors import DataError

_MOST_SCHEMAS = 1000
_KEY_CHARACTERS = re.compile(r"[^\x21-\x7e]")


@dataclass(slots=True, eq=False)
class Item:
    """A record of a request. ``lane`` is what keeps its order; ``repeat`` tells records of one message apart, 0 for the first."""

    method: str
    url: str
    body: bytes
    lane: Hashable
    record: SinkRecord
    repeat: int = 0


class Requests:
    """Makes the items of records, and the bodies and headers of requests."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._converter: Converter = converter_class("JsonConverter")()
        self._converter.configure({"schemas.enable": "false", "decimal.format": "NUMERIC"})
        self._encoders: dict[Schema | None, Callable[[Any], bytes | None]] = {}

    def item(self, record: SinkRecord, repeat: int) -> Item | None:
        """Return what to send of a record; None for nothing. Raises DataError."""
        options, value = self._options, record.value
        try:
            if value is not None:
                body = b"" if options.method == "DELETE" else self._body(record)
                return Item(options.method, filled_url(options.url, record), body, self._lane(record), record, repeat)
            if options.nulls == "ignore":
                return None
            if options.nulls == "delete":
                return Item("DELETE", filled_url(options.delete_url, record), b"", self._lane(record), record, repeat)
        except (UnicodeError, ValueError, ArithmeticError, TypeError) as error:
            raise DataError(f"{record_name(record)} cannot be sent: {error}") from error
        raise DataError(f"{record_name(record)} has no value. Set {NULLS} to delete or ignore if such records are meant.")

    def content(self, items: Sequence[Item]) -> tuple[dict[str, str], bytes | None]:
        """Return the headers and the body of the request of some items."""
        options, headers = self._options, dict(self._options.headers)
        if options.idempotency_header:
            headers[options.idempotency_header] = idempotency_key(options.name, items)
        if items[0].method == "DELETE":
            headers.pop("Content-Type", None)
            return headers, None
        return headers, options.prefix + options.separator.join(each.body for each in items) + options.suffix

    def _lane(self, record: SinkRecord) -> Hashable:
        """Return what records that are sent one after the other have in common. A record without a key is of its partition."""
        options = self._options
        if options.order == "none":
            return None
        if options.order == "key" and record.key is not None:
            raw = simple_bytes(record.key)
            raw = self._json(record.key, record.key_schema) if raw is None else raw
            return int.from_bytes(hashlib.blake2b(raw, digest_size=4).digest(), "big") % options.in_flight
        return record.original_topic_partition

    def _body(self, record: SinkRecord) -> bytes:
        raw = None if self._options.as_json else simple_bytes(record.value)
        return self._json(record.value, record.value_schema) if raw is None else raw

    def _json(self, value: Any, schema: Schema | None) -> bytes:
        encode = self._encoders.get(schema)
        if encode is None:
            if len(self._encoders) >= _MOST_SCHEMAS:
                self._encoders.clear()
            encode = self._encoders[schema] = self._converter.encoder("", schema)
        return encode(value) or b"null"


def idempotency_key(name: str, items: Sequence[Item]) -> str:
    """Return the key of a request: the same one for the same records, and another one for any others."""
    first, last = items[0].record, items[-1].record
    topic, partition = first.original_topic_partition
    key = f"{name}-{topic}-{partition}-{first.original_kafka_offset}"
    if len(items) > 1:
        positions = repr(
            [(*each.record.original_topic_partition, each.record.original_kafka_offset, each.repeat) for each in items]
        )
        key = f"{key}-{last.original_kafka_offset}-{hashlib.blake2b(positions.encode(), digest_size=8).hexdigest()}"
    elif items[0].repeat:
        key = f"{key}.{items[0].repeat}"
    return _KEY_CHARACTERS.sub(lambda found: quote(found.group(), safe=""), key)


def filled_url(template: str, record: SinkRecord) -> str:
    """Return the URL of a record. Raises DataError for one that would be another path."""

    def filled(found: Any) -> str:
        name = found.group(1)
        value = _named(name, record)
        raw = simple_bytes(value)
        if raw is None:
            kind = "no value" if value is None else f"a {type(value).__name__}"
            raise DataError(f"The URL needs ${{{name}}}, and {record_name(record)} has {kind} there.")
        text = raw.decode()
        if text in ("", ".", ".."):
            raise DataError(f"The URL cannot have {text!r} as ${{{name}}}, which {record_name(record)} has: it is another path.")
        return quote(text, safe="")

    return PLACEHOLDER.sub(filled, template) if "${" in template else template


def _named(name: str, record: SinkRecord) -> Any:
    simple = {"topic": record.topic, "partition": record.kafka_partition, "offset": record.kafka_offset, "key": record.key}
    if name in simple:
        return simple[name]
    first, *path = name.split(".")
    value = record.key if first == "key" else record.value
    for step in path:
        if isinstance(value, Struct):
            value = value[step] if any(each.name == step for each in value.schema.fields) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value
