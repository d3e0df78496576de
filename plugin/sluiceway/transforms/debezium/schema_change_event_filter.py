"""SchemaChangeEventFilter: drops records that describe some kinds of schema changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sluiceway.api import Transform
from sluiceway.api.transform import R
from sluiceway.config.definition import ConfigDef, Importance, Type, Width
from sluiceway.data import Type as SchemaType
from sluiceway.java.blanks import trim
from sluiceway.transforms.debezium.envelope import cast_to_struct, is_schema_change, typed
from sluiceway.transforms.debezium.options import Options, config_def, option, required
from sluiceway.transforms.util.mappings import java_split
from sluiceway.transforms.util.requirements import require_struct

_EXCLUDED = "schema.change.event.exclude.list"
_DATABASE = "DATABASE"
_KINDS = ("CREATE", "ALTER", "DROP", "TRUNCATE", _DATABASE)
_OPTIONS = (
    option(
        _EXCLUDED,
        Type.STRING,
        "Schema change event exclude list",
        f"Kinds of schema changes to drop, separated by commas: {', '.join(_KINDS)}. DATABASE is a change of no table.",
        importance=Importance.HIGH,
        width=Width.SHORT,
        checks=(required,),
    ),
)
_CONFIG = config_def(_OPTIONS)


class SchemaChangeEventFilter(Transform):
    """Drops records of the schema change topic by the kind of their change."""

    java_class = "io.debezium.transforms.SchemaChangeEventFilter"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _CONFIG

    def configure(self, config: Mapping[str, str]) -> None:
        options = Options(_OPTIONS, config)
        options.require_valid()
        self._excluded = {_kind(trim(each)) for each in java_split(options.text(_EXCLUDED) or "", ",")}

    def apply(self, record: R) -> R | Sequence[R] | None:
        if record.value is None or not is_schema_change(record.value_schema):
            return record
        value = require_struct(record.value, record.value_schema, "Read schema change event to filter")
        changes = typed(value, "tableChanges", SchemaType.ARRAY)
        if changes is None:
            return None
        kind = _kind(cast_to_struct(changes[0])["type"]) if changes else _DATABASE
        return None if kind in self._excluded else record


def _kind(name: str | None) -> str:
    if name is None:
        raise TypeError("The first table change has no type.")
    if name not in _KINDS:
        raise ValueError(f"No enum constant io.debezium.schema.SchemaChangeEvent.SchemaChangeEventType.{name}")
    return name
