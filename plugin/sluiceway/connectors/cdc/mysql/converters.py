"""Debezium's custom converters for columns (``converters``), as far as this connector has them. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sluiceway.connectors.cdc.columns import FieldType
from sluiceway.connectors.cdc.filters import Matcher, TableId, matcher, split_list
from sluiceway.connectors.cdc.mysql.ddl.model import ColumnDefinition
from sluiceway.data.schema import BOOLEAN_SCHEMA
from sluiceway.errors import ConfigError

_TINYINT_TO_BOOLEAN = frozenset(
    {
        "io.debezium.connector.binlog.converters.TinyIntOneToBooleanConverter",
        "io.debezium.connector.mysql.converters.TinyIntOneToBooleanConverter",
        "io.debezium.connector.mariadb.converters.TinyIntOneToBooleanConverter",
    }
)


@dataclass(frozen=True, slots=True)
class TinyIntOneToBoolean:
    """Makes TINYINT(1) columns booleans. ``selector`` chooses columns by ``database.table.column``; None chooses all."""

    selector: Matcher | None
    checks_length: bool

    def field(self, table: TableId, column: ColumnDefinition) -> FieldType | None:
        """Return the field type, or None for a column that keeps its own."""
        if column.type_name not in ("TINYINT", "TINYINT UNSIGNED") or (self.checks_length and column.length != 1):
            return None
        if self.selector is not None and not self.selector(f"{table}.{column.name}"):
            return None
        return FieldType(BOOLEAN_SCHEMA, _positive, False, False, _positive)


def _positive(value: Any) -> bool:
    return int(value) > 0


def converters(config: Mapping[str, str]) -> list[TinyIntOneToBoolean]:
    """Return the converters of a config.

    Raises:
        ConfigError: a converter has a class that this connector does not have.
    """
    found = []
    for name in split_list(config.get("converters")):
        class_name = config.get(f"{name}.type", "").strip()
        if class_name not in _TINYINT_TO_BOOLEAN:
            raise ConfigError(
                f"The converter '{name}' has the class '{class_name}', which this connector does not have. "
                "Use io.debezium.connector.binlog.converters.TinyIntOneToBooleanConverter, or remove it from 'converters'."
            )
        checks = config.get(f"{name}.length.checker", "true").strip().lower() in ("true", "")
        found.append(TinyIntOneToBoolean(matcher(config.get(f"{name}.selector")), checks))
    return found
