"""TimestampRouter: renames topics by topic and timestamp."""

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
        if self._format is None:  # a bad pattern fails records, not the config, as in Connect
            self._format = SimpleDateFormat(self._timestamp_format)
        timestamp = self._format.format(record.timestamp)
        topic = self._topic_format.replace("${topic}", record.topic).replace("${timestamp}", timestamp)
        return record.new_record(topic=topic)
