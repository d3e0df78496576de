"""The simple converters' columnar forms on many random values and messages; ``make test-columns`` takes 10,000 of each."""

from __future__ import annotations

import importlib
import pkgutil
from random import Random

import pytest

import sluiceway.converters
from sluiceway.api import Converter
from sluiceway.converters.boolean_converter import BooleanConverter
from sluiceway.converters.byte_array_converter import ByteArrayConverter
from sluiceway.converters.number_converters import (
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    LongConverter,
    ShortConverter,
)
from sluiceway.converters.string_converter import StringConverter
from sluiceway.data import Schema, Type
from support.column_forms import EXAMPLES, Tolerant, decoded_alike, encoded_alike
from support.random_data import random_schema, random_value

BATCH = 25
OWN: dict[type[Converter], tuple[Type, int]] = {
    StringConverter: (Type.STRING, 3),
    ByteArrayConverter: (Type.BYTES, 3),
    BooleanConverter: (Type.BOOLEAN, 1),
    ShortConverter: (Type.INT16, 2),
    IntegerConverter: (Type.INT32, 4),
    LongConverter: (Type.INT64, 8),
    FloatConverter: (Type.FLOAT32, 4),
    DoubleConverter: (Type.FLOAT64, 8),
}
ELSEWHERE = {"JsonConverter", "AvroConverter"}  # json/test_json_columns_at_random.py, registry/test_avro_columns.py


def test_every_columnar_form_has_random_cases() -> None:
    columnar = set()
    for module in pkgutil.walk_packages(sluiceway.converters.__path__, "sluiceway.converters."):
        for each in vars(importlib.import_module(module.name)).values():
            if isinstance(each, type) and issubclass(each, Converter) and each.java_class:
                made = each()
                made.configure({"schema.registry.url": "http://nowhere.invalid"}, is_key=False)
                if made.column_decoder("t") is not None:
                    columnar.add(each.__name__)
    assert columnar == {each.__name__ for each in OWN} | ELSEWHERE


@pytest.mark.parametrize("kind", OWN)
def test_both_forms_are_alike(kind: type[Converter]) -> None:
    made = kind()
    made.configure({})
    type_, size = OWN[kind]
    own = Schema(type_, optional=True)
    rng = Random(1)  # noqa: S311
    for _ in range(max(EXAMPLES // BATCH, 4)):
        values = [random_value(rng, own) for _ in range(BATCH)]
        assert encoded_alike(made, own, values) == BATCH
        assert decoded_alike(made, [made.from_connect_data("t", own, value) for value in values]) == BATCH
        messages = [rng.choice([None, rng.randbytes(size), rng.randbytes(size), rng.randbytes(9)]) for _ in values]
        decoded_alike(Tolerant(made), messages)
        for message in messages:
            decoded_alike(Tolerant(made), [message])
        other = random_schema(rng, 1)
        encoded_alike(made, other, [random_value(rng, other) for _ in values])


def test_texts_of_structs_are_alike() -> None:
    made, rng, encoded, count = StringConverter(), Random(2), 0, 0  # noqa: S311
    for _ in range(max(EXAMPLES // BATCH, 20)):
        schema = random_schema(rng, 2)
        values = [random_value(rng, schema) for _ in range(BATCH)]
        if schema.type is Type.STRUCT:
            encoded += encoded_alike(made, schema, values)
            count += BATCH
    print(f"{encoded} of {count} structs columnar")
    assert encoded > count / 2
