"""Compares the records that are encoded straight from rows with those of structs and converters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from sluiceway.api import ENCODED, NotColumnar, SourceRecord, TaskConverters
from sluiceway.connectors.cdc.column_rows import raw_columns
from sluiceway.connectors.cdc.column_serializers import change_records
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
    """Makes each record in both ways. ``fast`` counts those that were encoded, of ``count``; ``together`` the ``batches`` that
    were encoded in columns."""

    config: CommonConfig
    converters: TaskConverters
    count: int = 0
    fast: int = 0
    batches: int = 0
    together: int = 0

    def __post_init__(self) -> None:
        self._structs = Emitter(self.config, "test")
        self._encoding = Emitter(self.config, "test", self.converters)
        self._together = Emitter(self.config, "test", self.converters)
        self._together.encode_columns()
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
        block = self._counter.event("t", "tx:1")
        count = (lambda: block) if rng.random() < 0.3 else None

        def make(emitter: Emitter) -> list[SourceRecord]:
            if snapshot and new is not None:
                return [emitter.read(table, new, source, {})]
            if new is None:
                return emitter.delete(table, old or (), source, count, {})
            if old is None:
                return emitter.create(table, new, source, count, {})
            return emitter.update(table, old, new, source, count, {})

        expected, found = self._sent(make, self._structs), self._sent(make, self._encoding)
        assert found == expected, (old, new)

    def check_columns(
        self, table: TableSchema, rows: Sequence[Sequence[Any]], source: Struct, rng: Random, *, snapshot: bool
    ) -> None:
        """Compare the records of many rows, or of their changes, that are encoded together with single ones."""
        operations = [rng.choice("cud") for _ in rows]
        olds = [(*row[:2], *rng.choice(rows)[2:]) for row in rows]  # with the same key
        if self.config.skip_unchanged:
            operations = ["c"] * len(rows)

        def make(number: int) -> Callable[[Emitter], list[SourceRecord]]:
            row, old, operation = rows[number], olds[number], operations[number]
            if snapshot:
                return lambda emitter: [emitter.read(table, row, source, {})]
            if operation == "c":
                return lambda emitter: emitter.create(table, row, source, None, {})
            if operation == "d":
                return lambda emitter: emitter.delete(table, row, source, None, {})
            return lambda emitter: emitter.update(table, old, row, source, None, {})

        found = self._snapshot(table, rows, source) if snapshot else self._changes(table, rows, olds, operations, source)
        self.batches += 1
        if found is not None:
            self.together += 1
            sent = [self._sent(make(number), self._structs) for number in range(len(rows))]
            assert found == [each for records in sent for each in records], (rows, operations)

    def _snapshot(self, table: TableSchema, rows: Sequence[Any], source: Struct) -> list[tuple[Any, Any]] | None:
        encoded = self._together.reads(table, rows, source, {})
        return None if encoded is None else list(zip(encoded.keys, encoded.values, strict=True))

    def _changes(
        self, table: TableSchema, rows: Sequence[Any], olds: Sequence[Any], operations: Sequence[str], source: Struct
    ) -> list[tuple[Any, Any]] | None:
        serializer = self._together.encoded(table, snapshot=False)
        if serializer is None:
            return None
        try:
            old = [old for old, operation in zip(olds, operations, strict=True) if operation == "u"]
            columns, old_columns = raw_columns(rows), raw_columns(old) if old else []
            keys, values = change_records(
                table, serializer, operations, columns, old_columns, source.values_, tombstones=self.config.tombstones
            )
        except NotColumnar:
            return None
        return list(zip(keys, values, strict=True))

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
