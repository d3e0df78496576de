"""Makes documents of records: their JSON, ids and versions, and the mappings of their schemas. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import orjson

from sluiceway.api import Converter, SinkRecord
from sluiceway.connectors.null_values import REPLACE_NULLS
from sluiceway.connectors.search.sink.options import Ids, NullValues, SearchOptions
from sluiceway.data import Schema, Struct, Type, java_text, millis_of
from sluiceway.data.logical import DATE, DECIMAL, TIME, TIMESTAMP, timestamp_schema
from sluiceway.discovery import converter_class
from sluiceway.errors import DataError

TIMESTAMP_FIELD = "@timestamp"

_MOST_ID_BYTES = 512
_MOST_SCHEMAS = 1000
_WHOLE = re.compile(r"-?[0-9]{1,19}")
_VERSIONS = range(-(2**63), 2**63)

_IDS = (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.STRING)
_TYPES = {
    Type.INT8: "byte",
    Type.INT16: "short",
    Type.INT32: "integer",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.BYTES: "binary",
}
_LOGICAL = {DECIMAL: "double", DATE: "date", TIME: "date", TIMESTAMP: "date"}
_TEXT = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}

Change = Callable[[Any], Any]


class Action(NamedTuple):
    """A record's action in a request to the bulk API.

    Attributes:
        lines: the request's lines, with their line feeds.
        key: the index and id, by which actions keep their order; None for documents that nothing else changes.
        versioned: whether the server has the document if it answers with a version conflict.
        record: the record.
    """

    lines: bytes
    key: tuple[str, str] | None
    versioned: bool
    record: SinkRecord

    @property
    def deletes(self) -> bool:
        return self.record.value is None


class Documents:
    """Makes the actions of records."""

    def __init__(self, options: SearchOptions) -> None:
        self._options = options
        self._converter = _json(options, numeric=True)
        self._plain = _json(options, numeric=False)
        self._encoders: dict[tuple[bool, Schema | None], Callable[[Any], bytes]] = {}

    def action(self, record: SinkRecord, target: str) -> Action | None:
        """Return what to do for a record, or None for nothing. Raises DataError if it has no document or no id."""
        options, value = self._options, record.value
        if value is None:
            return self._delete(record, target)
        ids = options.ids_of(record.topic)
        document = self.document(record)
        meta: dict[str, Any] = {"_index": target}
        key = None
        if (id_ := _id(record, ids)) is not None:
            meta["_id"] = id_
        if (routing := self._routing(record, document)) is not None:
            meta["routing"] = routing
        if options.writes_streams:
            return Action(_lines("create", meta, self._stamped(record, document)), None, True, record)
        if options.upsert:
            assert id_ is not None  # noqa: S101 (validation refuses an upsert without ids)
            meta["retry_on_conflict"] = 5
            return Action(_lines("update", meta, b'{"doc":%b,"doc_as_upsert":true}' % document), (target, id_), False, record)
        if ids is Ids.KEY:
            self._version(meta, record)
            key = (target, str(id_))
        return Action(_lines("index", meta, document), key, ids is Ids.KEY, record)

    def document(self, record: SinkRecord) -> bytes:
        """Return a record's value as JSON."""
        schema, used = record.value_schema, self._options.uses_schema(record.topic)
        encode = self._encoders.get((used, schema))
        if encode is None:
            if len(self._encoders) >= _MOST_SCHEMAS:
                self._encoders.clear()
            encode = self._encoders[used, schema] = self._encoder(schema, used=used)
        return encode(record.value)

    def _encoder(self, schema: Schema | None, *, used: bool) -> Callable[[Any], bytes]:
        converter, change = (self._converter if used else self._plain), None
        if used and schema is not None:
            schema, change = _form(schema, compact=self._options.compact_maps)
        encode = converter.encoder("", schema)
        if change is None:
            return lambda value: encode(value) or b"null"
        return lambda value: encode(change(value)) or b"null"

    def _delete(self, record: SinkRecord, target: str) -> Action | None:
        options = self._options
        if options.nulls is NullValues.FAIL:
            raise DataError(
                "The record has no value. To delete the document with its key, set behavior.on.null.values=delete; to leave such "
                "records out, ignore."
            )
        if options.nulls is NullValues.IGNORE or record.key is None or options.ids_of(record.topic) is not Ids.KEY:
            return None
        id_ = document_id(record)
        meta: dict[str, Any] = {"_index": target, "_id": id_}
        if options.routing == "key":
            meta["routing"] = id_
        if not options.upsert:
            self._version(meta, record)
        return Action(_lines("delete", meta), (target, id_), not options.upsert, record)

    def _version(self, meta: dict[str, Any], record: SinkRecord) -> None:
        """Add the version by which the server refuses what is older than its document, so that a repetition changes nothing."""
        meta["version_type"] = "external"
        header = self._options.version_header
        if header is None:
            meta["version"] = record.original_kafka_offset
            return
        value = next((each.value for each in reversed(tuple(record.headers)) if each.key == header), None)
        if isinstance(value, str) and _WHOLE.fullmatch(value):
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or value not in _VERSIONS:
            raise DataError(
                f"The header {header}, which external.version.header names, is missing or no whole number of 64 bits."
            )
        meta["version"] = value

    def _routing(self, record: SinkRecord, document: bytes) -> str | None:
        pointer = self._options.routing
        if pointer is None:
            return None
        if pointer == "key":
            return None if record.key is None else document_id(record)
        found = _parsed(document)
        for step in pointer.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list):
                found = found[int(name)] if _WHOLE.fullmatch(name) and 0 <= int(name) < len(found) else None
            else:
                found = found.get(name) if isinstance(found, dict) else None
        if found is None or isinstance(found, (dict, list)):
            raise DataError(f"The value has no single value at {pointer}, which routing.type.record.value.path names.")
        return found if isinstance(found, str) else _dumped(found).decode()

    def _stamped(self, record: SinkRecord, document: bytes) -> bytes:
        """Return a document with ``@timestamp``, which a data stream needs."""
        content = _parsed(document)
        if not isinstance(content, dict):
            raise DataError(f"A data stream takes objects, but the value is of the JSON type {type(content).__name__}.")
        fields = self._options.timestamp_fields
        moment = next((content[name] for name in fields if content.get(name) is not None), record.timestamp)
        if moment is None:
            raise DataError(
                f"The record has no time for {TIMESTAMP_FIELD}: neither a timestamp nor a field of data.stream.timestamp.field."
            )
        if TIMESTAMP_FIELD not in content:  # the other bytes stay, for numbers with more digits than a float has
            return b'{"%b":%b%b%b' % (TIMESTAMP_FIELD.encode(), _dumped(moment), b"," * bool(content), document[1:])
        return document if content[TIMESTAMP_FIELD] == moment else _dumped({**content, TIMESTAMP_FIELD: moment})


