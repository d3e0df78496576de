"""InsertHeader: adds a header with a constant value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sluiceway.api import Transform
from sluiceway.api.transform import R
from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.data import Header
from sluiceway.data.values import parse_string
from sluiceway.errors import ConfigError


def _not_null(name: str, value: ConfigValue) -> None:
    if value is None:
        raise ConfigError(name, None, "entry must be non null")


_CONFIG = ConfigDef(
    [
        ConfigKey(
            name="header",
            type=Type.STRING,
            validator=_not_null,
            importance=Importance.HIGH,
            doc="Name of the header to add.",
        ),
        ConfigKey(
            name="value.literal",
            type=Type.STRING,
            validator=_not_null,
            importance=Importance.HIGH,
            doc="Value of the header. The type is inferred from the text: number, boolean, date, list, map or string.",
        ),
    ]
)


class InsertHeader(Transform):
    """Adds a header with a constant value to each record; the type of the value is inferred from the text."""

    java_class = "org.apache.kafka.connect.transforms.InsertHeader"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _CONFIG

    def configure(self, config: Mapping[str, str]) -> None:
        options = _CONFIG.parse(config)
        schema, value = parse_string(str(options["value.literal"]))
        self._header = Header(str(options["header"]), value, schema)

    def apply(self, record: R) -> R | Sequence[R] | None:
        return record.new_record(headers=(*record.headers, self._header))
