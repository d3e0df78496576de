"""Reports of a slot that keeps much log."""

from __future__ import annotations

import pytest

from sluiceway.connectors.cdc.postgres.replication import SlotUsage
from sluiceway.connectors.cdc.postgres.task import danger_of

_MIB = 1 << 20


@pytest.mark.parametrize(
    ("usage", "danger"),
    [
        (SlotUsage(10 * _MIB, None, 0, "reserved"), ""),
        (SlotUsage(5000 * _MIB, None, 0, "extended"), "fill the server's disk"),
        (SlotUsage(70 * _MIB, 30 * _MIB, 0, "reserved"), ""),
        (SlotUsage(80 * _MIB, 20 * _MIB, 0, "reserved"), "after 20 MiB more"),
        (SlotUsage(1, 0, 0, "unreserved"), "next checkpoint"),
    ],
)
def test_dangers(usage: SlotUsage, danger: str) -> None:
    found = danger_of(usage)
    assert (danger in found) if found is not None else not danger
