from __future__ import annotations

import struct
import uuid

from sluiceway.connectors.cdc.mysql.binlog.gtids import MariaDbGtidSet, MySqlGtidSet

SOURCE = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def test_mariadb_has_one_position_a_domain() -> None:
    gtids = MariaDbGtidSet.parse("0-1-5,1-2-7")

    gtids.add("0-3-6")

    assert str(gtids) == "0-3-6,1-2-7"
    assert gtids.contains("0-1-5")
    assert not gtids.contains("1-2-8")
    assert not gtids.contains("2-1-1")


def test_mysql_merges_intervals() -> None:
    gtids = MySqlGtidSet.parse(f"{SOURCE}:1-3:5,\n{SOURCE}:10")

    gtids.add(f"{SOURCE}:4")
    gtids.add(f"{SOURCE}:11")

    assert str(gtids) == f"{SOURCE}:1-5:10-11"
    assert gtids.contains(f"{SOURCE}:4")
    assert not gtids.contains(f"{SOURCE}:6")


def test_mysql_sets_contain_others() -> None:
    outer = MySqlGtidSet.parse(f"{SOURCE}:1-10")

    assert outer.contains_all(MySqlGtidSet.parse(f"{SOURCE}:2-3:9"))
    assert not outer.contains_all(MySqlGtidSet.parse(f"{SOURCE}:9-11"))


def test_mysql_encodes_half_open_intervals() -> None:
    encoded = MySqlGtidSet.parse(f"{SOURCE}:1-3").encoded()

    assert encoded == struct.pack("<Q", 1) + uuid.UUID(SOURCE).bytes + struct.pack("<QQQ", 1, 1, 4)


def test_sets_with_tags_are_encoded_with_them() -> None:
    gtids = MySqlGtidSet.parse(f"{SOURCE}:1-3:blue:7")
    gtids.add(f"{SOURCE}:blue:8")

    assert str(gtids) == f"{SOURCE}:1-3,{SOURCE}:blue:7-8"
    assert gtids.encoded() == b"".join(
        (
            bytes([1, 2, 0, 0, 0, 0, 0, 1]),
            uuid.UUID(SOURCE).bytes + b"\x00" + struct.pack("<QQQ", 1, 1, 4),
            uuid.UUID(SOURCE).bytes + b"\x08blue" + struct.pack("<QQQ", 1, 7, 9),
        )
    )


def test_sets_are_filtered_by_source() -> None:
    assert str(MariaDbGtidSet.parse("0-1-5,1-2-7").filtered(lambda source: source == "1-2")) == "1-2-7"
    assert str(MySqlGtidSet.parse(f"{SOURCE}:1-3").filtered(lambda _source: False)) == ""
