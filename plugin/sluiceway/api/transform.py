"""Base classes of transforms (Connect's SMTs) and predicates. They run on executors; one thread calls each of them.

A custom transform or predicate is found by an entry point (groups ``sluiceway.transforms``, ``sluiceway.predicates``) or by
its dotted path. It is configured once and closed when the task ends.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

from sluiceway.api.columns import ColumnPredicate, ColumnTransform
from sluiceway.api.records import SinkRecord, SourceRecord
from sluiceway.config.definition import ConfigDef
from sluiceway.data import Schema

ConnectRecord = SourceRecord | SinkRecord
R = TypeVar("R", SourceRecord, SinkRecord)


class Transform(abc.ABC):
    """Changes single records between a task and Kafka."""

    java_class: ClassVar[str | None] = None

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Return the definition of the options after the prefix ``transforms.<alias>.``."""
        return ConfigDef()

    def configure(self, config: Mapping[str, str]) -> None:  # noqa: B027
        """Set the options, without their prefix. Raises ConfigError for an invalid value."""

    @abc.abstractmethod
    def apply(self, record: R) -> R | Sequence[R] | None:
        """Return the record, a changed copy, None to filter it out, or a sequence of records (not possible in Connect).

        Must not change the record itself: copy it with ``record.new_record(...)``. Raises DataError for a record that cannot
        be transformed.
        """

    def column_transform(self, key_schema: Schema | None, value_schema: Schema | None) -> ColumnTransform | None:
        """Return the columnar form for records of these schemas, or None if there is none.

        The chain calls this once for each pair of schemas.
        """
        return None

    def close(self) -> None:  # noqa: B027
        """Release the resources that ``configure`` acquired."""


class Predicate(abc.ABC):
    """Decides whether a transform applies to a record."""

    java_class: ClassVar[str | None] = None

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Return the definition of the options after the prefix ``predicates.<alias>.``."""
        return ConfigDef()

    def configure(self, config: Mapping[str, str]) -> None:  # noqa: B027
        """Set the options, without their prefix. Raises ConfigError for an invalid value."""

    @abc.abstractmethod
    def test(self, record: ConnectRecord) -> bool:
        """Return True if the transform applies to the record."""

    def column_predicate(self, key_schema: Schema | None, value_schema: Schema | None) -> ColumnPredicate | None:
        """Return the columnar form for records of these schemas, or None if there is none."""
        return None

    def close(self) -> None:  # noqa: B027
        """Release the resources that ``configure`` acquired."""


class Resolved(NamedTuple):
    """A transform specialized for the keys or values of a schema: the new schema, and the function for each value.

    ``function(value, record)`` returns the new value; it returns None only if ``may_be_null``. ``value`` is not None and must
    not be changed in place. ``record`` gives access to the topic, offset and so on, but its key and value may be those from
    before earlier transforms of the chain, so do not use them.
    """

    schema: Schema | None
    function: Callable[[Any, ConnectRecord], Any]
    may_be_null: bool = False


class KeyOrValueTransform(Transform):
    """A transform of either the key or the value, specialized once for each schema.

    A subclass implements ``resolve``; its ``$Key`` and ``$Value`` variants set ``part``. The chain calls ``resolve`` once for
    each schema, caches the result, and combines the functions of successive transforms.
    """

    part: ClassVar[str]
    """``"key"`` or ``"value"``."""

    @abc.abstractmethod
    def resolve(self, schema: Schema | None) -> Resolved:
        """Return the specialization for values of this schema (None: schemaless). Not called for null values.

        Raises DataError (or the error that Connect raises) if no value of this schema can be transformed.
        """

    def on_null(self, schema: Schema | None) -> tuple[Schema | None, Any]:
        """Return the schema and value for a null key or value. The default changes neither."""
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
