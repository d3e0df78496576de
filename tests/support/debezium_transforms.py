"""Sends records through one of Debezium's transforms in Java and ours, and lists the differences."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sluiceway.api import SinkRecord, SourceRecord, Transform
from sluiceway.data import Schema, Struct
from sluiceway.discovery import transform_class
from sluiceway.errors import ConnectError
from sluiceway.java_plugins.errors import JavaError
from sluiceway.java_plugins.hosts import reference
from sluiceway.java_plugins.index import JavaPlugin
from sluiceway.java_plugins.stages import JavaTransforms, StageFailure

# Java's own errors, such as a NullPointerException, describe Debezium's code; ours say what is wrong with the record.
_WITHOUT_MESSAGE = (
    "java.lang.NullPointerException",
    "java.lang.ClassCastException",
    "java.lang.ArrayIndexOutOfBoundsException",
    "java.lang.ArithmeticException",
    "java.time.",
)
_WITH_MESSAGE = ("org.apache.kafka.", "io.debezium.")
_MESSAGE_ONLY_IN_JAVA = "Index 1 out of bounds"


def java_plugin(name: str, location: Path) -> JavaPlugin:
    """Return the transform of this class in the jars of a folder."""
    return JavaPlugin(name, "transformation", "3.7.0.Final", location, tuple(sorted(location.glob("*.jar"))))


def differences(plugin: JavaPlugin, config: Mapping[str, str], records: Sequence[SourceRecord | SinkRecord]) -> list[str]:
    """Return a text for each record, or the config, for which the two do not agree."""
    ours = transform_class(plugin.class_name)()
    refused = _refusal(ours, config)
    try:
        theirs = JavaTransforms([{"plugin": reference(plugin), "config": dict(config)}])
    except JavaError as error:
        return [] if _same_error(error, refused) else [f"{config}: Java refuses it: {_shown(error)}; Python: {_shown(refused)}"]
    if refused is not None:
        theirs.close()
        return [f"{config}: only Python refuses it: {_shown(refused)}"]
    try:
        expected = theirs.apply(records)  # type: ignore[type-var]
    finally:
        theirs.close()
    found = []
    for record, wanted in zip(records, expected, strict=True):
        got = _applied(ours, record)
        if not _same(wanted, got):
            found.append(f"{config}\n  of {record}\n  {record.value_schema}\n  Java:   {_shown(wanted)}\n  Python: {_shown(got)}")
    ours.close()
    return found


def recorded(plugin: JavaPlugin, config: Mapping[str, str], records: Sequence[SourceRecord | SinkRecord]) -> list[str]:
    """Return the outcomes of the published class in the form of ``outcomes``."""
    try:
        transforms = JavaTransforms([{"plugin": reference(plugin), "config": dict(config)}])
    except JavaError as error:
        return [_digest(error)]
    try:
        return [_digest(each) for each in transforms.apply(records)]  # type: ignore[type-var]
    finally:
        transforms.close()


def outcomes(name: str, config: Mapping[str, str], records: Sequence[SourceRecord | SinkRecord]) -> list[str]:
    """Return a short text for what our transform makes of each record; only one if it refuses the config."""
    transform = transform_class(name)()
    refused = _refusal(transform, config)
    return [_digest(_applied(transform, record)) for record in records] if refused is None else [_digest(refused)]


def _digest(outcome: Any) -> str:
    """Return an error's message, ``error`` for one whose message is Java's own, or a hash of all parts of a record."""
    if isinstance(outcome, StageFailure):
        outcome = outcome.error
    if isinstance(outcome, (ValueError, TypeError, IndexError, OverflowError)):
        return "error"
    if isinstance(outcome, Exception):
        java = getattr(outcome, "java_class", "")
        return _text(outcome)[:100] if not java or java.startswith(_WITH_MESSAGE) else "error"
    if outcome is None:
        return "dropped"
    topic, partition, timestamp, schemas, values = _parts(outcome)
    described = (topic, partition, timestamp, [_schema_text(schema) for schema in schemas], values)
    return hashlib.sha256(repr(described).encode("utf-8", "backslashreplace")).hexdigest()[:10]


def _schema_text(schema: Schema | None) -> str:
    if schema is None:
        return "null"
    inner = [_schema_text(each) for each in (schema.key_schema, schema.value_schema)]
    fields = [(field.name, _schema_text(field.schema)) for field in schema.fields]
    own = (schema.type.name, schema.optional, schema.name, schema.version, schema.doc, sorted(schema.parameters.items()))
    return repr((own, repr(schema.default), inner, fields))


def _refusal(transform: Transform, config: Mapping[str, str]) -> Exception | None:
    try:
        transform.configure(config)
    except (ConnectError, ValueError, TypeError, IndexError) as error:
        return error
    return None


def _applied(transform: Transform, record: Any) -> Any:
    try:
        return transform.apply(record)
    except (ConnectError, ValueError, TypeError, IndexError, OverflowError) as error:
        return error


def _same(wanted: Any, got: Any) -> bool:
    if isinstance(wanted, StageFailure):
        return isinstance(got, Exception) and _same_error(wanted.error, got)
    if wanted is None or got is None or isinstance(got, Exception):
        return wanted is got
    return _parts(wanted) == _parts(got)


def _same_error(wanted: Exception, got: Exception | None) -> bool:
    if got is None:
        return False
    java = wanted.java_class if isinstance(wanted, JavaError) else ""
    return java.startswith(_WITHOUT_MESSAGE) or _MESSAGE_ONLY_IN_JAVA in str(wanted) or _text(wanted) == _text(got)


def _text(error: Exception) -> str:
    return str(error).replace("java.util.LinkedHashMap", "java.util.HashMap")  # a map of Java's helper, and of Connect's


def _parts(record: Any) -> tuple[Any, ...]:
    schemas = (record.key_schema, record.value_schema, *(header.schema for header in record.headers))
    value = record.value
    if isinstance(value, Struct) and isinstance(content := _content(value), str):
        value = content  # Debezium gave text the schema of a struct
    values = repr((record.key, value, [(header.key, header.value) for header in record.headers]))
    return record.topic, record.kafka_partition, record.timestamp, schemas, values


def _content(struct: Struct) -> Any:
    return struct.values_


def _shown(outcome: Any) -> str:
    if isinstance(outcome, StageFailure):
        outcome = outcome.error
    if isinstance(outcome, Exception):
        return f"{getattr(outcome, 'java_class', type(outcome).__name__)}: {outcome}"
    if outcome is None:
        return "None"
    fields = getattr(outcome.value_schema, "fields", ())
    return f"{outcome} {[(field.name, field.schema, field.schema.optional) for field in fields]}"
