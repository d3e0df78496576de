"""ToLogicalTopicRouter and ByLogicalTableRouter: send the change events of several tables to one topic."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sluiceway.api import Transform
from sluiceway.api.transform import R
from sluiceway.config.definition import ConfigDef, Type, Width
from sluiceway.data import STRING_SCHEMA, Schema, Struct
from sluiceway.java.blanks import trim
from sluiceway.java.regex import JavaRegex, compile_java
from sluiceway.transforms.debezium.envelope import (
    AFTER,
    BEFORE,
    RecentlyUsed,
    envelope_name,
    is_envelope,
    require_values,
)
from sluiceway.transforms.debezium.names import MODES, schema_name_adjuster
from sluiceway.transforms.debezium.options import (
    Option,
    Options,
    config_def,
    one_of,
    option,
    regular_expression,
    required,
)
from sluiceway.transforms.util.requirements import require_struct
from sluiceway.transforms.util.structs import fields_of, struct_like

log = logging.getLogger(__name__)

_PURPOSE = "Updating schema"
_ROWS = (BEFORE, AFTER)


def _replacement_given(options: Options, name: str) -> str | None:
    regex, replacement = options.text("key.field.regex"), options.text(name)
    if regex is None or not trim(regex) or (replacement is not None and trim(replacement)):
        return None
    return f"{name} must be non-empty if key.field.regex is set."


_OPTIONS: tuple[Option, ...] = (
    option(
        "topic.regex",
        Type.STRING,
        "Topic regex",
        "Java regular expression that the whole topic name must match; other records stay as they are.",
        width=Width.LONG,
        checks=(required, regular_expression),
    ),
    option(
        "topic.replacement",
        Type.STRING,
        "Topic replacement",
        "New topic name; $1 and ${name} refer to groups of the match.",
        width=Width.LONG,
        checks=(required,),
    ),
    option(
        "key.enforce.uniqueness",
        Type.BOOLEAN,
        "Add source topic name into key",
        "Whether to add a field to the key that says which topic the record comes from. Turn it off only if no two tables have "
        "the same key.",
        default="true",
        width=Width.SHORT,
    ),
    option(
        "key.field.regex",
        Type.STRING,
        "Key field regex",
        "Java regular expression for the value of the key's new field: it must match the whole original topic name. Without it, "
        "or without a match, the value is the topic name.",
        width=Width.LONG,
        checks=(regular_expression,),
    ),
    option(
        "key.field.replacement",
        Type.STRING,
        "Key field replacement",
        "Value of the key's new field; $1 and ${name} refer to groups of key.field.regex.",
        width=Width.LONG,
        checks=(_replacement_given,),
    ),
    option(
        "logical.destination.cache.size",
        Type.INT,
        "Logical destination cache size",
        "How many schemas and topic names to remember.",
        default="16",
        width=Width.LONG,
    ),
)
_UNDOCUMENTED: tuple[Option, ...] = (
    option("key.field.name", Type.STRING, "Key field name", "Name of the key's new field.", default="__dbz__sourceIdentifier"),
    option(
        "schema.name.adjustment.mode",
        Type.STRING,
        "Schema Name Adjustment",
        "How to make new schema names valid for Avro: none, avro or avro_unicode.",
        default="none",
        checks=(one_of(*MODES),),
    ),
)
"""Options that Debezium reads but does not define for Connect's REST API."""

_CHECKED = [each.key.name for each in (*_OPTIONS, *_UNDOCUMENTED) if each.key.name != "key.field.name"]
_CONFIG = config_def(_OPTIONS)


