"""TimestampRouter: renames topics by topic and timestamp."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from sluiceway.api import Transform
from sluiceway.api.columns import ColumnBatch, ColumnTransform
from sluiceway.api.transform import R
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.data import Schema
from sluiceway.errors import DataError
from sluiceway.java.dates.simple_date_format import SimpleDateFormat

_CONFIG = ConfigDef(
    [
        ConfigKey(
            name="topic.format",
            type=Type.STRING,
            default="${topic}-${timestamp}",
            importance=Importance.HIGH,
            doc="New topic name; ${topic} is the old name, ${timestamp} the formatted timestamp.",
        ),
        ConfigKey(
            name="timestamp.format",
            type=Type.STRING,
            default="yyyyMMdd",
            importance=Importance.HIGH,
            doc="Pattern of the timestamp for Java's SimpleDateFormat.",
        ),
    ]
)


class TimestampRouter(Transform):
    """Sets a record's topic from the original topic and the record's timestamp in UTC."""

    java_class = "org.apache.kafka.connect.transforms.TimestampRouter"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _CONFIG

    def configure(self, config: Mapping[str, str]) -> None:
        options = _CONFIG.parse(config)
        self._topic_format = str(options["topic.format"])
        self._timestamp_format = str(options["timestamp.format"])
        self._format: SimpleDateFormat | None = None

    def apply(self, record: R) -> R | Sequence[R] | None:
        if record.timestamp is None:
            raise DataError(f"Timestamp missing on record: {record}")
        return record.new_record(topic=self._new_name(record.topic, self._text(record.timestamp)))

    def column_transform(self, key_schema: Schema | None, value_schema: Schema | None) -> ColumnTransform | None:
        from sluiceway.transforms.columns.timestamp_router import common_text

        def route(batch: ColumnBatch) -> ColumnBatch:
            text = common_text(batch, self._timestamp_format, self._text)
            return batch if text is None else dataclasses.replace(batch, topic=self._new_name(batch.topic, text))

        return route

    def _text(self, timestamp: int) -> str:
        if self._format is None:  # a bad pattern fails records, not the config, as in Connect
            self._format = SimpleDateFormat(self._timestamp_format)
        return self._format.format(timestamp)

    def _new_name(self, topic: str, timestamp: str) -> str:
        return self._topic_format.replace("${topic}", topic).replace("${timestamp}", timestamp)
