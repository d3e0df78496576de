"""RegexRouter: renames topics by a regular expression."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from sluiceway.api import Transform
from sluiceway.api.columns import ColumnBatch, ColumnTransform, row_form
from sluiceway.api.transform import R
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.config.validators import valid_regex
from sluiceway.data import Schema
from sluiceway.java.regex import compile_java

_CONFIG = ConfigDef(
    [
        ConfigKey(
            name="regex",
            type=Type.STRING,
            validator=valid_regex,
            importance=Importance.HIGH,
            doc="Java regular expression that the whole topic name must match.",
        ),
        ConfigKey(
            name="replacement",
            type=Type.STRING,
            importance=Importance.HIGH,
            doc="New topic name; $1 and ${name} refer to groups of the match.",
        ),
    ]
)

_CACHED_TOPICS = 1000


class RegexRouter(Transform):
    """Renames topics whose whole name matches a Java regular expression."""

    java_class = "org.apache.kafka.connect.transforms.RegexRouter"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _CONFIG

    def configure(self, config: Mapping[str, str]) -> None:
        options = _CONFIG.parse(config)
        self._regex = compile_java(str(options["regex"]))
        self._replacement = str(options["replacement"])
        self._renamed: dict[str, str] = {}

    def apply(self, record: R) -> R | Sequence[R] | None:
        topic = self._new_name(record.topic)
        return record if topic == record.topic else record.new_record(topic=topic)

    def column_transform(self, key_schema: Schema | None, value_schema: Schema | None) -> ColumnTransform | None:
        def route(batch: ColumnBatch) -> ColumnBatch:
            with row_form():  # a replacement may name a group that the pattern lacks
                topic = self._new_name(batch.topic)
            return dataclasses.replace(batch, topic=topic)

        return route

    def _new_name(self, topic: str) -> str:
        renamed = self._renamed.get(topic)
        if renamed is None:
            if len(self._renamed) >= _CACHED_TOPICS:
                self._renamed.clear()
            matches = self._regex.matches(topic)
            renamed = self._renamed[topic] = self._regex.replace_first(topic, self._replacement) if matches else topic
        return renamed
