"""Keeps prepared XA transactions, whose rows wait for their commit, and finds their rows in the log again. No I/O."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from sluiceway.connectors.cdc.mysql.binlog.events import (
    CHECKSUM_BYTES,
    HEADER_BYTES,
    EventType,
    FormatDescription,
    Gtid,
    Header,
    Query,
    read_header,
)
from sluiceway.connectors.cdc.mysql.binlog.payload import payload_events
from sluiceway.connectors.cdc.mysql.binlog.rows import OPERATIONS
from sluiceway.connectors.cdc.mysql.binlog.stream import StartPosition
from sluiceway.connectors.cdc.mysql.offsets import LogPosition
from sluiceway.connectors.cdc.mysql.savepoints import Span, is_taken_back
from sluiceway.errors import ConnectError

PREPARED_KEY = "sluiceway_xa_prepared"
"""The key of the source offset that tells where prepared transactions begin in the log."""

_STATEMENT = re.compile(r"XA (START|COMMIT|ROLLBACK) X'([0-9a-f]*)',X'([0-9a-f]*)',(\d+)", re.IGNORECASE)
_LENGTHS = (5, 9, 13)


class PreparedTransactions:
    """Where prepared transactions begin in the log, and which of their row events they take back, by their ids.

    Offsets of the position have them. Used by one thread.
    """

    def __init__(self, position: LogPosition) -> None:
        self._starts: dict[str, StartPosition] = {}
        self._taken_back: dict[str, tuple[Span, ...]] = {}
        position.add_extra(self.offset)

    def load(self, offset: Mapping[str, Any]) -> None:
        """Continue with those of a stored offset."""
        stored = json.loads(str(offset.get(PREPARED_KEY) or "{}"))
        self._starts = {xid: StartPosition(*start[:3]) for xid, start in stored.items()}
        self._taken_back = {xid: tuple((first, end) for first, end in start[3]) for xid, start in stored.items() if start[3:]}

    def offset(self) -> dict[str, Any]:
        """Return the part of the source offset that keeps them."""
        if not self._starts:
            return {}
        starts = {
            xid: [start.file, start.position, start.gtids, *([self._taken_back[xid]] if xid in self._taken_back else [])]
            for xid, start in self._starts.items()
        }
        return {PREPARED_KEY: json.dumps(starts, separators=(",", ":"))}

    def add(self, xid: str, start: StartPosition, taken_back: tuple[Span, ...] = ()) -> None:
        self._starts[xid] = start
        if taken_back:
            self._taken_back[xid] = taken_back

    def start(self, xid: str) -> StartPosition | None:
        return self._starts.get(xid)

    def taken_back(self, xid: str) -> tuple[Span, ...]:
        """Return the row events that a transaction takes back."""
        return self._taken_back.get(xid, ())

    def remove(self, xid: str) -> None:
        self._starts.pop(xid, None)
        self._taken_back.pop(xid, None)


def statement_xid(sql: str) -> str | None:
    """Return the id in an XA statement of the log, in the form of ``prepared_xid``."""
    match = _STATEMENT.match(sql)
    return None if match is None else f"{match[2].lower()},{match[3].lower()},{match[4]}"


def prepared_xid(body: memoryview) -> tuple[str, bool]:
    """Return the id in an XA_PREPARE event, and whether the transaction is committed at once (``ONE PHASE``)."""
    kind, size, _ = (int.from_bytes(body[end - 4 : end], "little") for end in _LENGTHS)
    data = bytes(body[_LENGTHS[-1] :])
    return f"{data[:size].hex()},{data[size:].hex()},{kind}", bool(body[0])


class PreparedEvent(NamedTuple):
    """A table map or row event of a prepared transaction. ``id_bytes`` is the size of its table id."""

    header: Header
    body: memoryview
    id_bytes: int


def prepared_events(packets: Iterable[memoryview], xid: str, taken_back: tuple[Span, ...] = ()) -> Iterator[PreparedEvent]:
    """Yield the events of a transaction that it does not take back, from packets of the log that begin at or before it.

    Raises:
        ConnectError: the log has the transaction's end, but not its rows.
    """
    is_wanted = False
    numbers = itertools.count()
    for header, body, form in _events(packets):
        if header.type == EventType.MARIADB_GTID:
            is_wanted = Gtid.read_mariadb(header, body).xid == xid
        elif header.type == EventType.QUERY and statement_xid(sql := Query.read(body).sql) is not None:
            is_wanted = statement_xid(sql) == xid
            if is_wanted and not sql.upper().startswith("XA START"):
                break
        elif header.type == EventType.XA_PREPARE and is_wanted:
            return
        elif is_wanted and (
            header.type == EventType.TABLE_MAP or (header.type in OPERATIONS and not is_taken_back(next(numbers), taken_back))
        ):
            yield PreparedEvent(header, body, 6 if form is None else form.table_id_bytes(header.type))
    raise ConnectError(
        f"The binary log has the commit of the XA transaction {xid}, but its rows no longer. Take a snapshot of its tables."
    )


def _events(packets: Iterable[memoryview]) -> Iterator[tuple[Header, memoryview, FormatDescription | None]]:
    form: FormatDescription | None = None
    for packet in packets:
        header = read_header(packet)
        if header.type == EventType.FORMAT_DESCRIPTION:
            form = FormatDescription.read(packet)
            continue
        end = len(packet) - (CHECKSUM_BYTES if form is None or form.has_checksums else 0)
        body = packet[HEADER_BYTES:end]
        if header.type != EventType.TRANSACTION_PAYLOAD:
            yield header, body, form
            continue
        for inner in payload_events(body):
            yield read_header(inner), inner[HEADER_BYTES:], form