def document_id(record: SinkRecord) -> str:
    """Return a record's key as an id. Raises DataError for a key that cannot be one."""
    key, schema = record.key, record.key_schema
    if key is None:
        raise DataError("The record has no key for its document's id. key.ignore=true makes ids of topic, partition and offset.")
    if isinstance(key, bool) or (schema.type not in _IDS if schema is not None else not isinstance(key, (int, str))):
        kind = type(key).__name__ if schema is None else schema.type.name
        raise DataError(f"A key of type {kind} cannot be the id of a document: it must be a string or a whole number.")
    text = java_text(key, schema)
    if not text:
        raise DataError("The record's key is empty, and a document's id must not be.")
    if len(text.encode("utf-8", "replace")) > _MOST_ID_BYTES:
        raise DataError(f"The record's key has more than the {_MOST_ID_BYTES} bytes that a document's id may have.")
    return text


def _id(record: SinkRecord, ids: Ids) -> str | None:
    if ids is Ids.KEY:
        return document_id(record)
    if ids is Ids.NONE:
        return None
    # By the original topic: transforms may give several topics one name.
    return f"{record.original_topic}+{record.original_kafka_partition}+{record.original_kafka_offset}"


def _lines(action: str, meta: dict[str, Any], *documents: bytes) -> bytes:
    return b"\n".join([_dumped({action: meta}), *documents, b""])


