"""Gaps in a server's binary log behind a stored position."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from sluiceway.connectors.cdc.mysql.binlog.gtids import MySqlGtidSet, source_of
from sluiceway.connectors.cdc.mysql.binlog.stream import StartPosition
from sluiceway.connectors.cdc.mysql.log_state import LogState, danger_of, find_gap

_FILES = (("bin.000003", 900), ("bin.000004", 500))
_FILE = LogState(_FILES)
_MARIADB = LogState(_FILES, "0-1-50,1-2-9", "0-1-20")
_SOURCE = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
_MYSQL = LogState(_FILES, f"{_SOURCE}:1-50", f"{_SOURCE}:1-20", mariadb=False)


@pytest.mark.parametrize(
    ("start", "log", "gap"),
    [
        (StartPosition("", 0), _FILE, None),
        (StartPosition("bin.000003", 4), _FILE, None),
        (StartPosition("bin.000004", 500), _FILE, None),
        (StartPosition("bin.000004", 501), _FILE, "bin.000004 has 500 bytes, 1 fewer"),
        (StartPosition("bin.000001", 77), _FILE, "from bin.000001:77 to bin.000003:4 are missing"),
        (StartPosition("bin.000009", 4), _FILE, "ends with bin.000004.*reset"),
        (StartPosition("bin.000001", 4), LogState(()), "no binary log"),
        (StartPosition("x", 4, "0-1-20,1-2-9"), _MARIADB, None),
        (StartPosition("x", 4, "0-7-50,1-2-9"), _MARIADB, None),
        (StartPosition("x", 4, "0-1-15,1-2-9"), _MARIADB, r"Transactions 0-\*-16 to 0-\*-20 are missing"),
        (StartPosition("x", 4, "0-1-51"), _MARIADB, "ends at GTID '0-1-50,1-2-9', before the stored offset '0-1-51'"),
        (StartPosition("x", 4, "0-1-5"), replace(_MARIADB, executed="", purged=""), "reset"),
        (StartPosition("x", 4, f"{_SOURCE}:1-20"), _MYSQL, None),
        (StartPosition("x", 4, f"{_SOURCE}:1-18"), _MYSQL, f"transactions {_SOURCE}:19-20 from its log"),
        (StartPosition("x", 4, f"{_SOURCE}:1-51"), _MYSQL, f"not executed the transactions {_SOURCE}:51"),
    ],
)
def test_gaps(start: StartPosition, log: LogState, gap: str | None) -> None:
    found = find_gap(start, log)
    assert (found is None) if gap is None else re.search(gap, found or ""), found


_OTHER = "7c1de3f2-3fd2-11e6-9cdc-42010af000bc"


@pytest.mark.parametrize(
    ("start", "log", "kept", "gap"),
    [
        ("0-1-15,1-2-9", _MARIADB, "1-2", None),
        ("0-1-15,1-2-9", _MARIADB, "0-1", r"Transactions 0-\*-16 to 0-\*-20 are missing"),
        ("0-1-15,1-2-99", _MARIADB, "0-9", None),
        ("0-7-40", _MARIADB, "0-7", None),
        ("0-7-60", _MARIADB, "0-7", "ends at GTID"),
        (f"{_SOURCE}:1-50,{_OTHER}:1-9", _MYSQL, _SOURCE, None),
        (f"{_SOURCE}:1-50,{_OTHER}:1-9", _MYSQL, _OTHER, f"not executed the transactions {_OTHER}:1-9"),
        (f"{_SOURCE}:tag:1-9,{_SOURCE}:1-20", _MYSQL, _SOURCE, f"{_SOURCE}:tag:1-9"),
        (f"{_OTHER}:1-9", _MYSQL, _SOURCE, None),
    ],
)
def test_gaps_of_the_sources_to_keep(start: str, log: LogState, kept: str, gap: str | None) -> None:
    found = find_gap(StartPosition("x", 4, start), log, lambda source: source == kept)
    assert (found is None) if gap is None else re.search(gap, found or ""), found


@pytest.mark.parametrize(("gtid", "source"), [("0-1-15", "0-1"), (f"{_SOURCE}:5", _SOURCE), (f"{_SOURCE}:tag:5", _SOURCE)])
def test_the_source_of_a_gtid(gtid: str, source: str) -> None:
    assert source_of(gtid) == source


@pytest.mark.parametrize(
    ("one", "other", "left"),
    [("1-10", "3-4", "1-2:5-10"), ("1-10", "1-10", ""), ("1-10", "5-20", "1-4"), ("1-3:7", "2:7", "1:3"), ("5", "6", "5")],
)
def test_differences_of_gtid_sets(one: str, other: str, left: str) -> None:
    found = MySqlGtidSet.parse(f"{_SOURCE}:{one}").minus(MySqlGtidSet.parse(f"{_SOURCE}:{other}"))
    assert str(found) == (f"{_SOURCE}:{left}" if left else "")


def test_bytes_behind_a_position() -> None:
    assert [_FILE.behind(*each) for each in (("bin.000003", 100), ("bin.000004", 500), ("bin.000001", 4))] == [1300, 0, 0]


def test_a_warning_comes_before_the_log_is_purged() -> None:
    kept = replace(_FILE, keeps=1000)
    assert danger_of(499, 10, kept) is None
    assert danger_of(900, 0, kept) is None
    assert danger_of(900, 10, _FILE) is None
    assert "may purge this log in 100 s" in (danger_of(900, 10, kept) or "")
