"""HasHeaderKey: true for records with a header of a given name."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.api import Predicate
from sluiceway.api.columns import ColumnPredicate
from sluiceway.api.transform import ConnectRecord
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.config.validators import NonEmptyString
from sluiceway.data import Schema

_CONFIG = ConfigDef(
    [ConfigKey(name="name", type=Type.STRING, validator=NonEmptyString(), importance=Importance.MEDIUM, doc="Header name.")]
)


class HasHeaderKey(Predicate):
    """True for records with at least one header of the given name."""

    java_class = "org.apache.kafka.connect.transforms.predicates.HasHeaderKey"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _CONFIG

    def configure(self, config: Mapping[str, str]) -> None:
        self._name = str(_CONFIG.parse(config)["name"])

    def test(self, record: ConnectRecord) -> bool:
        name = self._name
        return any(header[0] == name for header in record.headers)

    def column_predicate(self, key_schema: Schema | None, value_schema: Schema | None) -> ColumnPredicate | None:
        from sluiceway.transforms.columns.predicates import same_for_all

        return lambda batch: same_for_all(batch, False)  # batches have no headers
