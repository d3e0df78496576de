from __future__ import annotations

import struct

from sluiceway.java_plugins.acknowledgements import Acknowledgements


def places(data: bytes) -> list[tuple[int, ...]]:
    return list(struct.iter_unpack("<qq", data))


def test_ranges_are_taken_in_order_once_they_are_confirmed() -> None:
    made = Acknowledgements()
    first, _empty, second = made.expect(1, 4, 6, 2), made.expect(1, 6, 6, 0), made.expect(2, 0, 1, 1)
    second.add(0, 0, 12)
    second.confirm()
    first.add(5, 3, 11)
    assert made.take() == ([], b"")
    first.add(4, 1, 10)
    assert (first.left, made.take()) == (0, ([], b""))
    first.confirm()
    ranges, data = made.take()
    assert ranges == [(1, 4, 6), (2, 0, 1)]
    assert places(data) == [(1, 10), (3, 11), (0, 12)]
    assert made.take() == ([], b"")


def test_records_that_are_left_out_have_no_place() -> None:
    made = Acknowledgements()
    sent = made.expect(1, 0, 3, 1)
    sent.add(1, 2, 7)
    sent.confirm()
    assert places(made.take()[1]) == [(-1, -1), (2, 7), (-1, -1)]
