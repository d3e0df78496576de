"""Parsing config values, with the results and errors of Kafka's ``ConfigDef``."""

from __future__ import annotations

import pytest

from sluiceway.config.parsing import Type, parse_list, parse_value, shown
from sluiceway.config.password import Password
from sluiceway.errors import ConfigError


def text(value: object, type_: Type) -> str | None:
    return shown(parse_value("k", value, type_), type_)


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        (Type.INT, " 3 ", "3"),
        (Type.INT, "+5", "5"),
        (Type.INT, "-0", "0"),
        (Type.INT, "\u0663", "3"),
        (Type.INT, 7, "7"),
        (Type.SHORT, "-32768", "-32768"),
        (Type.LONG, "9223372036854775807", "9223372036854775807"),
        (Type.DOUBLE, "1e3", "1000.0"),
        (Type.DOUBLE, "1f", "1.0"),
        (Type.DOUBLE, "1.", "1.0"),
        (Type.DOUBLE, ".5", "0.5"),
        (Type.DOUBLE, "0x1p3", "8.0"),
        (Type.DOUBLE, "NaN", "NaN"),
        (Type.DOUBLE, "-Infinity", "-Infinity"),
        (Type.DOUBLE, "1e10", "1.0E10"),
        (Type.DOUBLE, "0.00012", "1.2E-4"),
        (Type.DOUBLE, 5, "5.0"),
        (Type.BOOLEAN, " True ", "true"),
        (Type.BOOLEAN, False, "false"),
        (Type.STRING, " a\x00", "a"),
        (Type.STRING, "\u00a0a", "\u00a0a"),
        (Type.STRING, None, None),
        (Type.LIST, " a , b,c ,", "a,b,c,"),
        (Type.LIST, " ", ""),
        (Type.LIST, ",", ","),
        (Type.LIST, ["a", "b"], "a,b"),
        (Type.PASSWORD, "secret", "[hidden]"),
        (Type.CLASS, " a.B ", "a.B"),
    ],
)
def test_a_value_is_parsed_and_shown_as_kafka_does(type_: Type, value: object, expected: str | None) -> None:
    assert text(value, type_) == expected


@pytest.mark.parametrize(
    ("type_", "value", "why"),
    [
        (Type.INT, "", "Not a number of type INT"),
        (Type.INT, "2147483648", "Not a number of type INT"),
        (Type.INT, "1_0", "Not a number of type INT"),
        (Type.INT, "1.5", "Not a number of type INT"),
        (Type.INT, "+-1", "Not a number of type INT"),
        (Type.SHORT, "40000", "Not a number of type SHORT"),
        (Type.LONG, "9e3", "Not a number of type LONG"),
        (Type.DOUBLE, "nan", "Not a number of type DOUBLE"),
        (Type.DOUBLE, ".", "Not a number of type DOUBLE"),
        (Type.DOUBLE, "1_0", "Not a number of type DOUBLE"),
        (Type.BOOLEAN, "yes", "Expected value to be either true or false"),
        (Type.BOOLEAN, "", "Expected value to be either true or false"),
        (Type.LIST, 5, "Expected a comma separated list."),
        (Type.LONG, " x\t", "Not a number of type LONG"),
    ],
)
def test_a_value_of_another_type_has_kafkas_error(type_: Type, value: object, why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_value("k", value, type_)
    assert str(caught.value) == f"Invalid value {value} for configuration k: {why}"


def test_a_password_is_trimmed_and_never_shown() -> None:
    value = parse_value("k", " secret ", Type.PASSWORD)
    assert value == Password("secret")
    assert "secret" not in f"{value} {value!r}"
    with pytest.raises(ConfigError) as caught:
        parse_value("k", 4711, Type.PASSWORD)
    assert "4711" not in str(caught.value)


@pytest.mark.parametrize(("text", "items"), [(" a , b,c ", ["a", "b", "c"]), (",a,,", ["a"]), (" ", []), (None, [])])
def test_a_comma_separated_list_has_no_empty_items(text: str | None, items: list[str]) -> None:
    assert parse_list(text) == items
