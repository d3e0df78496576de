"""What is known of submitted records."""

from __future__ import annotations

from typing import Any

import pytest

from sluiceway.java_plugins.acknowledgements import Acknowledgements
from sluiceway.runtime.source.submitted_records import place


class Delivered:
    """A delivered message. The client has no offset for one that the broker took for a duplicate."""

    def __init__(self, offset: int | None) -> None:
        self._offset = offset

    def partition(self) -> int:
        return 3

    def offset(self) -> int | None:
        return self._offset


@pytest.mark.parametrize(("offset", "expected"), [(0, 0), (7, 7), (None, -1)])
def test_a_delivered_message_has_a_place_for_the_task(offset: int | None, expected: int) -> None:
    message: Any = Delivered(offset)
    assert place(message) == (3, expected)
    places = Acknowledgements()
    sent = places.of(1)
    sent.add(0, *place(message))
    sent.release()
    assert len(places.take()) == 4 * 8, "batch, index, partition, and offset"
