"""Messages of pgoutput, built by hand from PostgreSQL's documentation of the protocol."""

from __future__ import annotations

import struct

from sluiceway.connectors.cdc.columns import UNAVAILABLE
from sluiceway.connectors.cdc.postgres import pgoutput


def _row(*values: str | None) -> bytes:
    cells = [
        b"n" if value is None else b"u" if value == "?" else b"t" + struct.pack(">I", len(value.encode())) + value.encode()
        for value in values
    ]
    return struct.pack(">H", len(values)) + b"".join(cells)


def test_begin_and_commit_count_from_1970() -> None:
    assert pgoutput.decode(b"B" + struct.pack(">qqI", 7, 5, 42)) == pgoutput.Begin(7, pgoutput.POSTGRES_EPOCH_MICROS + 5, 42)
    assert pgoutput.decode(b"C" + struct.pack(">BQQq", 0, 1, 2, 3)) == pgoutput.Commit(1, 2, pgoutput.POSTGRES_EPOCH_MICROS + 3)


def test_a_relation_has_its_columns() -> None:
    columns = b"\x01id\0" + struct.pack(">Ii", 23, -1) + b"\0a\0" + struct.pack(">Ii", 25, -1)
    decoded = pgoutput.decode(b"R" + struct.pack(">I", 9) + b"public\0t\0d" + struct.pack(">H", 2) + columns)
    id_, a = pgoutput.RelationColumn("id", 23, -1, key=True), pgoutput.RelationColumn("a", 25, -1, key=False)
    assert decoded == pgoutput.Relation(9, "public", "t", "d", (id_, a))


def test_rows_have_text_null_and_unchanged_values() -> None:
    assert pgoutput.decode(b"I" + struct.pack(">I", 9) + b"N" + _row("żółw", None)) == pgoutput.Insert(9, ["żółw", None])
    updated = pgoutput.decode(b"U" + struct.pack(">I", 9) + b"K" + _row("1", None) + b"N" + _row("2", "?"))
    assert updated == pgoutput.Update(9, ["1", None], False, ["2", UNAVAILABLE])
    assert pgoutput.decode(b"D" + struct.pack(">I", 9) + b"O" + _row("1")) == pgoutput.Delete(9, ["1"], True)


def test_truncate_names_all_tables() -> None:
    assert pgoutput.decode(b"T" + struct.pack(">IBII", 2, 0, 8, 9)) == pgoutput.Truncate((8, 9))


def test_a_logical_message_has_prefix_and_content() -> None:
    data = b"M" + struct.pack(">BQ", 1, 77) + b"pfx\0" + struct.pack(">I", 3) + b"abc"
    assert pgoutput.decode(data) == pgoutput.Message(True, 77, "pfx", b"abc")


def test_other_messages_are_named() -> None:
    assert pgoutput.decode(b"Y....") == pgoutput.Other(b"Y")
