"""The transactions that a snapshot of PostgreSQL sees."""

from __future__ import annotations

import pytest

from sluiceway.connectors.cdc.postgres.chunks import VisibleTransactions


@pytest.mark.parametrize(("xid", "seen"), [(90, True), (100, True), (101, False), (104, True), (105, False), (106, False)])
def test_transactions_in_progress_and_later_ones_are_not_seen(xid: int, seen: bool) -> None:
    assert VisibleTransactions.parse("101:105:101,103").sees(xid) is seen


def test_ids_wrap_around() -> None:
    visible = VisibleTransactions.parse(f"{1 << 32}:{(1 << 32) + 5}:{(1 << 32) + 1}")
    assert visible.sees((1 << 32) - 1)
    assert not visible.sees(1)
    assert visible.sees(4)
    assert not visible.sees(5)
