"""TopicNameMatches: true for records of topics whose names match a pattern."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.api import Predicate
from sluiceway.api.columns import ColumnPredicate
from sluiceway.api.transform import ConnectRecord
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.config.validators import EachOf, NonEmptyString, valid_regex
from sluiceway.data import Schema
from sluiceway.java.regex import compile_java

_CONFIG = ConfigDef(
    [
        ConfigKey(
            name="pattern",
            type=Type.STRING,
            validator=EachOf((NonEmptyString(), valid_regex)),
            importance=Importance.MEDIUM,
            doc="Java regular expression that the whole topic name must match.",
        ),
    ]
)


class TopicNameMatches(Predicate):
    """True for records whose whole topic name matches a Java regular expression."""

    java_class = "org.apache.kafka.connect.transforms.predicates.TopicNameMatches"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _CONFIG

    def configure(self, config: Mapping[str, str]) -> None:
        self._regex = compile_java(str(_CONFIG.parse(config)["pattern"]))
        self._topic: str | None = None
        self._matches = False

    def test(self, record: ConnectRecord) -> bool:
        if record.topic is not self._topic:  # consecutive records mostly share the same string object
            self._topic = record.topic
            self._matches = self._regex.matches(record.topic)
        return self._matches

    def column_predicate(self, key_schema: Schema | None, value_schema: Schema | None) -> ColumnPredicate | None:
        from sluiceway.transforms.columns.predicates import same_for_all

        return lambda batch: same_for_all(batch, self._regex.matches(batch.topic))
