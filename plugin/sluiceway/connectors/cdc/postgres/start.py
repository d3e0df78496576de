"""Decides what a task reads first, by config, stored offset and slot. No I/O."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any, NamedTuple

from sluiceway.connectors.cdc.postgres.config import PostgresConfig
from sluiceway.connectors.cdc.postgres.connection import lsn_text
from sluiceway.connectors.cdc.postgres.replication import Slot
from sluiceway.connectors.cdc.postgres.source import Position
from sluiceway.errors import ConnectError


class LogLostError(ConnectError):
    """The log no longer has the position of the stored offset."""

    java_class = "io.debezium.DebeziumException"


class Plan(NamedTuple):
    """What to read: a snapshot, the log, or both. ``position`` is where the log goes on, or None for a new start."""

    snapshot: bool
    stream: bool
    position: Position | None


def plan_start(config: PostgresConfig, offset: Mapping[str, Any] | None, slot: Slot | None) -> Plan:
    """Return what to read. Raises ConnectError for a mode that is not supported."""
    mode = config.common.snapshots.mode
    finished = offset is not None and not (offset.get("snapshot") and not offset.get("snapshot_completed"))
    position = Position.of(offset) if offset is not None and finished else None
    lost = slot is None or slot.lost
    if mode == "custom":
        raise ConnectError("snapshot.mode=custom needs a Java snapshotter, which cannot be loaded. Choose another mode.")
    if mode == "initial_only":
        return Plan(position is None, False, position)
    if mode == "always":
        return Plan(True, True, None)
    if mode == "no_data":
        return Plan(False, True, position)
    if mode == "when_needed":
        return Plan(position is None or lost, True, None if lost else position)
    if mode == "configuration_based":
        needed = (position is None and config.snapshot_data) or (position is not None and lost and config.snapshot_on_gap)
        return Plan(needed, config.start_stream, None if needed else position)
    return Plan(position is None, True, position)


def may_continue_snapshot(config: PostgresConfig, slot: Slot | None) -> bool:
    """Tell whether an interrupted snapshot may go on beside the log, instead of starting again."""
    if slot is None or slot.lost:
        return False
    mode = config.common.snapshots.mode
    return mode in ("initial", "when_needed") or (mode == "configuration_based" and config.start_stream)


def check_log_available(config: PostgresConfig, offset: Mapping[str, Any], position: Position) -> None:
    """Raise LogLostError, because the slot of a stored offset does not exist any more. The text is Debezium's."""
    prefix, database = config.common.prefix, config.address.database
    moment = dt.datetime.fromtimestamp(position.micros / 1e6, dt.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    commit = "null" if position.commit_lsn is None else f"LSN{{{lsn_text(position.commit_lsn)}}}"
    lsn = f"LSN{{{lsn_text(position.lsn)}}}"
    raise LogLostError(
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
