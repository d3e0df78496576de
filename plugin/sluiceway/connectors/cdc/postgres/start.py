"""Decides what a task reads first, by config, stored offset, slot and server, and whether the log still has it. No I/O."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any, NamedTuple

from sluiceway.connectors.cdc.postgres.config import PostgresConfig
from sluiceway.connectors.cdc.postgres.connection import lsn_text
from sluiceway.connectors.cdc.postgres.replication import ServerIdentity, Slot
from sluiceway.connectors.cdc.postgres.source import Position
from sluiceway.errors import ConnectError

REPAIR = (
    "To go on, either set snapshot.mode=when_needed and restart the connector, for a new snapshot of all captured tables; "
    "or delete its "
    "offsets, set snapshot.mode=no_data, and send the signal execute-snapshot for the captured tables: an incremental "
    "snapshot repairs "
    "them while changes are captured again."
)


class LogLostError(ConnectError):
    """The log no longer has the position of the stored offset."""

    java_class = "io.debezium.DebeziumException"


class Plan(NamedTuple):
    """The parts to read: a snapshot, the log, or both. Reading of the log continues at ``position``, None for a new start."""

    snapshot: bool
    stream: bool
    position: Position | None


def plan_start(config: PostgresConfig, offset: Mapping[str, Any] | None, gap: str | None = None) -> Plan:
    """Return what to read. ``gap`` describes what the log lacks behind the stored offset, or is None.

    Raises:
        LogLostError: there is a gap, and the mode takes no snapshot for it.
        ConnectError: the mode is not supported.
    """
    mode = config.common.snapshots.mode
    if mode == "custom":
        raise ConnectError("snapshot.mode=custom needs a Java snapshotter, which cannot be loaded. Choose another mode.")
    position = stored_position(offset)
    if mode == "initial_only":
        return Plan(position is None, False, position)
    if mode == "always":
        return Plan(True, True, None)
    based = mode == "configuration_based"
    stream = config.start_stream if based else True
    if position is None:
        return Plan(config.snapshot_data if based else mode != "no_data", stream, None)
    if gap is None:
        return Plan(False, stream, position)
    if mode == "when_needed" or (based and config.snapshot_on_gap):
        return Plan(True, stream, None)
    if not stream:
        return Plan(False, False, position)
    raise LogLostError(f"{lost_message(config, offset or {}, position)} {gap} {REPAIR}")


def may_continue_snapshot(config: PostgresConfig, slot: Slot | None) -> bool:
    """Tell whether an interrupted snapshot may go on beside the log, instead of starting again."""
    if slot is None or slot.lost:
        return False
    mode = config.common.snapshots.mode
    return mode in ("initial", "when_needed") or (mode == "configuration_based" and config.start_stream)


def stored_position(offset: Mapping[str, Any] | None) -> Position | None:
    """Return the position of a stored offset, or None if there is none or if its snapshot is not complete."""
    if offset is None or (offset.get("snapshot") and not offset.get("snapshot_completed")):
        return None
    return Position.of(offset)


def find_gap(
    config: PostgresConfig, position: Position, slot: Slot | None, server: ServerIdentity, before: ServerIdentity | None
) -> str | None:
    """Return what the log lacks behind a position, or None if nothing is missing.

    Args:
        before: the server that this task read from before it lost its connection, or None.
    """
    start = position.start_lsn
    if before is not None and before.system != server.system:
        return (
            f"The server is another database cluster (system identifier {server.system}, before {before.system}), whose log "
            f"has nothing to do "
            f"with {lsn_text(start)}."
        )
    if start > server.lsn:
        return (
            f"The stored offset {lsn_text(start)} is {_size(start - server.lsn)} ahead of the end of the server's log, "
            f"{lsn_text(server.lsn)}: the server was restored from a backup, or is another one. Changes that the topics "
            f"have may be missing "
            "in the database."
        )
    if slot is None:
        return (
            f"The replication slot {config.slot} does not exist. Changes from {lsn_text(start)} to {lsn_text(server.lsn)} "
            f"({_size(server.lsn - start)} of log) are missing."
        )
    if slot.lost:
        return (
            f"The server has given up the replication slot {config.slot} ({slot.lost}; see max_slot_wal_keep_size). Changes from "
            f"{lsn_text(start)} to {lsn_text(server.lsn)} ({_size(server.lsn - start)} of log) are missing."
        )
    # A transaction that is stored in part begins before the position; the slot keeps it until it is stored entirely.
    trusted = config.mismatch in ("trust_slot", "trust_greater_lsn")
    if slot.restart_lsn is not None and slot.restart_lsn > max(start, position.lsn) and not trusted:
        return (
            f"The replication slot {config.slot} begins at {lsn_text(slot.restart_lsn)}, behind the stored offset "
            f"{lsn_text(start)}: it was "
            f"created again. Changes between them ({_size(slot.restart_lsn - start)} of log) are missing."
        )
    return _forked(position, slot, server, before)


def _forked(position: Position, slot: Slot, server: ServerIdentity, before: ServerIdentity | None) -> str | None:
    """Return the gap of a server that was promoted before it had received all of the log that this connector has read."""
    known = 0 if before is None else before.timeline
    for timeline, ended in server.switches:
        # A slot that has not moved since the switch shows that the offset is older than the switch, and so of the old timeline.
        moved = (slot.confirmed_lsn or 0) > ended
        if ended < position.start_lsn and timeline >= known and (known or not moved):
            return (
                f"The server is on timeline {server.timeline}, which left timeline {timeline} at {lsn_text(ended)}; the "
                f"stored offset "
                f"{lsn_text(position.start_lsn)} is {_size(position.start_lsn - ended)} further on the old timeline. The "
                f"topics have changes that the "
                "database has lost, and what the new timeline has there instead is missing."
            )
    return None


def check_slot_position(config: PostgresConfig, position: Position, slot: Slot) -> str | None:
    """Return a warning if a slot is ahead of the stored offset, where the server leaves out changes without an error.

    Raises LogLostError with ``offset.mismatch.strategy=trust_offset``.
    """
    confirmed, start = slot.confirmed_lsn or 0, max(position.start_lsn, position.lsn)
    if confirmed <= start or config.mismatch in ("trust_slot", "trust_greater_lsn"):
        return None
    text = (
        f"The replication slot {config.slot} is at {lsn_text(confirmed)}, {_size(confirmed - start)} of log ahead of the "
        f"stored offset "
        f"{lsn_text(start)}. Changes between them, if there are any, are left out: something else has advanced the slot"
    )
    if config.mismatch == "trust_offset":
        raise LogLostError(f"{text}, and offset.mismatch.strategy is trust_offset. {REPAIR}")
    return f"{text}, such as lsn.flush.mode=connector_and_driver of Debezium."


def lost_message(config: PostgresConfig, offset: Mapping[str, Any], position: Position) -> str:
    """Return Debezium's error for a position that the log no longer has."""
    prefix, database = config.common.prefix, config.address.database
    moment = dt.datetime.fromtimestamp(position.micros / 1e6, dt.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    commit = "null" if position.commit_lsn is None else f"LSN{{{lsn_text(position.commit_lsn)}}}"
    lsn = f"LSN{{{lsn_text(position.lsn)}}}"
    return (
        "The connector is trying to read change stream starting at PostgresOffsetContext "
        "[sourceInfoSchema=Schema{io.debezium.connector.postgresql.Source:STRUCT}, "
        f"sourceInfo=source_info[server='{prefix}'db='{database}', lsn={lsn}, txId={position.xid}, messageType={position.kind}, "
        f"lastCommitLsn={commit}, timestamp={moment}, snapshot=FALSE, schema=, table=], lastSnapshotRecord=false, "
        f"lastCompletelyProcessedLsn={lsn}, lastCommitLsn={commit}, streamingStoppingLsn=null, "
        f"transactionContext=TransactionContext [currentTransactionId={offset.get('transaction_id', 'null')}, "
        "perTableEventCount={}, totalEventCount=0], incrementalSnapshotContext=IncrementalSnapshotContext [windowOpened=false, "
        "chunkEndPosition=null, dataCollectionsToSnapshot=[], lastEventKeySent=null, maximumKey=null]], but this is no longer "
        "available on the server. Reconfigure the connector to use a snapshot mode when needed."
    )


def _size(count: int) -> str:
    return f"{count:,} bytes"
