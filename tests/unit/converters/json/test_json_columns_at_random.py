"""JsonConverter's columnar form against its row form on many random schemas and values; ``make test-columns`` takes 10,000."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from sluiceway.columns import to_array, to_values
from sluiceway.converters import column_runs
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.data import Schema
from sluiceway.errors import DataError
from support.column_forms import EXAMPLES, Tolerant, decoded_alike, encoded_alike
from support.random_data import random_schema, random_value

BATCH = 25
ODD: list[Any] = [
    None, True, 0, -0.0, 1, 1.0, 1.5, -1, 1e300, 200, 2**31, 2**53 + 1, 2**63, 2**64, "", "x", "AQ==", [], [1], {}, {"a": 1},
]  # fmt: skip
TEXTS = [b"", b"0", b"-", b".0", b"e1", b",", b"{", b"}", b"]", b"}{", b"\n", b"\0", b" ", b"\xff", b'"', b"\\ud800", b"NaN"]


@pytest.fixture(autouse=True)
def runs_of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_runs, "SMALLEST_RUN", 1)
    monkeypatch.setattr(column_runs, "_MOST_SHORT_RUNS", 10**6)
    monkeypatch.setattr(column_runs.RunReader, "MOST_FAILURES", 10**6)
    monkeypatch.setattr(column_runs.RunReader, "CHUNK", 10)


def batches() -> Iterator[tuple[Random, JsonConverter, Schema, list[Any]]]:
    for seed, decimals, replace in itertools.islice(
        zip(itertools.count(), itertools.cycle(["BASE64", "NUMERIC"]), itertools.cycle(["true", "false", "true"])),
        max(EXAMPLES // BATCH, 4),
    ):
        rng = Random(seed)  # noqa: S311
        schema = random_schema(rng)
        made = JsonConverter()
        made.configure({"decimal.format": decimals, "replace.null.with.default": replace})
        yield rng, made, schema, [random_value(rng, schema) for _ in range(BATCH)]


def encodable(converter: JsonConverter, schema: Schema, values: list[Any]) -> list[tuple[Any, bytes]]:
    found = []
    for value in values:
        with contextlib.suppress(DataError):  # null for a field whose default is not applied
            found.append((value, converter.from_connect_data("t", schema, value) or b""))
    return found


def test_arrays() -> None:
    for _, _, schema, values in batches():
        array = to_array(schema, values)
        array.validate(full=True)
        assert repr(to_values(schema, array)) == repr(values)


def test_encoding() -> None:
    found: Counter[str] = Counter()
    for _, made, schema, values in batches():
        valid = [value for value, _ in encodable(made, schema, values)]
        assert encoded_alike(made, schema, valid) == len(valid)
        encoded_alike(made, schema, values)
        found["values"] += len(valid)
    print(dict(found))


def test_decoding() -> None:
    found: Counter[str] = Counter()
    for rng, made, schema, values in batches():
        messages = [message for _, message in encodable(made, schema, values)]
        found["messages"] += len(messages)
        found["columnar"] += decoded_alike(Tolerant(made), messages)
        prefix, suffix = made._envelope_of(schema)
        odd = [prefix + odd_payload(rng, message[len(prefix) : -1]) + suffix for message in messages]
        for message in odd:
            found["odd"] += 1
            found["odd columnar"] += decoded_alike(Tolerant(made), [message])
        found["odd columnar together"] += decoded_alike(Tolerant(made), odd)
    print(dict(found))


def odd_payload(rng: Random, payload: bytes) -> bytes:
    """A payload with some parts replaced, missing or added, or with changed characters."""
    if rng.random() < 0.3:
        at = rng.randrange(len(payload) + 1)
        return payload[:at] + rng.choice(TEXTS) + payload[at + rng.randrange(3) :]
    separators = (" , ", " : ") if rng.random() < 0.2 else (",", ":")
    return json.dumps(_odd(rng, json.loads(payload)), ensure_ascii=rng.random() < 0.5, separators=separators).encode()


def _odd(rng: Random, node: Any) -> Any:
    if rng.random() < 0.08:
        return rng.choice(ODD)
    if isinstance(node, dict):
        made = {name: _odd(rng, item) for name, item in node.items() if rng.random() < 0.95}
        return {**made, "more": 1} if rng.random() < 0.1 else dict(sorted(made.items(), reverse=rng.random() < 0.2))
    return [_odd(rng, item) for item in node] if isinstance(node, list) else node