class ToLogicalTopicRouter(Transform):
    """Renames topics by a regular expression and makes keys of different tables unique."""

    java_class = "io.debezium.transforms.ToLogicalTopicRouter"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _CONFIG

    def configure(self, config: Mapping[str, str]) -> None:
        options = Options((*_OPTIONS, *_UNDOCUMENTED), config)
        options.require_all_valid(_CHECKED)
        self._regex = compile_java(options.text("topic.regex") or "")
        self._replacement = options.text("topic.replacement") or ""
        key_regex = options.text("key.field.regex")
        self._key_regex: JavaRegex | None = None if key_regex is None or not trim(key_regex) else compile_java(key_regex)
        self._key_replacement = options.text("key.field.replacement") or ""
        self._key_field = options.text("key.field.name") or ""
        self._unique = options.flag("key.enforce.uniqueness")
        self._adjust = schema_name_adjuster(trim(options.text("schema.name.adjustment.mode") or "none").lower())
        size = options.integer("logical.destination.cache.size")
        self._topics: RecentlyUsed[str, str | None] = RecentlyUsed(size)
        self._sources: RecentlyUsed[str, str] = RecentlyUsed(size)
        self._keys: RecentlyUsed[Schema, Schema] = RecentlyUsed(size)
        self._envelopes: RecentlyUsed[Schema, Schema] = RecentlyUsed(size)

    def apply(self, record: R) -> R | Sequence[R] | None:
        topic = self._topics.get(record.topic, self._new_topic)
        if topic is None:
            return record
        if not topic:
            log.warning("The option topic.replacement makes topic %s an empty name; the record keeps its topic.", record.topic)
            return record
        key_schema, key = None, None
        if record.key is not None:
            old = require_struct(record.key, record.key_schema, _PURPOSE)
            key_schema = self._keys.get(old.schema, lambda schema: self._key_schema(schema, topic))
            key = self._key(key_schema, old, record.topic)
        schema, value = record.value_schema, record.value
        if value is not None and is_envelope(schema):
            event = require_struct(value, schema, _PURPOSE)
            schema = self._envelopes.get(event.schema, lambda envelope: self._envelope_schema(envelope, topic))
            value = _envelope(schema, event)
        changed = record.with_data(key_schema, key, schema, value)
        changed.topic = topic
        return changed

    def _new_topic(self, topic: str) -> str | None:
        return self._regex.replace_first(topic, self._replacement) if self._regex.matches(topic) else None

    def _key_schema(self, schema: Schema, topic: str) -> Schema:
        fields = _pairs(schema)
        if self._unique:
            fields.append((self._key_field, STRING_SCHEMA))
        return _renamed(schema, fields, self._adjust(f"{topic}.Key"))

    def _key(self, schema: Schema, key: Struct, topic: str) -> Struct:
        new = require_values(key.schema, key.values_)
        values = new.values_.copy()
        if self._unique:
            values.append(topic if self._key_regex is None else self._sources.get(topic, self._source))
        return Struct.of(schema, values)

    def _source(self, topic: str) -> str:
        regex = self._key_regex
        return regex.replace_first(topic, self._key_replacement) if regex is not None and regex.matches(topic) else topic

    def _envelope_schema(self, schema: Schema, topic: str) -> Schema:
        rows = schema.field(BEFORE) or schema.field(AFTER)
        fields = _pairs(schema)
        if rows is not None:
            row = _renamed(rows.schema, _pairs(rows.schema), self._adjust(f"{topic}.Value"))
            fields = [(name, row if name in _ROWS else field) for name, field in fields]
        return _renamed(schema, fields, self._adjust(envelope_name(topic)))


class ByLogicalTableRouter(ToLogicalTopicRouter):
    """Renames topics by a regular expression, with the defaults of Debezium's earlier versions."""

    java_class = "io.debezium.transforms.ByLogicalTableRouter"

    def configure(self, config: Mapping[str, str]) -> None:
        log.warning(
            "%s is deprecated and will be removed in a future release. Please adjust the connector configuration to use %s "
            "instead.",
            ByLogicalTableRouter.java_class,
            ToLogicalTopicRouter.java_class,
        )
        adjusted = {"key.field.name": "__dbz__physicalTableIdentifier", **config}
        if "logical.table.cache.size" in config:
            adjusted.setdefault("logical.destination.cache.size", config["logical.table.cache.size"])
        super().configure(adjusted)


def _pairs(schema: Schema) -> list[tuple[str, Schema]]:
    return [(field.name, field.schema) for field in fields_of(schema)]


def _renamed(schema: Schema, fields: Iterable[tuple[str, Schema]], name: str) -> Schema:
    """Return a schema with another name and other fields, without the default."""
    return struct_like(schema.replace(name=name), fields, optional=schema.optional)


def _envelope(schema: Schema, event: Struct) -> Struct:
    values: list[Any] = []
    for field in event.schema.fields:
        value = event[field.name]
        target = schema.fields[field.index].schema
        if value is not None and field.name in _ROWS and schema.field(field.name) is not None:
            value = _row(target, require_struct(value, field.schema, _PURPOSE))
        values.append(value)
    return require_values(schema, values)


def _row(schema: Schema, row: Struct) -> Struct:
    if [field.name for field in schema.fields] == [field.name for field in row.schema.fields]:
        return require_values(schema, row.values_.copy())
    moved = Struct(schema)  # "after" gets the schema of "before", which may have other fields
    for name in row:
        moved[name] = row.get_without_default(name)
    return moved
