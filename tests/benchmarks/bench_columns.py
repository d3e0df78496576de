"""Measures records per second of each converter's row form and columnar form on one core, in turns, with their ratio.

Reading ends with Arrow arrays in both forms: the row form's values are converted with ``to_array``, as for a sink that takes
columns. Writing starts with them: the row form's values are those of ``to_values``.

Run: python tests/benchmarks/bench_columns.py [--records N] [--rounds N]
"""

from __future__ import annotations

import argparse
import datetime as dt
import statistics
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from sluiceway.api import Converter
from sluiceway.columns.arrays import to_array, to_values
from sluiceway.converters.boolean_converter import BooleanConverter
from sluiceway.converters.byte_array_converter import ByteArrayConverter
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.converters.number_converters import DoubleConverter, FloatConverter, IntegerConverter, LongConverter
from sluiceway.converters.string_converter import StringConverter
from sluiceway.data import Schema, Struct, Type, decimal_schema, timestamp_schema
from sluiceway.java.numbers import to_float32
from sluiceway.runtime.garbage import raise_gc_threshold

ORDER = Schema.struct(
    {
        "id": Schema(Type.INT64),
        "customer": Schema(Type.STRING, optional=True),
        "amount": Schema(Type.FLOAT64),
        "count": Schema(Type.INT32, optional=True),
        "at": timestamp_schema(),
        "note": Schema(Type.STRING, optional=True),
        "active": Schema(Type.BOOLEAN),
    },
    name="order",
)
LINE = Schema.struct({"product": Schema(Type.STRING), "price": decimal_schema(2)}, name="line")
NESTED = Schema.struct(
    {
        "id": Schema(Type.INT64),
        "weight": Schema(Type.FLOAT32, optional=True),
        "lines": Schema.array(LINE),
        "tags": Schema.map(Schema(Type.STRING), Schema(Type.INT32)),
        "photo": Schema(Type.BYTES),
    },
    name="nested",
)
START = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)


def order(number: int) -> Struct:
    at = START + dt.timedelta(milliseconds=number)
    note = f"what is known about order {number}"
    return Struct.of(ORDER, [number, f"customer-{number % 997}", number * 1.25 + 0.5, number % 100, at, note, number % 2 == 0])


def nested(number: int) -> Struct:
    lines = [Struct.of(LINE, [f"product-{number % 97}", Decimal(number).scaleb(-2)]) for _ in range(number % 3)]
    return Struct.of(NESTED, [number, to_float32(number / 7), lines, {"a": number % 10, "b": 1}, b"%08d" % number])


CASES: list[tuple[str, Callable[[], Converter], Schema, Callable[[int], Any]]] = [
    ("JsonConverter, 7 fields", JsonConverter, ORDER, order),
    ("JsonConverter, nested", JsonConverter, NESTED, nested),
    ("StringConverter", StringConverter, Schema(Type.STRING, optional=True), lambda number: f"line {number} of a log file"),
    (
        "ByteArrayConverter",
        ByteArrayConverter,
        Schema(Type.BYTES, optional=True),
        lambda number: b"line %d of a log file" % number,
    ),
    ("IntegerConverter", IntegerConverter, Schema(Type.INT32, optional=True), lambda number: number),
    ("LongConverter", LongConverter, Schema(Type.INT64, optional=True), lambda number: number),
    ("FloatConverter", FloatConverter, Schema(Type.FLOAT32, optional=True), lambda number: to_float32(number / 7)),
    ("DoubleConverter", DoubleConverter, Schema(Type.FLOAT64, optional=True), lambda number: number / 7),
    ("BooleanConverter", BooleanConverter, Schema(Type.BOOLEAN, optional=True), lambda number: number % 2 == 0),
]


def measure(rows: Callable[[], object], columns: Callable[[], object], count: int, rounds: int) -> tuple[float, float]:
    """Return the median records per processor second of both functions, called in turns."""
    seconds: tuple[list[float], list[float]] = [], []
    for _ in range(rounds):
        for function, found in zip((rows, columns), seconds, strict=True):
            start = time.process_time()
            function()
            found.append(time.process_time() - start)
    return count / statistics.median(seconds[0]), count / statistics.median(seconds[1])


def bench(name: str, converter: Converter, schema: Schema, values: list[Any], batch: int, rounds: int) -> None:
    converter.configure({})
    encode, encode_columns = converter.encoder("t", schema), converter.column_encoder("t", schema)
    decode, decode_columns = converter.decoder("t"), converter.column_decoder("t")
    assert encode_columns is not None
    assert decode_columns is not None
    chunks = [values[start : start + batch] for start in range(0, len(values), batch)]
    arrays = [to_array(schema, chunk) for chunk in chunks]
    messages = [pa.array([encode(value) for value in chunk], pa.binary()) for chunk in chunks]
    assert [encode_columns(array).equals(message) for array, message in zip(arrays, messages, strict=True)] == [True] * len(
        arrays
    )

    def read_rows() -> None:
        for part in messages:
            to_array(schema, [decode(message)[1] for message in part.to_pylist()])

    def read_columns() -> None:
        for part in messages:
            assert decode_columns(part)[0].column is not None

    def write_rows() -> None:
        for array in arrays:
            pa.array([encode(value) for value in to_values(schema, array)], pa.binary())

    def write_columns() -> None:
        for array in arrays:
            encode_columns(array)

    for direction, rows, columns in (("reads", read_rows, read_columns), ("writes", write_rows, write_columns)):
        slow, fast = measure(rows, columns, len(values), rounds)
        print(f"{name:26} {direction:7} {batch:6} {slow:12,.0f} {fast:12,.0f} {fast / slow:7.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, nargs="*", default=[500, 5000], help="records in a batch")
    options = parser.parse_args()
    raise_gc_threshold()
    print(f"{'converter':26} {'':7} {'batch':>6} {'rows/s':>12} {'columns/s':>12} {'ratio':>7}   (per processor second)")
    for name, make, schema, value in CASES:
        values = [value(number) for number in range(options.records)]
        for batch in options.batches:
            bench(name, make(), schema, values, batch, options.rounds)


if __name__ == "__main__":
    main()
