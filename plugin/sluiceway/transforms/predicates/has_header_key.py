"""HasHeaderKey: true for records that have a header of a name."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.api import Predicate
from sluiceway.api.transform import ConnectRecord
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.config.validators import NonEmptyString

_CONFIG = ConfigDef(
    [ConfigKey(name="name", type=Type.STRING, validator=NonEmptyString(), importance=Importance.MEDIUM, doc="What to look for.")]
)


class HasHeaderKey(Predicate):
    """Holds where a header has the given name, whatever its value."""

    java_class = "org.apache.kafka.connect.transforms.predicates.HasHeaderKey"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _CONFIG

    def configure(self, config: Mapping[str, str]) -> None:
        self._name = str(_CONFIG.parse(config)["name"])

    def test(self, record: ConnectRecord) -> bool:
        name = self._name
        return any(header[0] == name for header in record.headers)
