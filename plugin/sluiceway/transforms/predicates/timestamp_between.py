"""TimestampBetween: true for records whose timestamp is in a time range."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.api import Predicate
from sluiceway.api.columns import ColumnPredicate
from sluiceway.api.transform import ConnectRecord
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.data import Schema

_CONFIG = ConfigDef(
    [
        ConfigKey(
            name="from.ms",
            type=Type.LONG,
            importance=Importance.HIGH,
            doc="Start of the time range in milliseconds since the epoch, inclusive.",
        ),
        ConfigKey(
            name="to.ms",
            type=Type.LONG,
            importance=Importance.HIGH,
            doc="End of the time range in milliseconds since the epoch, exclusive.",
        ),
    ]
)


class TimestampBetween(Predicate):
    """True for records whose timestamp is in a time range; false for records without a timestamp."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _CONFIG

    def configure(self, config: Mapping[str, str]) -> None:
        values = _CONFIG.parse(config)
        self._from, self._to = int(str(values["from.ms"])), int(str(values["to.ms"]))

    def test(self, record: ConnectRecord) -> bool:
        return record.timestamp is not None and self._from <= record.timestamp < self._to

    def column_predicate(self, key_schema: Schema | None, value_schema: Schema | None) -> ColumnPredicate | None:
        from sluiceway.transforms.columns.predicates import timestamps_between

        return lambda batch: timestamps_between(batch, self._from, self._to)