def _dumped(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError as error:  # a lone surrogate, too deep
        raise DataError(f"The record's key or value is no JSON for the server: {error}") from error


def _parsed(document: bytes) -> Any:
    try:
        return orjson.loads(document)
    except orjson.JSONDecodeError as error:
        raise DataError(f"The value is no JSON for the server: {error}") from error


def _json(options: SearchOptions, *, numeric: bool) -> Converter:
    converter: Converter = converter_class("JsonConverter")()
    decimals = "NUMERIC" if numeric else "BASE64"
    nulls = str(options.replace_nulls).lower()
    converter.configure({"schemas.enable": "false", "decimal.format": decimals, REPLACE_NULLS: nulls})
    return converter


def mapping(schema: Schema, *, compact: bool) -> dict[str, Any]:
    """Return the mapping of values with a schema, as Confluent's and Aiven's sinks define it."""
    if schema.name in _LOGICAL:
        return {"type": _LOGICAL[str(schema.name)]}
    if schema.type is Type.ARRAY:
        return mapping(_inner(schema.value_schema), compact=compact)
    if schema.type is Type.MAP:
        keys, values = _inner(schema.key_schema), _inner(schema.value_schema)
        if compact and keys.type is Type.STRING:
            return {"type": "object"}  # each key is a field of its own
        return {"properties": {"key": mapping(keys, compact=compact), "value": mapping(values, compact=compact)}}
    if schema.type is Type.STRUCT:
        return {"properties": {each.name: mapping(each.schema, compact=compact) for each in schema.fields}}
    return _TEXT if schema.type is Type.STRING else {"type": _TYPES[schema.type]}


def _form(schema: Schema, *, compact: bool) -> tuple[Schema, Change | None]:
    """Return the schema and the change of values that a document needs: a date as milliseconds, map entries as objects."""
    if schema.name == DATE:
        return timestamp_schema(optional=schema.optional, default=_instant(schema.default)), _instant
    if schema.type is Type.ARRAY:
        items, change = _form(_inner(schema.value_schema), compact=compact)
        if change is None:
            return schema, None
        each = _each(change)
        return schema.replace(value_schema=items, default=each(schema.default)), each
    if schema.type is Type.MAP:
        return _map_form(schema, compact=compact)
    if schema.type is not Type.STRUCT:
        return schema, None
    forms = [_form(each.schema, compact=compact) for each in schema.fields]
    if all(change is None for _inner_schema, change in forms):
        return schema, None
    names = [each.name for each in schema.fields]
    fields = [(name, form) for name, (form, _change) in zip(names, forms, strict=True)]
    changes = [(name, change) for name, (_form, change) in zip(names, forms, strict=True)]
    plain = schema.replace(fields=fields, default=None)

    def changed(value: Any) -> Any:
        return None if value is None else Struct(plain, _fields(value, changes))

    return plain, changed


def _map_form(schema: Schema, *, compact: bool) -> tuple[Schema, Change | None]:
    keys, key_change = _form(_inner(schema.key_schema), compact=compact)
    values, value_change = _form(_inner(schema.value_schema), compact=compact)
    change_key, change_value = key_change or _same, value_change or _same
    if compact and keys.type is Type.STRING:
        if value_change is None:
            return schema, None

        def changed(value: Any) -> Any:
            return None if value is None else {key: change_value(each) for key, each in value.items()}

        return schema.replace(value_schema=values, default=changed(schema.default)), changed
    entry = Schema.struct({"key": keys, "value": values})

    def entries(value: Any) -> Any:
        if value is None:
            return None
        return [Struct(entry, {"key": change_key(key), "value": change_value(each)}) for key, each in value.items()]

    return Schema.array(entry, optional=schema.optional, default=entries(schema.default)), entries


def _fields(value: Struct, changes: Sequence[tuple[str, Change | None]]) -> dict[str, Any]:
    return {
        name: value.get_without_default(name) if change is None else change(value.get_without_default(name))
        for name, change in changes
    }


def _each(change: Change) -> Change:
    return lambda value: None if value is None else [change(each) for each in value]


def _instant(value: Any) -> Any:
    from sluiceway.data.instant import timestamp_of

    return None if value is None else timestamp_of(millis_of(value))


def _same(value: Any) -> Any:
    return value


def _inner(schema: Schema | None) -> Schema:
    assert schema is not None  # noqa: S101 (of an array or map)
    return schema
