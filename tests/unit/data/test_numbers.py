"""Java's BigInteger, which connectors may send without a schema though no schema goes with it."""

from __future__ import annotations

import pytest

from sluiceway.converters.json_converter import JsonConverter
from sluiceway.data import INT64_SCHEMA, BigInteger, Int32, Schema, Struct, java_text, schema_of
from sluiceway.data.class_names import java_class
from sluiceway.errors import DataError

BIG = BigInteger(10**30)


def test_an_integer_of_any_size_has_a_class_and_a_text_but_no_schema() -> None:
    assert java_class(BIG) == "java.math.BigInteger"
    assert java_text(BIG) == "1" + "0" * 30
    assert schema_of(BIG) is schema_of(BigInteger(1)) is None


@pytest.mark.parametrize("value", [BIG, BigInteger(1), [BigInteger(1)], {"a": BigInteger(1)}, {"b": b"", "a": [BigInteger(1)]}])
def test_a_big_integer_cannot_be_written_as_json(value: object) -> None:
    converter = JsonConverter()
    converter.configure({"schemas.enable": "false"})
    with pytest.raises(DataError, match=r"Java class class java\.math\.BigInteger does not have corresponding schema type"):
        converter.from_connect_data("t", None, value)


def test_narrow_integers_can_be_written_as_json() -> None:
    converter = JsonConverter()
    converter.configure({"schemas.enable": "false"})
    assert converter.from_connect_data("t", None, {"a": Int32(5), "b": [Int32(-1)]}) == b'{"a":5,"b":[-1]}'


def test_a_big_integer_fits_no_field() -> None:
    with pytest.raises(DataError, match=r"class java\.math\.BigInteger for field: \"a\""):
        Struct(Schema.struct({"a": INT64_SCHEMA}), {"a": BigInteger(1)})
