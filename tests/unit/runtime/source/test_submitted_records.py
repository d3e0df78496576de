"""Partitions and offsets of delivered messages, as a task and its Java process get them."""

from __future__ import annotations

from typing import Any

import pytest

from sluiceway.java_plugins.acknowledgements import Acknowledgements
from sluiceway.runtime.source.submitted_records import partition_and_offset


class Delivered:
    """A delivered message. The client has no offset for one that the broker took for a duplicate."""

    def __init__(self, offset: int | None) -> None:
        self._offset = offset

    def partition(self) -> int:
        return 3

    def offset(self) -> int | None:
        return self._offset


@pytest.mark.parametrize(("offset", "expected"), [(0, 0), (7, 7), (None, -1)])
def test_an_unknown_offset_is_minus_one(offset: int | None, expected: int) -> None:
    message: Any = Delivered(offset)
    assert partition_and_offset(message) == (3, expected)
    acknowledgements = Acknowledgements()
    sent = acknowledgements.of(1)
    sent.add(0, *partition_and_offset(message))
    sent.release()
    assert len(acknowledgements.take()) == 4 * 8, "batch, index, partition, and offset"
