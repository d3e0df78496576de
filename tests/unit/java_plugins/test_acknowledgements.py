from __future__ import annotations

import struct

from sluiceway.java_plugins.acknowledgements import Acknowledgements


def places(data: bytes) -> list[tuple[int, ...]]:
    return list(struct.iter_unpack("<qqqq", data))


def test_places_are_taken_once_in_the_order_of_the_acknowledgements() -> None:
    made = Acknowledgements()
    first, second = made.of(1), made.of(2)
    for sent in (first, second):
        sent.release()
    second.add(0, 0, 12)
    first.add(5, 3, 11)
    assert places(made.take()) == [(2, 0, 0, 12), (1, 5, 3, 11)]
    assert made.take() == b""
    first.add(4, 1, 10)
    assert places(made.take()) == [(1, 4, 1, 10)]


def test_the_task_learns_of_no_place_before_its_release() -> None:
    made = Acknowledgements()
    committed, aborted = made.of(1), made.of(2)
    committed.leave_out([0, 2])
    committed.add(1, 2, 7)
    aborted.add(0, 2, 8)
    assert made.take() == b""
    committed.release()
    assert places(made.take()) == [(1, 0, -1, -1), (1, 2, -1, -1), (1, 1, 2, 7)]
    committed.add(3, 2, 9)
    assert places(made.take()) == [(1, 3, 2, 9)]
