"""JSON without a schema in batches: the same values and the same bytes as one by one; ``make test-columns`` takes 10,000."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

import pytest

from sluiceway.api import SchemaAndValue
from sluiceway.converters.json import schemaless_columns
from sluiceway.converters.json.writer import JsonWriter, dump_lines, dumps_schemaless
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.data.numbers import BigInteger, Float32, Int8, Int32
from sluiceway.errors import DataError
from sluiceway.java.numbers import to_float32
from support.column_forms import EXAMPLES, Tolerant, decoded_alike

BATCH = 25
NUMBERS = [
    *(
        "0",
        "-0",
        "-0.0",
        "1",
        "1.0",
        "-1",
        "1e300",
        "1e400",
        "-1e-400",
        "0.1",
        "1E+2",
        "123456789012345678",
        "1234567890123456789",
    ),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551616"),
    *("0.1234567890123456789", "1.0000000000000000000", "01", "-00", "NaN", "Infinity", "+1", ".5", "1.", "0x1"),
]
TEXTS = [
    "",
    "a",
    "é",
    "\U0001f600",
    "\n",
    '"',
    "\\",
    "\x01",
    "2026-01-05",
    " -0",
    "1234567890123456789012",
    "null",
    ",\n,",
    "]",
    "\u2028",
]
PARTS = [
    b"",
    b"0",
    b"-",
    b".0",
    b"e1",
    b",",
    b"{",
    b"}",
    b"]",
    b"[",
    b":",
    b"\n",
    b"\0",
    b" ",
    b"\xff",
    b"\\ud800",
    b"\xef\xbb\xbf",
]
OTHERS: list[Any] = [
    *(
        Float32(to_float32(0.1)),
        Float32("nan"),
        Float32("inf"),
        float("nan"),
        float("-inf"),
        Int8(1),
        Int32(-5),
        b"\x01",
        bytearray(b"x"),
    ),
    *(
        BigInteger(1),
        2**63,
        {1: 2},
        {None: 1},
        (1, 2),
        "\ud800",
        {"\ud800": 1},
        object(),
        -0.0,
        1e10,
        1e-5,
        Float32(to_float32(1e10)),
    ),
]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemaless_columns, "_CHUNK", 10)


def converter() -> JsonConverter:
    made = JsonConverter()
    made.configure({"schemas.enable": "false"})
    return made


def document(rng: Random, depth: int = 3) -> str:
    kind = rng.random()
    if depth and kind < 0.4:
        names = [rng.choice(TEXTS) for _ in range(rng.randrange(4))]  # some of them twice
        return "{" + ",".join(f"{string(rng, name)}:{space(rng)}{document(rng, depth - 1)}" for name in names) + "}"
    if depth and kind < 0.5:
        return "[" + ",".join(document(rng, depth - 1) for _ in range(rng.randrange(4))) + "]"
    if kind < 0.7:
        return string(rng, rng.choice(TEXTS))
    usual = rng.choice(("true", "false", "null", "7", "-12.5", str(rng.randrange(10**6)), repr(rng.uniform(-1000, 1000))))
    return rng.choice(NUMBERS) if rng.random() < 0.1 else usual


def string(rng: Random, text: str) -> str:
    return json.dumps(text, ensure_ascii=rng.random() < 0.3)


def space(rng: Random) -> str:
    return rng.choice((" ", "\t", "\r\n")) if rng.random() < 0.05 else ""


def message(rng: Random) -> bytes | None:
    if rng.random() < 0.02:
        return None
    data = document(rng).encode()
    if rng.random() < 0.05:
        at = rng.randrange(len(data) + 1)
        return data[:at] + rng.choice(PARTS) + data[at + rng.randrange(3) :]
    return rng.choice((data.decode().encode("utf-16"), b"\xef\xbb\xbf" + data)) if rng.random() < 0.01 else data


def value(rng: Random, depth: int = 3) -> Any:
    kind = rng.random()
    if depth and kind < 0.4:
        return {rng.choice(TEXTS): value(rng, depth - 1) for _ in range(rng.randrange(4))}
    if depth and kind < 0.5:
        return [value(rng, depth - 1) for _ in range(rng.randrange(4))]
    if kind < 0.52:
        return rng.choice(OTHERS)
    usual = (rng.choice(TEXTS), True, None, rng.randrange(-(10**6), 10**6), rng.uniform(-1000, 1000))
    return rng.choice((*usual, Float32(to_float32(rng.uniform(-1000, 1000)))))


def test_decoding() -> None:
    found: Counter[str] = Counter()
    for seed in range(max(EXAMPLES // BATCH, 20)):
        rng = Random(seed)  # noqa: S311
        messages = [message(rng) for _ in range(BATCH)]
        found["messages"] += BATCH
        found["columnar"] += decoded_alike(Tolerant(converter()), messages)
        for each in messages[:5]:
            found["alone"] += decoded_alike(Tolerant(converter()), [each])
    print(dict(found))
    assert found["columnar"] > found["messages"] / 2


@pytest.mark.parametrize(
    "parts", [(b"[1", b"2]"), (b"1,2", b"[3", b"4]"), (b"", b"1"), (b" ", b"{}"), (b"{}{}", b"1"), (b"1 ", b" 2")]
)
def test_values_of_several_messages_are_not_mixed_up(parts: tuple[bytes, ...]) -> None:
    decoded_alike(Tolerant(converter()), parts)
    decoded_alike(Tolerant(converter()), [b"1", *parts, b"2"])


def test_only_the_messages_around_a_bad_one_are_left_to_the_row_form() -> None:
    messages = [b"%d" % number for number in range(45)]
    messages[12] = b"{"
    messages[31] = b"-0.0"  # handled one by one
    assert decoded_alike(Tolerant(converter()), messages) == 35


def test_schemaless_values_are_decoded_only_by_the_converter_itself() -> None:
    class Own(JsonConverter):
        def to_connect_data(self, topic: str, data: bytes | None) -> SchemaAndValue:
            return SchemaAndValue(None, 1)

    made = Own()
    made.configure({"schemas.enable": "false"})
    assert made.column_decoder("t") is None


def test_lines() -> None:
    found: Counter[str] = Counter()
    writer = JsonWriter()
    for seed in range(max(EXAMPLES // BATCH, 20)):
        rng = Random(f"lines {seed}")  # noqa: S311
        expected, values = b"", []
        for each in [value(rng) for _ in range(BATCH)]:
            try:
                line = dumps_schemaless(writer, each)
            except DataError:
                found["refused"] += 1
                with pytest.raises(DataError):
                    dump_lines(writer, [1, each])
                continue
            expected += line + b"\n"
            values.append(each)
        assert dump_lines(writer, values) == expected
        found["lines"] += len(values)
    print(dict(found))
    assert dump_lines(writer, []) == b""
