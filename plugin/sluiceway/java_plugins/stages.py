"""Java transforms, predicates and converters as Python classes, for chains in which other stages run in Python.

``classes`` makes a subclass for each Java class. Records and values cross to the Java process in batches: the runtime passes
whole batches to runs of Java transforms, and gives converters a batch ahead of its single conversions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from sluiceway.api import Converter, HeaderConverter, Predicate, SchemaAndValue, SinkRecord, Transform
from sluiceway.api.transform import ConnectRecord, R
from sluiceway.data import Schema
from sluiceway.errors import ConnectError, DataError
from sluiceway.java_plugins.errors import JavaError, java_error
from sluiceway.java_plugins.host import JavaObject
from sluiceway.java_plugins.hosts import PluginLocation, current_slot, reference
from sluiceway.java_plugins.records import record_of, rows_of
from sluiceway.java_plugins.values import Values

Spec = Mapping[str, object]
"""A plugin and its config, as requests describe it."""


class StageFailure(NamedTuple):
    """The exception of a transform for a record, and the record's index; or that the record cannot be passed to Java."""

    step: int
    error: Exception


class _JavaObject:
    """An object in the Java process of the calling thread's task, and the schemas that it knows."""

    def __init__(self, kind: str, args: object) -> None:
        slot = current_slot()
        self._object: JavaObject = slot.host().new(kind, args, context=slot.context)
        self._values = Values()

    def rows(self, method: str, args: object, rows: Callable[[Values], Sequence[Any]]) -> tuple[Values, list[Any]]:
        """Call a method with rows. Return the answer's rows, in which a tuple describes an error, and what reads their values."""
        values = self._values
        _, body = self._object.call_for_bytes(method, args, values.dumps(lambda: rows(values)))
        return values, values.loads(body)

    def close(self) -> None:
        try:
            self._object.call("close")
        finally:
            self._object.delete()


class JavaTransforms:
    """Successive transforms, with their predicates, that a batch passes through in one call. Not thread-safe."""

    def __init__(self, steps: Sequence[Spec]) -> None:
        """Create and configure the plugins. Raises JavaError for what their ``configure`` throws."""
        self._java = _JavaObject("transforms", {"transforms": list(steps)})

    def apply(self, records: Sequence[R]) -> list[R | StageFailure | None]:
        """Return for each record what it was transformed into, None if it was dropped, or what a transform threw for it."""
        if not records:
            return []
        sink = isinstance(records[0], SinkRecord)
        try:
            values, rows = self._java.rows("apply", {"sink": sink}, lambda values: rows_of(values, records))
        except DataError as error:  # an invalid value
            if len(records) == 1:
                return [StageFailure(0, error)]
            return [outcome for record in records for outcome in self.apply([record])]
        return [_outcome(values, row, record) for row, record in zip(rows, records, strict=True)]

    def close(self) -> None:
        """Close the plugins and end their thread."""
        self._java.close()


def _outcome(values: Values, row: Any, record: Any) -> Any:
    if row is None:
        return None
    if isinstance(row, tuple):
        return StageFailure(row[0], java_error(row[1]))
    return record_of(values, row, record)


class _Stage:
    """A transform or predicate, which keeps its config until Java needs it."""

    plugin: ClassVar[PluginLocation]
    _config: Mapping[str, str] = MappingProxyType({})

    def configure(self, config: Mapping[str, str]) -> None:
        self._config = dict(config)

    @property
    def spec(self) -> Spec:
        """The plugin and its config."""
        return {"plugin": reference(self.plugin), "config": dict(self._config)}


class JavaTransform(_Stage, Transform):
    """A Java transform. Single records are slow: the runtime joins Java transforms to ``JavaTransforms``."""

    _single: JavaTransforms | None = None

    def apply(self, record: R) -> R | Sequence[R] | None:
        if self._single is None:
            self._single = JavaTransforms([self.spec])
        outcome = self._single.apply([record])[0]
        if isinstance(outcome, StageFailure):
            raise outcome.error
        return outcome

    def close(self) -> None:
        single, self._single = self._single, None
        if single is not None:
            single.close()


class JavaPredicate(_Stage, Predicate):
    """A Java predicate. Its ``test`` is called only for transforms in Python; those in Java take it along."""

    _java: _JavaObject | None = None

    def test(self, record: ConnectRecord) -> bool:
        if self._java is None:
            self._java = _JavaObject("transforms", {"predicate": self.spec})
        _, rows = self._java.rows("test", {"sink": isinstance(record, SinkRecord)}, lambda values: rows_of(values, [record]))
        if isinstance(rows[0], tuple):
            raise java_error(rows[0][1])
        return bool(rows[0])

    def close(self) -> None:
        java, self._java = self._java, None
        if java is not None:
            java.close()


