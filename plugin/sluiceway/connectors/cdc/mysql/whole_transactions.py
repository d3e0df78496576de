"""Holds the events of each transaction of the binary log until its end, which tells which of its rows are taken back.

Servers send a transaction when it has ended, so this costs no time but that of its transfer. What is too large for the memory is
held in a temporary file.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterable, Iterator
from enum import Enum, auto

from sluiceway.connectors.cdc.mysql.binlog.events import (
    CHECKSUM_BYTES,
    GTIDS,
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
from sluiceway.connectors.cdc.mysql.savepoints import Savepoints, Span
from sluiceway.errors import ConnectError

log = logging.getLogger(__name__)

MEMORY_BYTES = 8 << 20
"""The size of a transaction from which on a temporary file holds it."""

_LENGTH_BYTES = 4
_ANNOUNCED = GTIDS - {EventType.MARIADB_GTID}
_ENDS = frozenset({EventType.XID, EventType.XA_PREPARE, EventType.INCIDENT})
_NEW_FILE = frozenset({EventType.FORMAT_DESCRIPTION, EventType.ROTATE})
_BEGINS = ("BEGIN", "XA START", "XA BEGIN")
_COMMITS = ("COMMIT", "XA COMMIT")
_ROLLS_BACK = ("ROLLBACK", "XA ROLLBACK")


class _State(Enum):
    """Where an event leaves a transaction."""

    OUTSIDE = auto()
    ANNOUNCED = auto()
    """Behind MySQL's GTID, before the statement that tells whether a transaction follows."""
    INSIDE = auto()
    ENDED = auto()


class WholeTransactions:
    """Passes packets of a dump on, those of a transaction together. One thread uses it."""

    def __init__(self) -> None:
        self.taken_back: tuple[Span, ...] = ()
        """The row events that the transaction takes back whose packets are passed on."""
        self.unknown: list[str] = []
        """Statements of that transaction whose savepoint the log does not have."""
        self.passes_on = False
        """Whether more packets of that transaction follow at once."""
        self._has_checksums = True
        self._state = _State.OUTSIDE
        self._savepoints = Savepoints()
        self._held: _Held | None = None

    def packets(self, packets: Iterable[memoryview]) -> Iterator[memoryview]:
        """Yield the packets. A transaction that another file of the log follows was not committed, and is left out.

        Raises:
            ConnectError: the temporary file cannot hold a transaction.
        """
        try:
            for packet in packets:
                header = read_header(packet)
                if header.type in _NEW_FILE:
                    self._see_new_file(header, packet)
                elif header.type in GTIDS and self._held is not None:  # the end of the one before was not recognized
                    yield from self._release(self._held)
                self._follow(header, packet)
                if self._state is _State.OUTSIDE:
                    yield packet
                    continue
                self._held = self._held or _Held()
                self._held.add(packet)
                if self._state is _State.ENDED:
                    yield from self._release(self._held)
        finally:
            self._drop()

    def _release(self, held: _Held) -> Iterator[memoryview]:
        self.taken_back, self.unknown = self._savepoints.taken_back, self._savepoints.unknown
        self._enter(_State.OUTSIDE)
        for packet, self.passes_on in held.packets():
            yield packet
        self.taken_back, self.unknown = (), []
        self._drop()

    def _drop(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.close()

    def _see_new_file(self, header: Header, packet: memoryview) -> None:
        if header.type == EventType.FORMAT_DESCRIPTION:
            self._has_checksums = FormatDescription.read(packet).has_checksums
        if self._state is not _State.OUTSIDE:
            log.info("The binary log ends within a transaction, which the server did not commit. Its rows are left out.")
        self._drop()
        self._enter(_State.OUTSIDE)

    def _body(self, packet: memoryview) -> memoryview:
        return packet[HEADER_BYTES : len(packet) - (CHECKSUM_BYTES if self._has_checksums else 0)]

    def _follow(self, header: Header, packet: memoryview) -> None:
        """Set the state behind a packet."""
        if header.type == EventType.MARIADB_GTID:
            standalone = Gtid.read_mariadb(header, self._body(packet)).standalone
            self._enter(_State.OUTSIDE if standalone else _State.INSIDE)
        elif header.type in _ANNOUNCED:
            self._enter(_State.ANNOUNCED)
        elif header.type == EventType.TRANSACTION_PAYLOAD:
            for inner in payload_events(self._body(packet)):
                self._follow_event(read_header(inner), inner[HEADER_BYTES:])
        else:
            self._follow_event(header, self._body(packet))

    def _follow_event(self, header: Header, body: memoryview) -> None:
        if header.type in OPERATIONS:
            self._savepoints.add_row_event()
        elif header.type in _ENDS:
            self._end()
        elif header.type in (EventType.QUERY, EventType.QUERY_COMPRESSED):
            self._follow_statement(Query.read(body, compressed=header.type == EventType.QUERY_COMPRESSED).sql.strip())

    def _follow_statement(self, sql: str) -> None:
        start = sql[:12].upper()
        if start.startswith(_BEGINS):
            if self._state is _State.OUTSIDE:
                self._enter(_State.INSIDE)
            self._state = _State.INSIDE
        elif self._savepoints.execute(sql):
            return
        elif start.startswith(_ROLLS_BACK):
            self._savepoints.roll_back()
            self._end()
        elif start.startswith(_COMMITS) or self._state is _State.ANNOUNCED:
            self._end()

    def _enter(self, state: _State) -> None:
        self._state, self._savepoints = state, Savepoints()

    def _end(self) -> None:
        if self._state is not _State.OUTSIDE:
            self._state = _State.ENDED


class _Held:
    """The packets of a transaction, in memory or in a temporary file."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=MEMORY_BYTES)  # noqa: SIM115 (closed by its owner)
        self._count = 0

    def add(self, packet: memoryview) -> None:
        try:
            self._file.write(len(packet).to_bytes(_LENGTH_BYTES, "little"))
            self._file.write(packet)
        except OSError as error:
            raise ConnectError(
                f"A transaction of the binary log is too large for the temporary folder {tempfile.gettempdir()} "
                f"({error.strerror}), which holds it until its end. Make room there, or set TMPDIR to another folder."
            ) from error
        self._count += 1

    def packets(self) -> Iterator[tuple[memoryview, bool]]:
        """Yield the packets, each with whether more follow."""
        self._file.seek(0)
        for left in range(self._count - 1, -1, -1):
            size = int.from_bytes(self._file.read(_LENGTH_BYTES), "little")
            yield memoryview(self._file.read(size)), left > 0

    def close(self) -> None:
        self._file.close()
