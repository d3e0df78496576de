"""DropHeaders: removes headers by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sluiceway.api import Transform
from sluiceway.api.columns import ColumnBatch, ColumnTransform
from sluiceway.api.transform import R
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.config.validators import UniqueList
from sluiceway.data import Schema

_CONFIG = ConfigDef(
    [
        ConfigKey(
            name="headers",
            type=Type.LIST,
            validator=UniqueList(),
            importance=Importance.HIGH,
            doc="Names of the headers to remove.",
        ),
    ]
)


class DropHeaders(Transform):
    """Removes all headers with the given names, which are case-sensitive."""

    java_class = "org.apache.kafka.connect.transforms.DropHeaders"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _CONFIG

    def configure(self, config: Mapping[str, str]) -> None:
        names = _CONFIG.parse(config)["headers"]
        self._names = frozenset(names) if isinstance(names, list) else frozenset()

    def apply(self, record: R) -> R | Sequence[R] | None:
        kept = tuple(header for header in record.headers if header[0] not in self._names)
        return record if len(kept) == len(record.headers) else record.new_record(headers=kept)

    def column_transform(self, key_schema: Schema | None, value_schema: Schema | None) -> ColumnTransform | None:
        return _unchanged


def _unchanged(batch: ColumnBatch) -> ColumnBatch:
    return batch  # batches have no headers
