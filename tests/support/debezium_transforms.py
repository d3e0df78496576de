"""Sends records through one of Debezium's transforms in Java and ours, and lists the differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sluiceway.api import SinkRecord, SourceRecord, Transform
from sluiceway.data import Struct
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
