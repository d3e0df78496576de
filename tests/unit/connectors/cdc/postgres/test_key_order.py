"""Values of keys as PostgreSQL's literals."""

from __future__ import annotations

import pytest

from sluiceway.connectors.cdc.postgres.key_order import literal


@pytest.mark.parametrize(
    ("value", "written"),
    [("a'b", "'a''b'"), ("a\\'b", " E'a\\\\''b'"), (b"\x01\xff", " E'\\\\x01ff'"), ("", "''")],
)
def test_literals_do_not_depend_on_the_session(value: object, written: str) -> None:
    assert literal(value) == written
