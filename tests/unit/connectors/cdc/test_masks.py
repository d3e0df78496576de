"""What truncations, masks, and propagated types do to columns of every type: as recorded of Debezium 3.7 and 3.5."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from sluiceway.connectors.cdc.columns import Column, ColumnRules, FieldType
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.binlog.temporal import Calendar
from sluiceway.connectors.cdc.mysql.catalog import Catalog
from sluiceway.connectors.cdc.mysql.config import source_config
from sluiceway.connectors.cdc.mysql.ddl.model import Tables
from sluiceway.connectors.cdc.mysql.ddl.statements import apply_statement
from sluiceway.connectors.cdc.mysql.fields import FieldSettings
from sluiceway.connectors.cdc.mysql.offsets import LogPosition
from sluiceway.connectors.cdc.postgres.catalog import CatalogColumn, CatalogTable, snapshot_columns
from sluiceway.connectors.cdc.postgres.config import postgres_config
from sluiceway.connectors.cdc.postgres.source import SOURCE
from sluiceway.connectors.cdc.postgres.types import TypeRegistry
from sluiceway.data import Schema, Struct, Type
from sluiceway.data.schema import STRING_SCHEMA
from unit.connectors.cdc.test_option_checks import MARIADB as MARIADB_CONFIG
from unit.connectors.cdc.test_option_checks import POSTGRESQL as POSTGRES_CONFIG

_Read = Callable[[str, Mapping[str, str]], tuple[Schema, Any]]

_CUT, _CUT_BYTES, _MARKED, _SHORT = "cut", "cut bytes", "marked", "short"
"""What ``column.truncate.to.3.chars`` does: it cuts texts or bytes, only adds its parameter, or leaves a short column."""

# The catalog's name, type modifier, kind, base, a text as the log has it, and what a truncation and a mask do to it.
POSTGRESQL: dict[str, tuple[str, int, str, str, str, str, bool]] = {
    "boolean": ("bool", -1, "b", "", "t", _SHORT, False),
    "smallint": ("int2", -1, "b", "", "12345", _MARKED, False),
    "int": ("int4", -1, "b", "", "1234567", _MARKED, False),
    "bigint": ("int8", -1, "b", "", "12345678901", _MARKED, False),
    "oid": ("oid", -1, "b", "", "12345", _MARKED, False),
    "real": ("float4", -1, "b", "", "1234.5", _MARKED, False),
    "double precision": ("float8", -1, "b", "", "12345.678", _MARKED, False),
    "numeric": ("numeric", -1, "b", "", "12345.678", _SHORT, False),
    "numeric(12,2)": ("numeric", (12 << 16) + 2 + 4, "b", "", "12345.67", _MARKED, False),
    "numeric(3,1)": ("numeric", (3 << 16) + 1 + 4, "b", "", "12.3", _SHORT, False),
    "money": ("money", -1, "b", "", "$1,234.56", _MARKED, False),
    "char(1)": ("bpchar", 5, "b", "", "z", _SHORT, True),
    "char(8)": ("bpchar", 12, "b", "", "żółw    ", _CUT, True),
    "varchar(20)": ("varchar", 24, "b", "", "zażółć", _CUT, True),
    "varchar(3)": ("varchar", 7, "b", "", "abc", _SHORT, True),
    "varchar": ("varchar", -1, "b", "", "abcdefgh", _CUT, True),
    "text": ("text", -1, "b", "", "abcdefgh", _CUT, True),
    '"char"': ("char", -1, "b", "", "q", _SHORT, True),
    "bpchar": ("bpchar", -1, "b", "", "abcdef", _CUT, True),
    "citext": ("citext", -1, "b", "", "AbCdEf", _CUT, False),
    "uuid": ("uuid", -1, "b", "", "11111111-2222-3333-4444-555555555555", _CUT, False),
    "json": ("json", -1, "b", "", '{"a": 1}', _CUT, False),
    "jsonb": ("jsonb", -1, "b", "", '{"a": 1}', _CUT, False),
    "xml": ("xml", -1, "b", "", "<a>text</a>", _CUT, False),
    "inet": ("inet", -1, "b", "", "192.168.10.1", _CUT, False),
    "cidr": ("cidr", -1, "b", "", "10.0.0.0/8", _CUT, False),
    "macaddr": ("macaddr", -1, "b", "", "08:00:2b:01:02:03", _CUT, False),
    "int4range": ("int4range", -1, "r", "", "[1,10)", _CUT, False),
    "bit(1)": ("bit", 1, "b", "", "1", _SHORT, False),
    "bit(40)": ("bit", 40, "b", "", "10101010" * 5, _MARKED, False),
    "varbit": ("varbit", -1, "b", "", "10101010" * 5, _MARKED, False),
    "bytea": ("bytea", -1, "b", "", r"\x0102030405", _CUT_BYTES, False),
    "date": ("date", -1, "b", "", "2024-02-29", _MARKED, False),
    "time": ("time", -1, "b", "", "12:34:56.789012", _MARKED, False),
    "timetz": ("timetz", -1, "b", "", "12:34:56.789012+02", _CUT, False),
    "timestamp": ("timestamp", -1, "b", "", "2024-02-29 12:34:56", _MARKED, False),
    "timestamptz": ("timestamptz", -1, "b", "", "2024-02-29 12:34:56+00", _CUT, False),
    "interval": ("interval", -1, "b", "", "1 year 2 days", _MARKED, False),
    "enum": ("mood", -1, "e", "", "happy", _CUT, True),
    "domain over text": ("label", -1, "d", "text", "abcdef", _CUT, True),
    "domain over varchar(4)": ("short", 8, "d", "varchar", "abcd", _CUT, True),
    "domain over uuid": ("ident", -1, "d", "uuid", "11111111-2222-3333-4444-555555555555", _CUT, False),
    "ltree": ("ltree", -1, "b", "", "top.science", _CUT, False),
    "hstore": ("hstore", -1, "b", "", '"a"=>"1"', _CUT, False),
    "tsvector": ("tsvector", -1, "b", "", "'cat' 'fat'", _CUT, False),
    "point": ("point", -1, "b", "", "(1,2)", _MARKED, False),
    "text[]": ("_text", -1, "a", "text", "{abcdef,ghijkl}", _MARKED, False),
}
# A value as the log has it, and what a truncation and a mask do to it.
BINLOG: dict[str, tuple[Any, str, bool]] = {
    "tinyint(4)": (100, _MARKED, False),
    "tinyint(1)": (1, _SHORT, False),
    "int(11)": (12345678, _MARKED, False),
    "int": (12345678, _MARKED, False),
    "decimal(12,2)": (1234567, _MARKED, False),
    "decimal(3,1)": (123, _SHORT, False),
    "float": (1234.5, _MARKED, False),
    "double": (12345.678, _MARKED, False),
    "bit(1)": (1, _SHORT, False),
    "bit(40)": (1234567, _MARKED, False),
    "char(1)": (b"z", _SHORT, True),
    "char(8)": ("żółw".encode(), _CUT, True),
    "varchar(20)": ("zażółć".encode(), _CUT, True),
    "varchar(3)": (b"abc", _SHORT, True),
    "tinytext": (b"tiny text", _CUT, True),
    "text": (b"a text", _CUT, True),
    "mediumtext": (b"medium text", _CUT, True),
    "longtext": (b"long text", _CUT, True),
    "nchar(8)": (b"national", _CUT, True),
    "nvarchar(20)": (b"national", _CUT, True),
    "json": (b'{"a": 1}', _CUT, False),
    "enum('small','large')": (2, _SHORT, True),
    "set('red','green','blue')": (3, _CUT, True),
    "binary(8)": (b"abcdef", _CUT_BYTES, False),
    "varbinary(2)": (b"ab", _SHORT, False),
    "blob": (b"blob text", _CUT_BYTES, False),
    "date": (19782, _MARKED, False),
    "time": (45_296_000_000, _MARKED, False),
    "datetime": (1_709_210_096_000_000, _MARKED, False),
    "timestamp null": (1_709_210_096_000_000, _CUT, False),
    "year": (2024, _MARKED, False),
    "uuid": (bytes(16), _CUT, False),
}

_STARS, _HASH, _TRUNCATED = "column.mask.with.2.chars", "column.mask.hash.SHA-256.with.salt.x", "column.truncate.to.3.chars"
_HASH_V2, _PROPAGATED = "column.mask.hash.v2.MD5.with.salt.x", "column.propagate.source.type"


def _plain(value: Any) -> Any:
    return value.values_ if isinstance(value, Struct) else value


def _postgresql_value(declared: str, config: Mapping[str, str]) -> tuple[Schema, Any]:
    """Return the schema and the value of a column ``c``."""
    name, typmod, kind, base, raw, _, _ = POSTGRESQL[declared]
    names = [*dict.fromkeys(["no type", "text", "varchar", "uuid", name])]

    def query(statement: str) -> list[tuple[Any, ...]]:
        if "pg_enum" in statement:
            return [(names.index("mood"), label) for label in ("sad", "happy")] if kind == "e" else []
        types = [(oid, each, "b", 0, -1, 0, ",") for oid, each in enumerate(names) if each != name]
        element = names.index(base) if kind == "a" else 0
        of_domain = (names.index(base), typmod) if kind == "d" else (0, -1)
        return [*types, (names.index(name), name, "b" if kind == "a" else kind, *of_domain, element, ",")]

    settings = postgres_config({**POSTGRES_CONFIG, **config})
    column = CatalogColumn("c", names.index(name), -1 if kind == "d" else typmod, False, None, False, None)
    table = TableId("s", "t")
    columns = snapshot_columns(CatalogTable(table, (column,), ()), TypeRegistry(query, settings.settings))
    found = settings.common.schemas(SOURCE).build(table, columns, ()).value
    return found.schema.fields[0].schema, _plain(found([raw]).values_[0])


def _binlog_value(declared: str, config: Mapping[str, str]) -> tuple[Schema, Any]:
    settings = source_config({**MARIADB_CONFIG, **config})
    common = settings.common
    tables = Tables(server_charset="utf8mb4")
    apply_statement(tables, f"create table t (c {declared})", "s")
    definition = tables.get(TableId("s", "t"))
    assert definition is not None
    calendar = Calendar(adjust_years=True)
    values = FieldSettings("precise", "bytes", "adaptive_time_microseconds", "long", b"?", calendar, correct=common.correct)
    found = Catalog(common.schemas(LogPosition("mariadb", "p").schema), values, common.config).schema(definition).value
    return found.schema.fields[0].schema, found([BINLOG[declared][0]]).values_[0]


_CASES = [
    *(pytest.param(_postgresql_value, name, case[5], case[6], id=f"postgresql {name}") for name, case in POSTGRESQL.items()),
    *(pytest.param(_binlog_value, name, case[1], case[2], id=f"binlog {name}") for name, case in BINLOG.items()),
]


@pytest.mark.parametrize(("read", "declared", "cut", "masked"), _CASES)
def test_options_change_a_type_as_in_debezium(read: _Read, declared: str, cut: str, masked: bool) -> None:
    schema, value = read(declared, {})

    def check(key: str, parameters: Mapping[str, str], expected: Any) -> None:
        assert read(declared, {key: ".*"}) == (schema.replace(parameters={**schema.parameters, **parameters}), expected)

    shortened = value[:3] if cut in (_CUT, _CUT_BYTES) else value
    check(_TRUNCATED, {} if cut == _SHORT else {"truncateLength": "3"}, shortened)
    for key in (_STARS, _HASH, _HASH_V2):
        found, changed = read(declared, {key: ".*"})
        assert found == schema.replace(parameters={**schema.parameters, "masked": "true"})
        assert (changed != value) is masked
    if masked:
        check(_STARS, {"masked": "true"}, "**")


@pytest.mark.parametrize(("read", "declared", "cut", "masked"), _CASES)
def test_correct_masks_change_all_text(read: _Read, declared: str, cut: str, masked: bool) -> None:
    schema, value = read(declared, {"sluiceway.cdc.compat": "correct"})
    changed = read(declared, {"sluiceway.cdc.compat": "correct", _STARS: ".*", _PROPAGATED: ".*"})
    assert changed[1] == ("**" if schema.type is Type.STRING else value)
    assert masked <= (schema.type is Type.STRING)
    assert {"masked", "__debezium.source.column.name"} <= changed[0].parameters.keys()
    assert cut != _CUT or schema.type is Type.STRING


@pytest.mark.parametrize(
    ("keys", "parameters", "value"),
    [
        ((_STARS, _TRUNCATED), {"truncateLength"}, "abc"),
        ((_PROPAGATED, _TRUNCATED), {"truncateLength"}, "abc"),
        ((_PROPAGATED, _STARS), {"masked"}, "**"),
        ((_HASH, _STARS), {"masked"}, "**"),
        ((_HASH, _PROPAGATED), {"type", "length", "scale", "name"}, "abcdefgh"),
        ((_HASH_V2, "datatype.propagate.source.type"), {"type", "length", "scale", "name"}, "abcdefgh"),
    ],
)
def test_only_the_first_option_counts(keys: tuple[str, str], parameters: set[str], value: str) -> None:
    """Its place in the config has no meaning."""
    for order in (keys, keys[::-1]):
        schema, found = _postgresql_value("text", dict.fromkeys(order, ".*"))
        assert ({each.rpartition(".")[2] for each in schema.parameters}, found) == (parameters, value)


def test_hashes_have_the_length_of_the_column_and_null_remains() -> None:
    assert len(_postgresql_value("varchar(20)", {_HASH: ".*"})[1]) == 20
    assert len(_postgresql_value("text", {_HASH: ".*"})[1]) == 64
    mutation = ColumnRules({_HASH: ".*"}, correct=False).mutation("s.t", _column(STRING_SCHEMA))
    assert mutation.convert is not None
    assert mutation.convert(None) is None


def test_keys_have_neither_masks_nor_parameters() -> None:
    config = postgres_config({**POSTGRES_CONFIG, _STARS: ".*", _PROPAGATED: ".*"})
    table = config.common.schemas(SOURCE).build(TableId("s", "t"), [_column(STRING_SCHEMA)], ["c"])
    assert table.key is not None
    assert dict(table.key.schema.fields[0].schema.parameters) == {}
    assert (table.key(["a"]).values_, table.value(["a"]).values_) == (["a"], ["**"])


def test_columns_that_masks_leave_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    columns = [_column(STRING_SCHEMA), replace(_column(STRING_SCHEMA), name="d", character=False)]
    rules = ColumnRules({_STARS: r"s\.t\..*", _TRUNCATED: r"s\.u\..*"}, correct=False)
    with caplog.at_level(logging.WARNING):
        for table in ("s.t", "s.t", "s.u"):
            rules.warn_of_unmasked(table, columns)
    (message,) = caplog.messages
    assert "Table s.t: masks leave the values of these columns as they are: d." in message
    assert ColumnRules({_STARS: ".*"}, correct=True).unmasked("s.t", columns) == []
    assert ColumnRules({_HASH: ".*", _PROPAGATED: ".*"}, correct=False).unmasked("s.t", columns) == ["c", "d"]


def _column(schema: Schema) -> Column:
    return Column(name="c", field=FieldType(schema, str, "", ""), optional=True, character=True)


@pytest.mark.parametrize(
    ("length", "value", "truncated"),
    [
        (3, "abcdef", "abc"),
        (3, "abc", "abc"),
        (2, "🐢🐢", "🐢"),
        (3, "🐢🐢", "🐢"),
        (1, "🐢", ""),
        (4, "🐢🐢", "🐢🐢"),
        (3, "żżżż", "żżż"),
        (0, "a", ""),
        (3, None, None),
    ],
)
def test_truncation_counts_units_of_utf_16(length: int, value: str | None, truncated: str | None) -> None:
    rules = ColumnRules({f"column.truncate.to.{length}.chars": "s.t.c"}, correct=False)
    mutation = rules.mutation("s.t", _column(STRING_SCHEMA))

    assert mutation.convert is not None
    assert mutation.convert(value) == truncated
