"""Transactions of the log are held until their end, in memory or in a file, in MariaDB's and in MySQL's form."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Sequence

import pytest

from sluiceway.connectors.cdc.mysql import whole_transactions
from sluiceway.connectors.cdc.mysql.binlog.events import CHECKSUM_BYTES, HEADER_BYTES, EventType
from sluiceway.connectors.cdc.mysql.whole_transactions import WholeTransactions
from sluiceway.errors import ConnectError
from unit.connectors.cdc.mysql.binlog import mariadb_events as events


def packet(kind: int, body: bytes = b"") -> bytes:
    size = HEADER_BYTES + len(body) + CHECKSUM_BYTES
    return struct.pack("<IBIIIH", 1, kind, 7, size, 500, 0) + body + bytes(CHECKSUM_BYTES)


def query(sql: str) -> bytes:
    return packet(EventType.QUERY, struct.pack("<IIBHH", 1, 0, 2, 0, 0) + b"tt\0" + sql.encode())


def gtid(*, standalone: bool) -> bytes:
    return packet(EventType.MARIADB_GTID, struct.pack("<QIB", 1, 0, 1 if standalone else 0x0C) + bytes(6))


ROW, XID, HEARTBEAT = packet(EventType.WRITE_ROWS_V1), packet(EventType.XID), packet(EventType.HEARTBEAT)
BEGIN = {
    "mariadb": (gtid(standalone=False),),
    "mysql": (packet(EventType.GTID, bytes(25)), query("BEGIN")),
    "old": (query("BEGIN"),),
}
Seen = list[tuple[bytes, tuple[tuple[int, int], ...], bool]]


def passed_on(*packets: bytes, whole: WholeTransactions | None = None) -> tuple[Seen, list[int]]:
    """Return the packets as they are passed on, with what is known then, and behind how many packets each was."""
    whole, seen, read, behind = whole or WholeTransactions(), [], 0, []

    def source() -> list[memoryview]:
        nonlocal read
        for each in (events.FORMAT, *packets):
            read += 1
            yield memoryview(each)

    for each in whole.packets(source()):
        seen.append((bytes(each), whole.taken_back, whole.passes_on))
        behind.append(read)
    return seen[1:], behind[1:]


@pytest.mark.parametrize("form", BEGIN)
@pytest.mark.parametrize(
    "end", [XID, query("COMMIT"), query("ROLLBACK"), packet(EventType.XA_PREPARE), query("XA COMMIT X'',X'',1")]
)
def test_a_transaction_is_passed_on_when_it_has_ended(form: str, end: bytes) -> None:
    inside = [
        *BEGIN[form],
        ROW,
        query("SAVEPOINT `a`"),
        ROW,
        query("ROLLBACK TO `a`"),
        query("create temporary table x (a int)"),
        ROW,
        end,
    ]
    seen, behind = passed_on(*inside, HEARTBEAT)

    spans = ((0, 3),) if end == query("ROLLBACK") else ((1, 2),)
    assert [each for each, _, _ in seen] == [*inside, HEARTBEAT]
    assert {spans_ for _, spans_, _ in seen[:-1]} == {spans}
    assert behind == [len(inside) + 1] * len(inside) + [len(inside) + 2]
    assert [more for _, _, more in seen] == [True] * (len(inside) - 1) + [False, False]
    assert seen[-1][1] == ()


def test_statements_of_their_own_are_passed_on_at_once() -> None:
    lone = [gtid(standalone=True), query("truncate t"), packet(EventType.GTID, bytes(25)), query("drop table t"), ROW, HEARTBEAT]
    seen, behind = passed_on(*lone)

    assert [each for each, _, _ in seen] == lone
    assert behind == [2, 3, 5, 5, 6, 7]  # MySQL's GTID waits for the statement behind it


def test_rows_are_numbered_in_each_transaction() -> None:
    back = [*BEGIN["mariadb"], query("SAVEPOINT `a`"), ROW, query("ROLLBACK TO `a`"), ROW, XID]
    seen, _ = passed_on(ROW, ROW, *back, *back)

    assert {spans for _, spans, _ in seen[2:]} == {((0, 1),)}


@pytest.mark.parametrize("limit", [0, 10, 1 << 20])
def test_a_large_transaction_is_held_in_a_file(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_transactions, "MEMORY_BYTES", limit)
    inside = [*BEGIN["mysql"], *(packet(EventType.WRITE_ROWS_V1, bytes([number]) * number) for number in range(200)), XID]

    assert [each for each, _, _ in passed_on(*inside)[0]] == inside


def test_a_file_that_cannot_be_written_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    class _Full(tempfile.SpooledTemporaryFile):  # type: ignore[type-arg]
        def write(self, *_: object) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "SpooledTemporaryFile", _Full)
    with pytest.raises(ConnectError, match=r"temporary folder .*No space left on device.*TMPDIR"):
        passed_on(*BEGIN["mariadb"], ROW, XID)


def test_a_transaction_that_another_file_follows_is_left_out() -> None:
    later = [*BEGIN["mariadb"], ROW, XID]
    rotate = packet(EventType.ROTATE, bytes(8) + b"bin.000002")
    for new_file in ([rotate], [events.FORMAT]):
        seen, _ = passed_on(*BEGIN["mariadb"], ROW, query("SAVEPOINT `a`"), *new_file, *later)
        assert [each for each, _, _ in seen] == [*new_file, *later]


def test_no_event_is_lost_behind_an_end_that_is_not_known() -> None:
    first: Sequence[bytes] = [*BEGIN["mariadb"], ROW, query("END OF A KIND")]
    seen, _ = passed_on(*first, *BEGIN["mariadb"], ROW, XID)

    assert [each for each, _, _ in seen] == [*first, *BEGIN["mariadb"], ROW, XID]


def test_a_lost_connection_leaves_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []
    original = tempfile.SpooledTemporaryFile.close
    monkeypatch.setattr(tempfile.SpooledTemporaryFile, "close", lambda self: (closed.append(self), original(self)))
    passed_on(*BEGIN["mariadb"], ROW)
    assert len(closed) == 1
