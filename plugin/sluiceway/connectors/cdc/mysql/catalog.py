"""Turns table definitions into the columns of records, and caches each table's schema and row functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sluiceway.connectors.cdc.columns import Column
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.converters import converters
from sluiceway.connectors.cdc.mysql.ddl.model import ColumnDefinition, TableDefinition
from sluiceway.connectors.cdc.mysql.defaults import default_value
from sluiceway.connectors.cdc.mysql.fields import FieldSettings, field_type
from sluiceway.connectors.cdc.tables import TableSchema, TableSchemas


class Catalog:
    """The schemas of tables, built when they are first needed and again when the definition changed."""

    def __init__(self, schemas: TableSchemas, settings: FieldSettings, config: Mapping[str, str]) -> None:
        self._schemas = schemas
        self._settings = settings
        self._converters = converters(config)
        self._built: dict[TableId, tuple[TableDefinition, TableSchema]] = {}

    def schema(self, table: TableDefinition) -> TableSchema:
        """Return the schema of a table."""
        found = self._built.get(table.id)
        if found is not None and found[0] is table:
            return found[1]
        columns = [self._column(table.id, column) for column in table.columns]
        built = self._schemas.build(table.id, columns, table.primary_key)
        self._built[table.id] = (table, built)
        return built

    def _column(self, table: TableId, column: ColumnDefinition) -> Column:
        custom = (converter.field(table, column) for converter in self._converters)
        field = next((found for found in custom if found is not None), None) or field_type(column, self._settings)
        if field is not None and column.comment:  # kept only with include.schema.comments
            field = replace(field, schema=field.schema.replace(doc=column.comment))
        return Column(
            name=column.name,
            field=field,
            optional=column.optional,
            type_name=column.type_name,
            length=column.length,
            scale=column.scale,
            character=column.uses_charset,
            default=None if field is None else default_value(column, field, self._settings),
            comment=column.comment,
        )
