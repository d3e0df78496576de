"""TimestampBetween: true for records of a window of time."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.api import Predicate
from sluiceway.api.transform import ConnectRecord
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type

_CONFIG = ConfigDef(
    [
        ConfigKey(
            name="from.ms",
            type=Type.LONG,
            importance=Importance.HIGH,
            doc="Where the window begins, in milliseconds since the epoch; that moment belongs to it.",
        ),
        ConfigKey(
            name="to.ms",
            type=Type.LONG,
            importance=Importance.HIGH,
            doc="Where the window ends, in milliseconds since the epoch; that moment does not belong to it.",
        ),
    ]
)


class TimestampBetween(Predicate):
    """Holds where the record's timestamp lies in a window; never for a record without one."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _CONFIG

    def configure(self, config: Mapping[str, str]) -> None:
        values = _CONFIG.parse(config)
        self._from, self._to = int(str(values["from.ms"])), int(str(values["to.ms"]))

    def test(self, record: ConnectRecord) -> bool:
        return record.timestamp is not None and self._from <= record.timestamp < self._to
