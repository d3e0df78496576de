"""Reads some rows as the PostgreSQL connector's snapshot would, without a replication slot and a publication."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from itertools import islice

from sluiceway.api import SourceRecord
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.postgres.catalog import Catalog
from sluiceway.connectors.cdc.postgres.config import postgres_config
from sluiceway.connectors.cdc.postgres.connection import connect
from sluiceway.connectors.cdc.postgres.snapshot import Snapshot
from sluiceway.connectors.cdc.postgres.source import NAME, Position
from sluiceway.connectors.cdc.postgres.types import TypeRegistry

# Not snapshot_position(): txid_current() would assign a transaction id.
_POSITION = "select (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint, (extract(epoch from now()) * 1000000)::bigint"


def snapshot_rows(properties: Mapping[str, str], most: int) -> list[SourceRecord]:
    """Return the records of the first rows, in a read-only transaction. Raises ConnectError, and the driver's errors."""
    config = postgres_config(properties)
    with closing(connect(config.address)) as connection:
        types = TypeRegistry(connection.execute, config.settings)
        tables = [table for table in Catalog(connection).tables() if config.captured(table)]
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        row = connection.execute(_POSITION).fetchone()
        assert row is not None  # noqa: S101 (the query has one row)
        position = Position(lsn=int(row[0]), micros=int(row[1]))
        common = config.common
        chosen = [
            each for each in config.in_list_order(tables) if common.has_snapshot(each) and str(each) != common.signals.table
        ]
        snapshot = Snapshot(config, connection, types, Emitter(common, NAME), position)
        with closing(snapshot.records(chosen)) as records:
            return list(islice(records, most))
