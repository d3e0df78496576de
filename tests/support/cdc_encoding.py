"""Compares the records that are encoded straight from rows with those of structs and converters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from sluiceway.api import ENCODED, SourceRecord, TaskConverters
from sluiceway.connectors.cdc.config import CommonConfig
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.tables import TableSchema
from sluiceway.connectors.cdc.transactions import TransactionCounter
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.data import Struct
from sluiceway.errors import DataError

NAMES = ("id", "a", "Weird name", 'qu"ote', "{braces}", "ünïcode", "b", "c", "d", "e")

TEXTS = (
    "",
    "plain",
    'with "quotes" and \\',
    "tab\tline\nfeed\r",
    "\x01\x1f\x7f",
    "\\u001f",
    "grüße",
    "\u2028",
    "日本語",
    "😀 astral",
)


def converters(rng: Random) -> TaskConverters:
    """Return JsonConverters with random options."""

    def converter(*, is_key: bool) -> JsonConverter:
        made = JsonConverter()
        options = {
            "schemas.enable": rng.choice(("true", "false")),
            "decimal.format": rng.choice(("BASE64", "BASE64", "NUMERIC")),
            "replace.null.with.default": rng.choice(("true", "true", "false")),
        }
        made.configure(options, is_key=is_key)
        return made

    return TaskConverters(converter(is_key=True), converter(is_key=False))


@dataclass
class Comparison:
    """Makes each record in both ways. ``fast`` counts those that were encoded, of ``count``."""

    config: CommonConfig
    converters: TaskConverters
    count: int = 0
    fast: int = 0

    def __post_init__(self) -> None:
        self._structs = Emitter(self.config, "test")
        self._encoding = Emitter(self.config, "test", self.converters)
        self._counter = TransactionCounter()
        self._counter.begin("tx")

    def check(
        self,
        table: TableSchema,
        old: Sequence[Any] | None,
        new: Sequence[Any] | None,
        source: Struct,
        rng: Random,
        *,
        snapshot: bool,
    ) -> None:
        """Compare the records of a row, or of its change."""
        block = self._counter.event("t", "tx:1") if rng.random() < 0.3 else None

        def make(emitter: Emitter) -> list[SourceRecord]:
            if snapshot and new is not None:
                return [emitter.read(table, new, source, {})]
            if new is None:
                return emitter.delete(table, old or (), source, block, {})
            if old is None:
                return emitter.create(table, new, source, block, {})
            return emitter.update(table, old, new, source, block, {})

        expected, found = self._sent(make, self._structs), self._sent(make, self._encoding)
        assert found == expected, (old, new)

    def _sent(self, make: Callable[[Emitter], list[SourceRecord]], emitter: Emitter) -> list[tuple[Any, Any]] | str:
        sent: list[tuple[Any, Any]] = []
        try:
            for record in make(emitter):
                key = self._bytes(self.converters.key, record.key_schema, record.key, record.topic)
                sent.append((key, self._bytes(self.converters.value, record.value_schema, record.value, record.topic)))
                if emitter is self._encoding:
                    self.count += 1
                    self.fast += record.value_schema is ENCODED
        except DataError as error:
            return str(error)
        return sent

    @staticmethod
    def _bytes(converter: Any, schema: Any, value: Any, topic: str) -> bytes | None:
        found: bytes | None = value if schema is ENCODED else converter.encoder(topic, schema)(value)
        return found
