"""The converters' columnar forms on Kafka Connect's recorded vectors: the same results as the row forms, which match Connect's.

Each vector alone, between others of its converter and config, and in a batch of its own kind.
"""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance import vector_data as form
from conformance.answer import configured
from sluiceway.api import Converter
from sluiceway.converters import column_runs
from sluiceway.data import Schema
from sluiceway.errors import ConnectError
from support.column_forms import Tolerant, decoded_alike, encoded_alike

DATA = Path(__file__).parent / "data"


def vectors() -> Iterator[dict[str, Any]]:
    for name in ("vectors.jsonl", "more_vectors.jsonl"):
        for line in (DATA / name).read_text(encoding="utf-8").split("\n"):
            vector = json.loads(line) if line else {}
            if vector.get("kind") == "converter" and vector["op"] in ("to_connect", "from_connect"):
                yield vector


def groups(operation: str) -> Iterator[tuple[Converter, list[dict[str, Any]]]]:
    """The vectors of an operation by converter and config, if it has a columnar form."""
    found = defaultdict(list)
    for vector in vectors():
        if vector["op"] == operation:
            found[vector["class"], json.dumps(vector["config"], sort_keys=True), vector["is_key"]].append(vector)
    for same in found.values():
        try:
            converter = configured(same[0], header=False)
        except ConnectError:
            continue
        if converter.column_decoder("t") is not None or operation == "from_connect":
            yield converter, same


def message_of(vector: dict[str, Any]) -> bytes | None:
    if "text" in vector:
        return str(vector["text"]).encode()
    return None if vector["bytes"] is None else base64.b64decode(vector["bytes"])


@pytest.fixture(autouse=True)
def runs_of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_runs, "SMALLEST_RUN", 1)


def test_messages_are_decoded_alike() -> None:
    alone = together = count = 0
    for converter, same in groups("to_connect"):
        messages = [message_of(vector) for vector in same]
        for message in messages:
            alone += decoded_alike(Tolerant(converter), [message])
            together += decoded_alike(Tolerant(converter), [message] * 5) // 5
        decoded_alike(Tolerant(converter), messages)
        decoded_alike(Tolerant(converter), [message for message in messages for _ in range(4)])
        count += len(messages)
    print(f"{count} vectors, {alone} of them columnar alone, {together} in a batch")
    assert alone == together > count / 3


def test_values_are_encoded_alike() -> None:
    columnar = count = 0
    for converter, same in groups("from_connect"):
        by_schema: dict[Schema, list[Any]] = defaultdict(list)
        for vector in same:
            schema, value = form.read_data(vector["data"])
            if schema is not None:
                by_schema[schema].append(value)
                columnar += encoded_alike(converter, schema, [value])
                count += 1
        for schema, values in by_schema.items():
            encoded_alike(converter, schema, values * 3)
    print(f"{count} vectors, {columnar} of them columnar")
    assert columnar > count / 3
