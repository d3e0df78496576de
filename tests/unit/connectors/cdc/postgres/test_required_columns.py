"""Values that records cannot have, in columns that are NOT NULL."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pytest

from sluiceway.connectors.cdc.columns import Column
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.postgres.config import postgres_config
from sluiceway.connectors.cdc.postgres.source import SOURCE
from sluiceway.connectors.cdc.postgres.types import TypeRegistry
from sluiceway.connectors.cdc.tables import TableSchema
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.errors import DataError

_CONFIG = {"topic.prefix": "p", "database.hostname": "h", "database.user": "u", "database.password": "x", "database.dbname": "d"}
_TYPES = {"numeric": 1700, "timestamp": 1114, "name": 19, "mood": 9002, "_mood": 9010, "_bit": 1561, "_int4": 1007}
_ELEMENTS = {"_mood": 9002, "_bit": 1560, "_int4": 23}
_INNER = {"bit": 1560, "int4": 23}
_PRECISE = (10 << 16 | 2) + 4
_NANOS = {"time.precision.mode": "nanoseconds"}
_STRINGS = {"decimal.handling.mode": "string"}
_COMPAT = ("debezium", "correct")


def _query(statement: str) -> list[tuple[Any, ...]]:
    if "pg_enum" in statement:
        return [(9002, "sad")]
    names = {**_TYPES, **_INNER}
    return [(oid, name, "e" if name == "mood" else "b", 0, -1, _ELEMENTS.get(name, 0), ",") for name, oid in names.items()]


def _table(declared: str, typmod: int, options: Mapping[str, str], *, optional: bool = False) -> TableSchema:
    config = postgres_config({**_CONFIG, **options})
    field = TypeRegistry(_query, config.settings).resolve(_TYPES[declared], typmod)[1]
    column = Column(name="v", field=field, optional=optional, type_name=declared)
    return config.common.schemas(SOURCE).build(TableId("public", "t"), [column], [])


def _errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]


@pytest.mark.parametrize(
    ("declared", "typmod", "value", "options", "refused"),
    [
        ("numeric", _PRECISE, "NaN", {}, _COMPAT),
        ("numeric", _PRECISE, "Infinity", {}, _COMPAT),
        ("numeric", -1, "-Infinity", {}, _COMPAT),
        ("timestamp", -1, "9999-01-01 00:00:00", _NANOS, _COMPAT),
        ("name", -1, "Zoë", {}, ("debezium",)),
        ("_mood", -1, "{sad,NULL}", {}, ("debezium",)),
        ("_mood", -1, "{{sad},{sad}}", {}, ("debezium",)),
        ("_bit", -1, "{1}", {}, ("debezium",)),
        ("numeric", _PRECISE, "NaN", _STRINGS, ()),
        ("numeric", _PRECISE, "1.50", {}, ()),
        ("timestamp", -1, "9999-01-01 00:00:00", {}, ()),
        ("mood", -1, "added later", {}, ()),
        ("_int4", -1, "{{1},{2}}", {}, ()),
    ],
)
@pytest.mark.parametrize("compat", _COMPAT)
def test_a_converter_refuses_what_records_cannot_have_and_the_log_names_the_column(
    declared: str,
    typmod: int,
    value: str,
    options: dict[str, str],
    refused: tuple[str, ...],
    compat: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    table = _table(declared, typmod, {**options, "sluiceway.cdc.compat": compat})
    converter = JsonConverter()
    converter.configure({"schemas.enable": "false"}, is_key=False)

    rows = [table.value([value]) for _ in range(3)]

    if compat in refused:
        assert [row["v"] for row in rows] == [None] * 3
        with pytest.raises(DataError, match="null value for field that is required"):
            converter.from_connect_data("t", table.value.schema, rows[0])
        [error] = _errors(caplog)
        assert f"Table public.t: records cannot have a value of the column v of type {declared}, which is NOT NULL." in error
        assert value not in error
    else:
        assert converter.from_connect_data("t", table.value.schema, rows[0])
        assert not _errors(caplog)


def test_a_column_that_may_be_null_has_null_instead(caplog: pytest.LogCaptureFixture) -> None:
    table = _table("numeric", _PRECISE, {}, optional=True)

    assert table.value(["NaN"])["v"] is None
    assert not _errors(caplog)
