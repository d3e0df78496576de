"""Transforms (Connect's SMTs) and predicates. Used on executors, by one thread each.

A custom one is a small class, found by entry point (groups ``sluiceway.transforms``, ``sluiceway.predicates``) or by its
dotted name; it is configured once and closed when the task ends.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

from sluiceway.api.records import SinkRecord, SourceRecord
from sluiceway.config.definition import ConfigDef
from sluiceway.data import Schema

ConnectRecord = SourceRecord | SinkRecord
R = TypeVar("R", SourceRecord, SinkRecord)


class Transform(abc.ABC):
    """Changes records one by one on their way between a task and Kafka."""

    java_class: ClassVar[str | None] = None

    @classmethod
    def config_def(cls) -> ConfigDef:
        """The transform's own options, named as after ``transforms.<alias>.``."""
        return ConfigDef()

    def configure(self, config: Mapping[str, str]) -> None:  # noqa: B027
        """Take the options, prefix removed. Raises ConfigError."""

    @abc.abstractmethod
    def apply(self, record: R) -> R | Sequence[R] | None:
        """Return the record, changed or not; None drops it; a sequence puts several in its place (beyond Connect).

        Never changes the record itself: ``record.new_record(...)`` makes a copy with what is to differ.
        Raises DataError for a record that cannot be transformed.
        """

    def close(self) -> None:  # noqa: B027
        """Release what ``configure`` took."""


class Predicate(abc.ABC):
    """Says whether a transform applies to a record."""

    java_class: ClassVar[str | None] = None

    @classmethod
    def config_def(cls) -> ConfigDef:
        """The predicate's own options, named as after ``predicates.<alias>.``."""
        return ConfigDef()

    def configure(self, config: Mapping[str, str]) -> None:  # noqa: B027
        """Take the options, prefix removed. Raises ConfigError."""

    @abc.abstractmethod
    def test(self, record: ConnectRecord) -> bool: ...

    def close(self) -> None:  # noqa: B027
        """Release what ``configure`` took."""


class Resolved(NamedTuple):
    """What a transform does to the keys or values of one schema: the schema afterwards, and the function for each value.

    ``function(value, record)`` gets a value that is not None (and the record, for its topic, offset and the like) and
    returns the new one. It is None only if ``may_be_null``. The record's own key and value may be those of an earlier stage
    of the chain, so they are not to be looked at; the value is never changed itself.
    """

    schema: Schema | None
    function: Callable[[Any, ConnectRecord], Any]
    may_be_null: bool = False


class KeyOrValueTransform(Transform):
    """A transform of either the key or the value alone, resolved once for each schema.

    A subclass says what it does to a schema with ``resolve``; its ``$Key`` and ``$Value`` forms set ``part``. The chain asks
    once for each schema and keeps the answer, and joins the functions of successive transforms into one.
    """

    part: ClassVar[str]
    """``"key"`` or ``"value"``."""

    @abc.abstractmethod
    def resolve(self, schema: Schema | None) -> Resolved:
        """Return what is done to values of this schema (None: schemaless values). Called only when there is a value.

        Raises DataError (or what Connect raises) if no value of this schema can be transformed.
        """

    def on_null(self, schema: Schema | None) -> tuple[Schema | None, Any]:
        """Return schema and value for a record whose key or value is None; unchanged unless overridden."""
        return schema, None

    def apply(self, record: R) -> R | Sequence[R] | None:
        if self.part == "key":
            schema, value = self._operate(record.key_schema, record.key, record)
            return record.new_record(key_schema=schema, key=value)
        schema, value = self._operate(record.value_schema, record.value, record)
        return record.new_record(value_schema=schema, value=value)

    def _operate(self, schema: Schema | None, value: Any, record: ConnectRecord) -> tuple[Schema | None, Any]:
        if value is None:
            return self.on_null(schema)
        resolved = self.resolve(schema)
        return resolved.schema, resolved.function(value, record)