class _Conversions:
    """A Java converter's object, and the results of the batch that was converted ahead."""

    def __init__(self, plugin: PluginLocation, config: Mapping[str, str], kind: str) -> None:
        self._java = _JavaObject("converter", {"plugin": reference(plugin), "config": dict(config), "type": kind})
        self._decoded: dict[tuple[str, bytes | None], Any] = {}
        self._encoded: dict[tuple[str, Schema | None, int], Any] = {}
        self._kept: Sequence[Any] = ()  # the values whose ids are keys, which must not be reused meanwhile

    def decode_ahead(self, topics: Mapping[str, Sequence[bytes | None]]) -> None:
        self._decoded = {}
        for topic, data in topics.items():
            different = list(dict.fromkeys(data))
            for each, found in zip(different, self._to(topic, None, different), strict=True):
                self._decoded[topic, each] = found

    def encode_ahead(self, topics: Mapping[str, Sequence[tuple[Schema | None, Any]]]) -> None:
        self._encoded = {}
        self._kept = list(topics.values())
        for topic, values in topics.items():
            try:
                results = self._from(topic, None, values)
            except DataError:  # an invalid value: its own conversion reports it
                continue
            for (schema, value), found in zip(values, results, strict=True):
                self._encoded[topic, schema, id(value)] = found

    def decode(self, topic: str, data: bytes | None, header: str | None = None) -> SchemaAndValue:
        found: SchemaAndValue
        if header is None and (topic, data) in self._decoded:
            found = self._once(self._decoded, (topic, data))
        else:
            found = _raised(self._to(topic, header, [data])[0])
        return found

    def encode(self, topic: str, schema: Schema | None, value: Any, header: str | None = None) -> bytes | None:
        found: bytes | None
        if header is None and (topic, schema, id(value)) in self._encoded:
            found = self._once(self._encoded, (topic, schema, id(value)))
        else:
            found = _raised(self._from(topic, header, [(schema, value)])[0])
        return found

    @staticmethod
    def _once(known: dict[Any, Any], key: Any) -> Any:
        """Return a result; forget an error, because a retry must convert again."""
        if isinstance(known[key], JavaError):
            raise known.pop(key)
        return known[key]

    def _to(self, topic: str, header: str | None, data: Sequence[bytes | None]) -> list[Any]:
        values, rows = self._java.rows("to", {"topic": topic}, lambda _: [(header, each) for each in data])
        return [java_error(row[1]) if isinstance(row, tuple) else SchemaAndValue(*values.value(*row)) for row in rows]

    def _from(self, topic: str, header: str | None, pairs: Sequence[tuple[Schema | None, Any]]) -> list[Any]:
        _, rows = self._java.rows("from", {"topic": topic}, lambda values: [(header, *values.plain(*pair)) for pair in pairs])
        return [java_error(row[1]) if isinstance(row, tuple) else row for row in rows]

    def close(self) -> None:
        self._java.close()


def _raised(found: Any) -> Any:
    if isinstance(found, JavaError):
        raise found
    return found


class _JavaConverter:
    """Base class of Java converters of keys, values and headers."""

    plugin: ClassVar[PluginLocation]
    _conversions: _Conversions | None = None

    def for_preview(self) -> None:
        """Raise ConnectError: a Java converter may register schemas."""
        raise ConnectError(f"{self.plugin.class_name} is a Java converter. Previews do not run those.")

    def _configure(self, config: Mapping[str, str], kind: str) -> None:
        self._conversions = _Conversions(self.plugin, config, kind)

    @property
    def _configured(self) -> _Conversions:
        if self._conversions is None:
            raise ConnectError(f"{self.plugin.class_name} is used before it is configured.")
        return self._conversions

    def close(self) -> None:
        conversions, self._conversions = self._conversions, None
        if conversions is not None:
            conversions.close()


class JavaConverter(_JavaConverter, Converter):
    """A Java converter of keys or values."""

    def configure(self, config: Mapping[str, str], *, is_key: bool = False) -> None:
        self._configure(config, "key" if is_key else "value")

    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        return self._configured.encode(topic, schema, value)

    def to_connect_data(self, topic: str, data: bytes | None) -> SchemaAndValue:
        return self._configured.decode(topic, data)

    def decode_ahead(self, topics: Mapping[str, Sequence[bytes | None]]) -> None:
        """Convert the bytes of a batch, by topic. The conversions that follow return the results."""
        self._configured.decode_ahead(topics)

    def encode_ahead(self, topics: Mapping[str, Sequence[tuple[Schema | None, Any]]]) -> None:
        """Convert the values of a batch, by topic. The conversions that follow return the results."""
        self._configured.encode_ahead(topics)


class JavaHeaderConverter(_JavaConverter, HeaderConverter):
    """A Java header converter."""

    def configure(self, config: Mapping[str, str]) -> None:
        self._configure(config, "header")

    def from_connect_header(self, topic: str, key: str, schema: Schema | None, value: Any) -> bytes | None:
        return self._configured.encode(topic, schema, value, key)

    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue | None:
        return self._configured.decode(topic, data, key)
