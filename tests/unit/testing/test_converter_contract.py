"""A valid converter fulfills the contract, and each test of the contract detects a violation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from sluiceway.api import NULL, Converter, SchemaAndValue
from sluiceway.data import STRING_SCHEMA, Schema
from sluiceway.errors import DataError
from sluiceway.testing import ConverterContract

from .breaches import breaches


class GoodConverter(Converter):
    """Lists of strings: a byte 1, then the strings separated by a byte 0."""

    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise DataError(f"Not a list of texts: {value!r}")
        return b"\x01" + "\0".join(value).encode()

    def to_connect_data(self, topic: str, data: bytes | None) -> SchemaAndValue:
        if data is None:
            return NULL
        if not data.startswith(b"\x01"):
            raise DataError("The first byte is not 1.")
        try:
            return SchemaAndValue(None, data[1:].decode().split("\0"))
        except UnicodeDecodeError as error:
            raise DataError("Not UTF-8.") from error


class Contract(ConverterContract):
    def samples(self) -> Sequence[SchemaAndValue]:
        return [SchemaAndValue(None, ["a", "ü"]), SchemaAndValue(None, ["b"])]


class Losing(GoodConverter):
    def to_connect_data(self, topic: str, data: bytes | None) -> SchemaAndValue:
        return SchemaAndValue(STRING_SCHEMA, super().to_connect_data(topic, data).value)


class Mutable(GoodConverter):
    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        data = super().from_connect_data(topic, schema, value)
        return None if data is None else bytearray(data)  # type: ignore[return-value]


class NoNull(GoodConverter):
    def to_connect_data(self, topic: str, data: bytes | None) -> SchemaAndValue:
        return super().to_connect_data(topic, data[:])  # type: ignore[index]


class NullIsEmpty(GoodConverter):
    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        return super().from_connect_data(topic, schema, value or [])


class OtherEncoder(GoodConverter):
    def encoder(self, topic: str, schema: Schema | None) -> Callable[[Any], bytes | None]:
        return lambda value: b"\x01" + topic.encode()


class OtherDecoder(GoodConverter):
    def decoder(self, topic: str) -> Callable[[bytes | None], tuple[Schema | None, Any]]:
        return lambda data: (None, None)


class Trusting(GoodConverter):
    def to_connect_data(self, topic: str, data: bytes | None) -> SchemaAndValue:
        return NULL if data is None else SchemaAndValue(None, data[1:].decode().split("\0"))


class Unchecked(GoodConverter):
    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        return None if value is None else b"\x01" + "\0".join(value).encode()


class Sorting(GoodConverter):
    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if isinstance(value, list):
            value.append("more")
        return super().from_connect_data(topic, schema, value)


def test_a_valid_converter_fulfills_the_contract() -> None:
    assert breaches(Contract, converter_class=GoodConverter) == {}


BROKEN = [
    (Losing, "test_samples_are_read_back", "instead of"),
    (Mutable, "test_what_is_written_is_bytes", "bytearray"),
    (NoNull, "test_null_stays_null", "raised TypeError"),
    (NullIsEmpty, "test_null_stays_null", "returned [''] for a null"),
    (OtherEncoder, "test_the_encoder_writes_the_same_bytes", "b'\\x01contract'"),
    (OtherDecoder, "test_the_decoder_reads_the_same_values", "returned (<class 'tuple'>"),
    (Trusting, "test_bytes_of_another_format_raise_an_error_of_connects", "UnicodeDecodeError"),
    (Unchecked, "test_values_that_cannot_be_written_raise_an_error_of_connects", "raised TypeError"),
    (Sorting, "test_the_value_is_left_as_it_was", "changed the value"),
]


@pytest.mark.parametrize(("converter", "rule", "text"), BROKEN, ids=[f"{one[0].__name__}-{one[2]}" for one in BROKEN])
def test_a_violation_is_detected(converter: type[Converter], rule: str, text: str) -> None:
    failed = breaches(Contract, only=rule, converter_class=converter)
    assert text in failed.get(rule, "nothing"), failed


def test_every_converter_test_is_covered_by_a_violation() -> None:
    rules = {name for name in vars(ConverterContract) if name.startswith("test_")}
    assert rules == {rule for _, rule, _ in BROKEN}


def test_missing_samples_are_reported() -> None:
    failed = breaches(ConverterContract, only="test_samples", converter_class=GoodConverter)
    assert "Override samples()" in failed["test_samples_are_read_back"]
