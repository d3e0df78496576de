"""Serializes tables for schema history records (JSON) and schema change records (structs), and reads them back. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.ddl.model import ColumnDefinition, TableDefinition
from sluiceway.connectors.cdc.mysql.ddl.statements import ChangeType, TableChange
from sluiceway.data import Schema, Struct
from sluiceway.data.schema import (
    INT32_SCHEMA,
    OPTIONAL_BOOLEAN_SCHEMA,
    OPTIONAL_INT32_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
)

_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_STRUCTURE = frozenset({ChangeType.CREATE, ChangeType.ALTER, ChangeType.DROP})

_SCHEMA = "io.debezium.connector.schema."
_STRINGS = Schema.array(STRING_SCHEMA, optional=True)

COLUMN = Schema.struct(
    [
        ("name", STRING_SCHEMA),
        ("jdbcType", INT32_SCHEMA),
        ("nativeType", OPTIONAL_INT32_SCHEMA),
        ("typeName", STRING_SCHEMA),
        ("typeExpression", OPTIONAL_STRING_SCHEMA),
        ("charsetName", OPTIONAL_STRING_SCHEMA),
        ("length", OPTIONAL_INT32_SCHEMA),
        ("scale", OPTIONAL_INT32_SCHEMA),
        ("position", INT32_SCHEMA),
        ("optional", OPTIONAL_BOOLEAN_SCHEMA),
        ("autoIncremented", OPTIONAL_BOOLEAN_SCHEMA),
        ("generated", OPTIONAL_BOOLEAN_SCHEMA),
        ("comment", OPTIONAL_STRING_SCHEMA),
        ("defaultValueExpression", OPTIONAL_STRING_SCHEMA),
        ("enumValues", _STRINGS),
    ],
    name=f"{_SCHEMA}Column",
    version=1,
)
TABLE = Schema.struct(
    [
        ("defaultCharsetName", OPTIONAL_STRING_SCHEMA),
        ("primaryKeyColumnNames", _STRINGS),
        ("columns", Schema.array(COLUMN)),
        ("comment", OPTIONAL_STRING_SCHEMA),
    ],
    name=f"{_SCHEMA}Table",
    version=1,
    optional=True,
)
CHANGE = Schema.struct([("type", STRING_SCHEMA), ("id", STRING_SCHEMA), ("table", TABLE)], name=f"{_SCHEMA}Change", version=1)


def quoted_id(table: TableId) -> str:
    """Return a table's id as schema changes contain it: ``"database"."table"``."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in table)


def parse_id(text: str) -> TableId:
    """Return the table of a quoted id; Debezium's ids of other databases may have three parts."""
    parts = [part.replace('""', '"') for part in _QUOTED.findall(text)]
    return TableId(parts[0], parts[-1])


def _typed_changes(change: TableChange) -> list[tuple[ChangeType, TableId]]:
    if change.table is None or change.type not in _STRUCTURE:
        return []
    return [(change.type, change.table)]


def change_structs(change: TableChange) -> list[Struct]:
    """Return ``tableChanges`` of a schema change record."""
    structs = []
    for type_, table in _typed_changes(change):
        definition = None if type_ is ChangeType.DROP else change.definition
        value = None if definition is None else _table_struct(definition)
        structs.append(Struct.of(CHANGE, [type_.value, quoted_id(table), value]))
    return structs


def _table_struct(table: TableDefinition) -> Struct:
    columns = [
        Struct.of(
            COLUMN,
            [
                column.name,
                column.jdbc_type,
                None,
                column.type_name,
                column.type_name,
                column.charset,
                column.length,
                column.scale,
                position,
                column.optional,
                column.auto_incremented,
                column.auto_incremented,
                column.comment,
                column.default,
                list(column.enum_values) or None,
            ],
        )
        for position, column in enumerate(table.columns, 1)
    ]
    return Struct.of(TABLE, [table.charset, list(table.primary_key), columns, table.comment])


def change_documents(change: TableChange) -> list[dict[str, Any]]:
    """Return ``tableChanges`` of a schema history record."""
    documents = []
    for type_, table in _typed_changes(change):
        document: dict[str, Any] = {"type": type_.value, "id": quoted_id(table)}
        if change.previous is not None:
            document["previousId"] = quoted_id(change.previous)
        if type_ is not ChangeType.DROP and change.definition is not None:
            document["table"] = table_document(change.definition)
            document["comment"] = change.definition.comment
        documents.append(document)
    return documents


def table_document(table: TableDefinition) -> dict[str, Any]:
    return {
        "defaultCharsetName": table.charset,
        "primaryKeyColumnNames": list(table.primary_key),
        "columns": [_column_document(column, position) for position, column in enumerate(table.columns, 1)],
        "attributes": [],
    }


def _column_document(column: ColumnDefinition, position: int) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": column.name,
        "jdbcType": column.jdbc_type,
        "typeName": column.type_name,
        "typeExpression": column.type_name,
        "charsetName": column.charset,
    }
    if column.length is not None:
        document["length"] = column.length
    if column.scale is not None:
        document["scale"] = column.scale
    document.update(
        position=position,
        optional=column.optional,
        autoIncremented=column.auto_incremented,
        generated=column.auto_incremented,
        comment=column.comment,
        hasDefaultValue=column.has_default,
    )
    if column.default is not None:
        document["defaultValueExpression"] = column.default
    document["enumValues"] = list(column.enum_values)
    return document


def read_table(table: TableId, document: Mapping[str, Any], comment: str | None = None) -> TableDefinition:
    """Return the table of a schema history record, which Debezium or this connector wrote."""
    columns = sorted(document.get("columns") or [], key=lambda column: int(column["position"]))
    return TableDefinition(
        id=table,
        columns=tuple(_read_column(column) for column in columns),
        primary_key=tuple(document.get("primaryKeyColumnNames") or ()),
        charset=document.get("defaultCharsetName"),
        comment=comment,
    )


def _read_column(document: Mapping[str, Any]) -> ColumnDefinition:
    return ColumnDefinition(
        name=str(document["name"]),
        jdbc_type=int(document["jdbcType"]),
        type_name=str(document["typeName"]),
        length=document.get("length"),
        scale=document.get("scale"),
        charset=document.get("charsetName"),
        optional=bool(document.get("optional", True)),
        auto_incremented=bool(document.get("autoIncremented")),
        comment=document.get("comment"),
        has_default=bool(document.get("hasDefaultValue")),
        default=document.get("defaultValueExpression"),
        enum_values=tuple(document.get("enumValues") or ()),
    )
