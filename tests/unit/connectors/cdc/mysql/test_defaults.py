"""Only a default that is a constant is a schema's default, as far as Debezium does not have another one."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.binlog.temporal import Calendar
from sluiceway.connectors.cdc.mysql.ddl.model import Tables
from sluiceway.connectors.cdc.mysql.ddl.statements import apply_statement
from sluiceway.connectors.cdc.mysql.defaults import default_value
from sluiceway.connectors.cdc.mysql.fields import FieldSettings, field_type


def _default(declared: str, *, correct: bool) -> Any:
    tables = Tables()
    apply_statement(tables, f"create table t (c {declared})", "d")
    found = tables.get(TableId("d", "t"))
    assert found is not None
    settings = FieldSettings("string", "bytes", "adaptive_time_microseconds", "long", b"?", Calendar(adjust_years=False), correct)
    field = field_type(found.columns[0], settings)
    assert field is not None
    return default_value(found.columns[0], field, settings)


@pytest.mark.parametrize("correct", [False, True])
@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("date default '2020-01-01'", 18262),
        ("time default '01:02:03'", 3_723_000_000),
        ("int default -5", -5),
        ("varchar(9) default 'x'", "x"),
        ("date default curdate()", None),
        ("date default (curdate())", None),
        ("date default current_date", None),
        ("date default (current_date)", None),
        ("time default curtime()", None),
        ("time default (curtime())", None),
        ("time default current_time()", None),
        ("datetime default (now() + interval 1 day)", None),
        ("timestamp(6) null default current_timestamp(6)", None),
        ("varchar(36) default uuid()", None),
        ("int default (1 + 1)", None),
        ("varchar(20) default curdate()", None),
        ("varchar(20) default now()", None),
        ("blob default curtime()", None),
        ("int default now()", None),
        ("int default x'10'", None),
        ("int default 0x10", None),
        ("varchar(9) default x'4142'", None),
        ("varbinary(9) default 0x4142", None),
        ("bit(8) default X'05'", None),
        ("bit(8) default b'101'", b"\x05"),
        ("bit(8) default 0b101", b"\x05"),
        ("varchar(20) default 'curdate()'", "curdate()"),
    ],
)
def test_a_constant_is_a_default_and_an_expression_is_none(declared: str, value: object, correct: bool) -> None:
    assert _default(declared, correct=correct) == value


@pytest.mark.parametrize("declared", ["datetime default now()", "date default now()", "time default localtimestamp"])
def test_the_time_of_the_statement_is_the_epoch_as_debezium_has_it_or_nothing(declared: str) -> None:
    assert _default(declared, correct=False) == 0
    assert _default(declared, correct=True) is None


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        ("date default curdate()", "curdate()"),
        ("time default CURTIME( )", "CURTIME()"),
        ("date default current_date", None),
        ("date default (curdate() + interval 1 day)", None),
        ("datetime default now()", "1970-01-01 00:00:00"),
        ("varchar(36) default uuid()", None),
        ("varchar(36) default curdate()", None),
        ("int default 5", "5"),
    ],
)
def test_schema_changes_have_the_text_of_a_default_as_debeziums(declared: str, text: str | None) -> None:
    tables = Tables()
    apply_statement(tables, f"create table t (c {declared})", "d")
    found = tables.get(TableId("d", "t"))
    assert found is not None
    assert found.columns[0].default == text


@pytest.mark.parametrize("correct", [False, True])
@given(st.integers(1, 65), st.integers(0, 30), st.integers(0, 10**65 - 1), st.integers(0, 40))
def test_a_decimal_keeps_every_digit_of_its_default(correct: bool, precision: int, scale: int, number: int, places: int) -> None:
    precision = max(precision, scale)
    value = Decimal((0, tuple(map(int, str(number % 10 ** (precision - scale + places)))), -places))
    found = _default(f"decimal({precision},{scale}) default {value:f}", correct=correct)
    # Half up, as MySQL and BigDecimal.setScale do.
    doubled = Fraction(value) * 2 * 10**scale + 1
    rounded = doubled.numerator // (2 * doubled.denominator)
    assert Fraction(found) * 10**scale == rounded
