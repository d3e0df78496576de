"""TimestampRouter: makes topics of topics and timestamps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sluiceway.api import Transform
from sluiceway.api.transform import R
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.errors import DataError
from sluiceway.java.dates.simple_date_format import SimpleDateFormat

_CONFIG = ConfigDef(
    [
        ConfigKey(
            name="topic.format",
            type=Type.STRING,
            default="${topic}-${timestamp}",
            importance=Importance.HIGH,
            doc="Pattern of the new name, in which ${topic} is the old one and ${timestamp} the formatted moment.",
        ),
        ConfigKey(
            name="timestamp.format",
            type=Type.STRING,
            default="yyyyMMdd",
            importance=Importance.HIGH,
            doc="How the moment is formatted, as a pattern of Java's SimpleDateFormat.",
        ),
    ]
)


class TimestampRouter(Transform):
    """Changes a record's topic to one made of the original topic and the record's timestamp, in UTC."""

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
        if self._format is None:  # a bad pattern fails records, not the config: Connect looks at it no sooner
            self._format = SimpleDateFormat(self._timestamp_format)
        timestamp = self._format.format(record.timestamp)
        topic = self._topic_format.replace("${topic}", record.topic).replace("${timestamp}", timestamp)
        return record.new_record(topic=topic)
