"""Only a default that is a constant is a schema's default, as far as Debezium does not have another one."""

from __future__ import annotations

from typing import Any

import pytest

from sluiceway.connectors.cdc.postgres.catalog import default_of
from sluiceway.connectors.cdc.postgres.config import postgres_config
from sluiceway.connectors.cdc.postgres.fields import scalar_field
from sluiceway.connectors.cdc.postgres.type_info import TypeInfo
from unit.connectors.cdc.test_incremental import CONFIG

_EPOCH = "1970-01-01T00:00:00.000000Z"

_CONSTANTS = [
    ("5", "int4", 5),
    ("'-1'::integer", "int4", -1),
    ("'x'::text", "text", "x"),
    ("'it''s'::character varying(9)", "varchar", "it's"),
    ("E'a\\\\b'::text", "text", "a\\b"),
    ("'x'::text COLLATE \"C\"", "text", "x"),
    ("('x'::text)::character varying", "varchar", "x"),
    ("true", "bool", True),
    ("'2020-01-01'::date", "date", 18262),
    ("'01:02:03'::time without time zone", "time", 3_723_000_000),
    ("'1 day'::interval", "interval", 86_400_000_000),
    ("B'1'::\"bit\"", "bit", True),
    ("(5)::bigint", "int4", 5),
    ("((5)::numeric)::bigint", "int8", 5),
    ("1.5", "float8", 1.5),
    ("5", "text", "5"),
    ("(5)::text", "text", "5"),
    ("false", "bool", False),
]
_NO_DEFAULTS = [
    (None, "int4"),
    ("NULL::character varying", "varchar"),
    ("(1 + 1)", "int4"),
    ("((2)::double precision ^ (3)::double precision)", "int4"),
    ("((5)::bigint * 3)", "int4"),
    ("((10)::double precision * random())", "float8"),
    ("((1)::text || (2)::text)", "text"),
    ("((true)::integer + 1)", "bool"),
    ("(CURRENT_DATE + 1)", "date"),
    ("((now() AT TIME ZONE 'utc'::text))::text", "text"),
    ("('a'::text || 'b'::text)", "text"),
    ("(CURRENT_USER || 'b'::text)", "text"),
    ("CASE WHEN true THEN 'a'::text ELSE 'b'::text END", "text"),
    ("'01:02:03+02'::time with time zone", "timetz"),
    ("'$5.00'::money", "money"),
    ("'c'::\"char\"", "char"),
    ("'5'::oid", "oid"),
    ("'n'::name", "name"),
]
_FUNCTIONS = [
    ("now()", "timestamptz", _EPOCH),
    ("CURRENT_DATE", "date", 0),
    ("CURRENT_USER", "text", "CURRENT_USER"),
    ("lower('Q'::text)", "text", ""),
    ("nextval('t_id_seq'::regclass)", "int4", 0),
]


def _default(expression: str | None, type_name: str, *, correct: bool) -> Any:
    compat = "correct" if correct else "debezium"
    settings = postgres_config({**CONFIG, "sluiceway.cdc.compat": compat}).settings
    field = scalar_field(TypeInfo(type_name, -1, ()), settings, ranges=False)
    return default_of(expression, type_name, field, enum=False, correct=correct)


@pytest.mark.parametrize("correct", [False, True])
@pytest.mark.parametrize(("expression", "type_name", "value"), _CONSTANTS)
def test_a_constant_is_a_default(expression: str, type_name: str, value: object, correct: bool) -> None:
    assert _default(expression, type_name, correct=correct) == value


@pytest.mark.parametrize("correct", [False, True])
@pytest.mark.parametrize(("expression", "type_name"), _NO_DEFAULTS)
def test_an_expression_is_none_nor_are_constants_of_types_that_debezium_leaves_out(
    expression: str | None, type_name: str, correct: bool
) -> None:
    assert _default(expression, type_name, correct=correct) is None


@pytest.mark.parametrize(("expression", "type_name", "value"), _FUNCTIONS)
def test_what_a_function_returns_is_a_zero_as_debezium_has_it_or_nothing(expression: str, type_name: str, value: object) -> None:
    assert _default(expression, type_name, correct=False) == value
    assert _default(expression, type_name, correct=True) is None


@pytest.mark.parametrize(("text", "days"), [("infinity", 169_560_311), ("-infinity", -170_999_002)])
def test_an_infinite_date_is_javas_last_one_or_postgresqls(text: str, days: int) -> None:
    for compat, expected in (("debezium", days), ("correct", None)):
        settings = postgres_config({**CONFIG, "sluiceway.cdc.compat": compat}).settings
        field = scalar_field(TypeInfo("date", -1, ()), settings, ranges=False)
        assert field is not None
        found = default_of(f"'{text}'::date", "date", field, enum=False, correct=compat == "correct")
        assert found == (field.convert(text) if expected is None else expected)
