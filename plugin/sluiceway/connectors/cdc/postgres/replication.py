"""Manages the slot and the publication, and asks the server for its identity."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.postgres.config import PostgresConfig
from sluiceway.connectors.cdc.postgres.connection import (
    Address,
    connect_replication,
    execute_replication,
    lsn_number,
    quoted,
)
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    import psycopg
    from psycopg.pq.abc import PGconn

    Connection = psycopg.Connection[tuple[Any, ...]]

log = logging.getLogger(__name__)


class Slot(NamedTuple):
    """A replication slot; positions are None if the slot has none yet. ``lost``: why the server can no longer read it, or ""."""

    active: bool
    restart_lsn: int | None
    confirmed_lsn: int | None
    lost: str


class SlotUsage(NamedTuple):
    """The amount of log that a slot keeps. ``free`` is None without ``max_slot_wal_keep_size``; ``status`` is ``wal_status``."""

    retained: int
    free: int | None
    behind: int
    status: str


class ServerIdentity(NamedTuple):
    """A database cluster, the end of its log, and where its earlier timelines ended: timeline, position."""

    system: str
    timeline: int
    lsn: int
    switches: tuple[tuple[int, int], ...]


class CreatedSlot(NamedTuple):
    consistent_lsn: int
    snapshot: str | None


def find_slot(connection: Connection, name: str) -> Slot | None:
    """Return the slot of that name, or None."""
    query = (
        "select active, restart_lsn::text, confirmed_flush_lsn::text, to_jsonb(s) from pg_replication_slots s "
        "where slot_name = %s"
    )
    row = connection.execute(query, (name,)).fetchone()
    if row is None:
        return None
    active, restart, confirmed, columns = row
    return Slot(active, restart and lsn_number(restart), confirmed and lsn_number(confirmed), _lost(columns))


def _lost(columns: Mapping[str, Any]) -> str:
    """Return why a slot is lost, from its row in ``pg_replication_slots``, whose columns depend on the server's version."""
    reason = columns.get("invalidation_reason") or ("conflict with recovery" if columns.get("conflicting") else "")
    if not reason and columns.get("wal_status") == "lost":
        reason = "its log was removed"
    return str(reason)


def slot_usage(connection: Connection, name: str) -> SlotUsage | None:
    """Return how much log a slot keeps, or None if there is no such slot."""
    query = (
        "select coalesce(now_lsn - restart_lsn, 0)::bigint, to_jsonb(s)->>'safe_wal_size', "
        "coalesce(now_lsn - confirmed_flush_lsn, 0)::bigint, coalesce(to_jsonb(s)->>'wal_status', '') "
        "from pg_replication_slots s, (select case when pg_is_in_recovery() then pg_last_wal_replay_lsn() "
        "else pg_current_wal_lsn() end as now_lsn) as n where slot_name = %s"
    )
    row = connection.execute(query, (name,)).fetchone()
    if row is None:
        return None
    retained, free, behind, status = row
    return SlotUsage(max(0, int(retained)), None if free is None else max(0, int(free)), max(0, int(behind)), str(status))


def identify_server(connection: PGconn) -> ServerIdentity:
    """Return which database cluster a replication connection has reached."""
    [row] = execute_replication(connection, "IDENTIFY_SYSTEM")
    timeline = int(row[1] or 0)
    switches: tuple[tuple[int, int], ...] = ()
    if timeline > 1:
        with contextlib.suppress(ConnectError):  # the file may have been removed
            [history] = execute_replication(connection, f"TIMELINE_HISTORY {timeline}")
            switches = parse_history(history[1] or "")
    return ServerIdentity(row[0] or "", timeline, lsn_number(row[2] or "0/0"), switches)


def read_identity(address: Address) -> ServerIdentity:
    """Return which database cluster an address leads to."""
    replication = connect_replication(address)
    try:
        return identify_server(replication)
    finally:
        replication.finish()


def first_lsn(config: PostgresConfig, slot: Slot | None) -> int:
    """Return where to begin without offsets and without a snapshot: at the slot's position, or at that of a new slot."""
    if slot is not None:
        return slot.confirmed_lsn or 0
    replication = connect_replication(config.address)
    try:
        return create_slot(replication, config.slot, failover=config.failover).consistent_lsn
    finally:
        replication.finish()


def parse_history(text: str) -> tuple[tuple[int, int], ...]:
    """Return the timelines of a history file, each with the position where it ended."""
    lines = (line.split() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    return tuple((int(fields[0]), lsn_number(fields[1])) for fields in lines)


def drop_slot(connection: Connection, name: str) -> None:
    """Drop a slot that nobody reads, if it exists."""
    connection.execute(
        "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = %s and not active", (name,)
    )


def create_slot(connection: PGconn, name: str, *, temporary: bool = False, failover: bool = False) -> CreatedSlot:
    """Create a slot. Its snapshot lasts until the connection's next command."""
    options = " (FAILOVER true)" if failover else ""
    kind = "TEMPORARY " if temporary else ""
    [row] = execute_replication(connection, f"CREATE_REPLICATION_SLOT {quoted(name)} {kind}LOGICAL pgoutput{options}")
    return CreatedSlot(lsn_number(row[1] or "0/0"), row[2])


def ensure_publication(connection: Connection, config: PostgresConfig, tables: Sequence[TableId]) -> None:
    """Create the publication as ``publication.autocreate.mode`` says. Raises ConnectError if it must exist but does not."""
    name = config.publication
    exists = connection.execute("select 1 from pg_publication where pubname = %s", (name,)).fetchone() is not None
    if exists and config.autocreate != "filtered":
        return
    if config.autocreate == "disabled":
        raise ConnectError(
            f"Publication {name} does not exist, and publication.autocreate.mode=disabled does not create it. "
            "Create it, or correct publication.name, and restart the connector."
        )
    listed = ", ".join(quoted(*table) for table in tables)
    if config.autocreate == "filtered" and not listed:
        raise ConnectError(f"No table filters found for filtered publication {name}")
    if exists:
        connection.execute(f"ALTER PUBLICATION {quoted(name)} SET TABLE {listed}")
        return
    what = {"all_tables": " FOR ALL TABLES", "filtered": f" FOR TABLE {listed}"}.get(config.autocreate, "")
    options = " WITH (publish_via_partition_root = true)" if config.via_root else ""
    log.info("Creating publication %s%s", name, what)
    connection.execute(f"CREATE PUBLICATION {quoted(name)}{what}{options}")
