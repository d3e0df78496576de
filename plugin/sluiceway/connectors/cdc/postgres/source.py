"""The source block and the source offsets of the PostgreSQL connector. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sluiceway.connectors.cdc.envelope import source_schema
from sluiceway.data import Struct
from sluiceway.data.schema import OPTIONAL_INT64_SCHEMA, OPTIONAL_STRING_SCHEMA, STRING_SCHEMA

VERSION = "3.7.0.Final"
"""The version of Debezium whose records these are."""
NAME = "postgresql"

SOURCE = source_schema(
    "io.debezium.connector.postgresql.Source",
    [
        ("schema", STRING_SCHEMA),
        ("table", STRING_SCHEMA),
        ("txId", OPTIONAL_INT64_SCHEMA),
        ("lsn", OPTIONAL_INT64_SCHEMA),
        ("xmin", OPTIONAL_INT64_SCHEMA),
        ("origin", OPTIONAL_STRING_SCHEMA),
        ("origin_lsn", OPTIONAL_INT64_SCHEMA),
    ],
)


@dataclass(slots=True)
class Position:
    """A position in the log and in the transaction there, as offsets have it."""

    lsn: int = 0
    processed: int = 0
    commit_lsn: int | None = None
    kind: str | None = None
    xid: int | None = None
    micros: int = 0
    origin: str | None = None
    origin_lsn: int | None = None

    @classmethod
    def of(cls, offset: Mapping[str, Any]) -> Position:
        """Return the position of a stored offset, ours or Debezium's."""
        commit, xid, processed = offset.get("lsn_commit"), offset.get("txId"), offset.get("lsn_proc")
        return cls(
            lsn=int(offset.get("lsn") or 0) if processed is None else int(processed),
            processed=int(offset.get("lsn_events_processed") or 0) if processed is not None else 0,
            commit_lsn=None if commit is None else int(commit),
            kind=offset.get("messageType"),
            xid=None if xid is None else int(xid),
            micros=int(offset.get("ts_usec") or 0),
        )

    @property
    def start_lsn(self) -> int:
        """The begin of reading: behind the last transaction that is stored entirely."""
        return self.lsn if self.commit_lsn is None else self.commit_lsn

    def move(self, lsn: int, kind: str, count: int = 1) -> None:
        """Move behind the last of successive events of a transaction, ``count`` of which have its position."""
        self.processed = self.processed + count if self.lsn == lsn and self.kind != "COMMIT" else count
        self.lsn, self.kind = lsn, kind

    def offset(self, more: Mapping[str, Any]) -> dict[str, Any]:
        """Return the source offset of an event of the log."""
        commit = self.commit_lsn
        if not more and self.processed and self.kind is not None and commit is not None and self.xid is not None:
            return {  # of nearly all events
                "lsn_proc": self.lsn,
                "lsn_events_processed": self.processed,
                "messageType": self.kind,
                "lsn_commit": commit,
                "lsn": self.lsn,
                "txId": self.xid,
                "ts_usec": self.micros,
            }
        found: dict[str, Any] = {**more, "lsn_proc": self.lsn}
        if self.processed:
            found["lsn_events_processed"] = self.processed
        if self.kind is not None:
            found["messageType"] = self.kind
        if self.commit_lsn is not None:
            found["lsn_commit"] = self.commit_lsn
        found["lsn"] = self.lsn
        if self.xid is not None:
            found["txId"] = self.xid
        found["ts_usec"] = self.micros
        return found


def moved_offset(offset: Mapping[str, Any], lsn: int) -> dict[str, Any]:
    """Return a stored offset, moved to a later position between transactions, in the form that it has."""
    found = {key: value for key, value in offset.items() if key != "lsn_events_processed"}
    found.update({key: lsn for key in ("lsn_proc", "lsn_commit", "lsn") if key in found})
    if "messageType" in found:
        found["messageType"] = "COMMIT"
    return found


def sequence(commit_lsn: int | None, lsn: int | None) -> str:
    """Return the positions of the last commit and of an event as ``source.sequence`` has them."""
    commit = "null" if commit_lsn is None else f'"{commit_lsn}"'
    return f"[{commit},null]" if lsn is None else f'[{commit},"{lsn}"]'


class Sources:
    """Makes source blocks for one connector."""

    def __init__(self, prefix: str, database: str) -> None:
        self._prefix = prefix
        self._database = database

    def snapshot(self, marker: str, schema: str, table: str, position: Position) -> Struct:
        """Return the source block of a row of a snapshot."""
        return self._block(marker, sequence(None, position.lsn), schema, table, position.xid, position.lsn, position)

    def incremental(self, marker: str, schema: str, table: str, position: Position) -> Struct:
        """Return the source block of a row of an incremental snapshot, which belongs to no transaction."""
        order = sequence(position.commit_lsn, position.lsn)
        return self._block(marker, order, schema, table, None, None, position)

    def stream(self, schema: str, table: str, position: Position) -> Struct:
        """Return the source block of an event of the log."""
        order = sequence(position.commit_lsn, position.lsn)
        return self._block(None, order, schema, table, position.xid, position.lsn, position)

    def columns(self, schema: str, table: str, lsns: Any, order: Any, micros: Any, xids: Any) -> list[Any]:
        """Return the values of the source blocks of many events of the log, without origin.

        Arrays have texts of JSON, but that of ``micros`` numbers; a single value is that of all events.
        """
        times: list[Any] = [micros // 1000, micros, micros * 1000] if isinstance(micros, int) else _times(micros)
        head = [VERSION, NAME, self._prefix, times[0], None, self._database, order, *times[1:]]
        return [*head, schema, table, xids, lsns, None, None, None]

    def _block(
        self,
        marker: str | None,
        order: str,
        schema: str,
        table: str,
        xid: int | None,
        lsn: int | None,
        position: Position,
    ) -> Struct:
        micros = position.micros
        head = [VERSION, NAME, self._prefix, micros // 1000, marker, self._database, order, micros, micros * 1000]
        return Struct.of(SOURCE, [*head, schema, table, xid, lsn, None, position.origin, position.origin_lsn])


def _times(micros: Any) -> list[Any]:
    import pyarrow as pa

    numbers = micros.to_numpy()
    return [pa.array(each).cast(pa.utf8()) for each in (numbers // 1000, numbers, numbers * 1000)]
