"""Makes records of the rows of the captured tables at one position of the log."""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from sluiceway.api import EncodedRecords, SourceRecord
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.known_tables import known_tables
from sluiceway.connectors.cdc.postgres.catalog import Catalog, CatalogTable, snapshot_columns
from sluiceway.connectors.cdc.postgres.config import PostgresConfig
from sluiceway.connectors.cdc.postgres.connection import quoted
from sluiceway.connectors.cdc.postgres.source import SOURCE, Position, Sources
from sluiceway.connectors.cdc.postgres.table_ranges import PostgresRanges
from sluiceway.connectors.cdc.postgres.types import TypeRegistry
from sluiceway.connectors.cdc.ranges import TableToRead
from sluiceway.connectors.cdc.snapshot import TablesReader
from sluiceway.connectors.cdc.tables import TableSchema
from sluiceway.data import Struct

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

log = logging.getLogger(__name__)


_ISOLATION = {"read_committed": "READ COMMITTED", "read_uncommitted": "READ UNCOMMITTED", "repeatable_read": "REPEATABLE READ"}
_INTEGERS = frozenset({"int2", "int4", "int8"})


def begin_snapshot(connection: Connection, config: PostgresConfig, exported: str | None) -> None:
    """Begin the transaction that reads the tables: on the slot's exported snapshot, or on one of its own."""
    if exported is not None:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        connection.execute(f"SET TRANSACTION SNAPSHOT '{exported}'")
    else:
        level = _ISOLATION.get(config.isolation, "SERIALIZABLE")
        connection.execute(f"BEGIN ISOLATION LEVEL {level} READ ONLY{' DEFERRABLE' if level == 'SERIALIZABLE' else ''}")


def lock_tables(connection: Connection, config: PostgresConfig, tables: Sequence[TableId]) -> None:
    """Keep the tables' columns as they are during the snapshot, if ``snapshot.locking.mode`` is shared."""
    if config.lock_tables and tables:
        connection.execute(f"SET LOCAL lock_timeout = {int(config.common.snapshots.lock_timeout * 1000)}")
        connection.execute(f"LOCK TABLE {', '.join(quoted(*table) for table in tables)} IN ACCESS SHARE MODE")


def snapshot_position(connection: Connection, lsn: int) -> Position:
    """Return the position of a snapshot's rows, within its transaction."""
    row = connection.execute("select txid_current(), (extract(epoch from now()) * 1000000)::bigint").fetchone()
    assert row is not None  # noqa: S101 (the query has one row)
    return Position(lsn=lsn, xid=int(row[0]), micros=int(row[1]))


def table_to_read(catalog: Catalog, found: CatalogTable, config: PostgresConfig, types: TypeRegistry) -> TableToRead:
    """Return how a snapshot reads a table: by ranges of its key, unless that may be null or the config has a statement for it."""
    columns = [found.column(name) for name in found.key]
    if str(found.id) in config.common.snapshots.select_overrides or any(
        column is None or not column.not_null for column in columns
    ):
        return TableToRead(found.id)
    integer = len(columns) == 1 and columns[0] is not None and types.name(columns[0].type_oid) in _INTEGERS
    return TableToRead(found.id, found.key, catalog.estimated_rows(found.id), integer)


class Snapshot:
    """Reads tables by the ranges of their keys, over sessions in one snapshot.

    Args:
        connection: the session whose transaction has the snapshot; it is used until the records end.
        conditions: the rows to read, by table, of a blocking snapshot.
        fixed_offset: the offset of all records of a blocking snapshot, which is a position of the log.
    """

    def __init__(
        self,
        config: PostgresConfig,
        connection: Connection,
        types: TypeRegistry,
        emitter: Emitter,
        position: Position,
        conditions: Mapping[str, str] | None = None,
        fixed_offset: Mapping[str, Any] | None = None,
    ) -> None:
        self._config = config
        self._connection = connection
        self._types = types
        self._emitter = emitter
        self._position = position
        self._conditions = conditions or {}
        self._fixed_offset = fixed_offset
        self._schemas = config.common.schemas(SOURCE)
        self._sources = Sources(config.common.prefix, config.address.database)
        self._reader: TablesReader[Connection] | None = None
        self._known: dict[str, Any] = {}
        self.counts: dict[str, int] = {}
        self.encodes = False
        """Whether many rows become EncodedRecords."""

    def offset(self, *, completed: bool) -> dict[str, Any]:
        """Return the source offset of the snapshot's rows, with the progress while it is not complete."""
        position = self._position
        if self._fixed_offset is not None:
            return dict(self._fixed_offset)
        return {
            "last_snapshot_record": completed,
            "lsn": position.lsn,
            "txId": position.xid,
            "ts_usec": position.micros,
            "snapshot": "INITIAL",
            "snapshot_completed": completed,
            **({} if completed or self._reader is None else self._reader.progress.state()),
            **self._known,
        }

    def records(self, tables: Sequence[TableId]) -> Generator[SourceRecord, None, None]:
        """Yield ``parts`` without EncodedRecords, for a snapshot that does not encode."""
        return cast("Generator[SourceRecord, None, None]", self.parts(tables))

    def parts(self, tables: Sequence[TableId]) -> Generator[SourceRecord | EncodedRecords, None, None]:
        """Yield the records of all rows. The last one's offset says that the snapshot is complete."""
        held: SourceRecord | EncodedRecords | None = None
        self._known = known_tables(self._config.common, tables)
        reader = self._reader = self._tables_reader(tables)
        for part in reader.parts(self._source, lambda: self.offset(completed=False), self._ended):
            for record in (part,) if isinstance(part, EncodedRecords) else part:
                if held is not None:
                    yield held
                held = record
        if held is not None:
            held.source_offset = self.offset(completed=True)
            yield held

    def close(self) -> None:
        """End the sessions that read ranges."""
        if self._reader is not None:
            self._reader.close()

    def _tables_reader(self, tables: Sequence[TableId]) -> TablesReader[Connection]:
        catalog = Catalog(self._connection)
        described = [found for found in map(catalog.table, tables) if found.columns]
        order = self._config.common.snapshots.order
        if order in ("ascending", "descending"):
            described.sort(key=lambda found: catalog.estimated_rows(found.id), reverse=order == "descending")
        columns = [snapshot_columns(found, self._types) for found in described]
        pairs = zip(described, columns, strict=True)
        schemas = [self._schemas.build(found.id, each, found.key) for found, each in pairs]
        plan = [table_to_read(catalog, found, self._config, self._types) for found in described]
        log.info("Snapshot of %d tables", len(plan))
        ranges = PostgresRanges(self._config, self._connection, schemas, plan, self._conditions, columns=self.encodes)
        return TablesReader(
            self._config.common,
            self._emitter,
            schemas.__getitem__,
            plan,
            ranges,
            ranges.threads,
            first_wins=True,
            encodes=self.encodes,
        )

    def _source(self, schema: TableSchema, marker: str) -> Struct:
        return self._sources.snapshot(marker, schema.id.schema, schema.id.table, self._position)

    def _ended(self, schema: TableSchema, rows: int) -> None:
        self.counts[str(schema.id)] = rows
        log.info("Snapshot of %s: %d rows", schema.id, rows)
