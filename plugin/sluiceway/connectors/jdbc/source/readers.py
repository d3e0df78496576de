"""Creates a task's table readers, at the positions that the stored offsets give. Runs on the executors."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluiceway.api import OffsetStorageReader
from sluiceway.connectors.jdbc.connection import Database
from sluiceway.connectors.jdbc.dialects.horizon import Horizon
from sluiceway.connectors.jdbc.dialects.sql import TableId
from sluiceway.connectors.jdbc.source.config import SourceConfig
from sluiceway.connectors.jdbc.source.keys import BULK, RANGE, RANGE_PLAN, TABLES
from sluiceway.connectors.jdbc.source.offsets import (
    PLAN_FIELD,
    QUERY_PARTITION,
    Position,
    old_table_partition,
    range_partition,
    table_partition,
)
from sluiceway.connectors.jdbc.source.seen_keys import SeenKeys
from sluiceway.connectors.jdbc.source.snapshot import Plan
from sluiceway.connectors.jdbc.source.table_reader import TableReader


@dataclass(frozen=True, slots=True)
class TableAssignment:
    """The tables of a task and, of ``count`` ranges of each table's first snapshot, the ``numbers`` that it reads.

    ``plans`` are the snapshot plans by table.
    """

    tables: Sequence[TableId]
    count: int
    numbers: Sequence[int]
    plans: Mapping[str, str]

    @classmethod
    def of(cls, config: Mapping[str, str], database: Database) -> TableAssignment:
        """Return the assignment in a task's config."""
        tables = [database.dialect.parse_table(name) for name in json.loads(config.get(TABLES) or "[]")]
        numbers, _, count = (config.get(RANGE) or "0/1").partition("/")
        plans = json.loads(config.get(RANGE_PLAN) or "{}")
        return cls(tables, int(count), [int(each) for each in numbers.split(",") if each], plans)


class ReaderFactory:
    """Creates the readers of one task."""

    def __init__(
        self,
        config: SourceConfig,
        database: Database,
        horizon: Horizon,
        assignment: TableAssignment,
        offsets: OffsetStorageReader,
    ) -> None:
        self._config = config
        self._database = database
        self._horizon = horizon
        self._assignment = assignment
        self._offsets = offsets

    def readers(self) -> list[TableReader]:
        """Return a reader for the query, or for each table or range."""
        if self._config.query:
            position = self._position(self._offsets.offset(QUERY_PARTITION))
            return [TableReader(self._config, self._database, self._horizon, QUERY_PARTITION, position=position)]
        if self._assignment.count > 1:
            return [each for table in self._assignment.tables for each in self._range_readers(table)]
        return list(self._table_readers(self._assignment.tables))

    def _table_readers(self, tables: Sequence[TableId]) -> Iterator[TableReader]:
        partitions = [table_partition(table) for table in tables]
        stored = self._offsets.offsets([*partitions, *map(old_table_partition, tables)])
        by_table = zip(tables, stored[: len(tables)], stored[len(tables) :], strict=True)
        for table, offset, old_offset in by_table:
            if offset and PLAN_FIELD in offset:  # an earlier config had ranges, which may not all have been read
                yield from self._range_readers(table)
            else:
                yield self._table_reader(table, self._position(offset or old_offset))

    def _table_reader(self, table: TableId, position: Position, plan: str = "") -> TableReader:
        seen = SeenKeys() if self._config.deletes_interval else None
        partition = table_partition(table)
        return TableReader(
            self._config, self._database, self._horizon, partition, table=table, position=position, plan=plan, seen=seen
        )

    def _range_readers(self, table: TableId) -> Iterator[TableReader]:
        """Yield readers of this task's ranges of a table; the task of the last range also reads what follows.

        A plan that was begun is continued, even if the config asks for another number of ranges.
        """
        count, numbers = self._assignment.count, self._assignment.numbers
        offset = self._offsets.offset(table_partition(table))
        planned = [range_partition(table, number, count) for number in range(count)]
        begun = _plan_in([offset, *self._offsets.offsets(planned)])
        plan = Plan.parse(begun or self._assignment.plans[str(table)])
        if self._config.mode == BULK or begun is not None or not offset:
            yield from self._plan_readers(table, plan)
        if count - 1 in numbers and self._config.mode != BULK:
            position = self._position(offset) if offset else plan.follows
            yield self._table_reader(table, position, plan.text if begun is not None or not offset else "")

    def _plan_readers(self, table: TableId, plan: Plan) -> Iterator[TableReader]:
        partitions = [range_partition(table, number, plan.count) for number in range(plan.count)]
        stored = self._offsets.offsets(partitions)
        for number, (partition, offset) in enumerate(zip(partitions, stored, strict=True)):
            if number % self._assignment.count in self._assignment.numbers:
                yield TableReader(
                    self._config,
                    self._database,
                    self._horizon,
                    partition,
                    table=table,
                    position=Position.of(offset),
                    snapshot=plan.snapshot(number),
                    plan=plan.text,
                )

    def _position(self, offset: Mapping[str, Any] | None) -> Position:
        """Return the stored position without the fields that the mode does not use."""
        position = Position.of(offset)
        if not self._config.uses_incrementing:
            position = dataclasses.replace(position, incrementing=None)
        return position if self._config.uses_timestamp else dataclasses.replace(position, timestamp=None)


def _plan_in(offsets: Sequence[Mapping[str, Any] | None]) -> str | None:
    return next((str(offset[PLAN_FIELD]) for offset in offsets if offset and PLAN_FIELD in offset), None)
