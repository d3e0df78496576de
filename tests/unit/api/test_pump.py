"""Tests that a blocking iterator runs beside its task: order, limits, errors, and ends."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluiceway.api import Pump
from sluiceway.testing import MemorySourceContext
from support.eventually import LIMIT, eventually


class Source:
    """An iterator that waits for what a test gives it. None ends it."""

    def __init__(self) -> None:
        self.given: queue.Queue[object] = queue.Queue()
        self.asked = 0
        self.threads: set[int] = set()
        self.ended = threading.Event()

    def items(self) -> Iterator[object]:
        self.threads.add(threading.get_ident())
        try:
            while True:
                self.asked += 1
                item = self.given.get()
                if item is None:
                    return
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self.threads.add(threading.get_ident())
            self.ended.set()


@pytest.fixture
def source() -> Source:
    return Source()


def taken(pump: Pump[object], count: int) -> list[object]:
    found: list[object] = []
    eventually(lambda: found.extend(pump.take(count)) or len(found) >= count, what=f"{count} items")
    return found


def test_items_come_in_order_and_a_wait_ends_with_the_first(source: Source) -> None:
    pump = Pump(MemorySourceContext({}), source.items)
    assert pump.take(10) == []
    for number in range(5):
        source.given.put(number)
    assert taken(pump, 5) == [0, 1, 2, 3, 4]
    threading.Timer(0.1, source.given.put, ["late"]).start()
    assert eventually(lambda: pump.take(10, LIMIT), what="the item that ends the wait") == ["late"]
    source.given.put(None)
    eventually(lambda: pump.ended, what="the end")
    pump.close()


def test_the_first_item_that_waits_wakes_the_task(source: Source) -> None:
    woken = threading.Event()

    class Context(MemorySourceContext):
        def wake(self) -> None:
            woken.set()

    pump = Pump(Context({}), source.items)
    for number in range(2):
        source.given.put(number)
        assert woken.wait(LIMIT)
        assert taken(pump, 1) == [number]
        woken.clear()
    source.given.put(None)
    assert woken.wait(LIMIT), "the end wakes it, too"
    pump.close()


def test_the_iterator_is_not_asked_while_as_many_items_wait_as_may(source: Source) -> None:
    pump = Pump(MemorySourceContext({}), source.items, most=3)
    for number in range(10):
        source.given.put(number)
    eventually(lambda: source.asked == 3, what="three items")
    assert taken(pump, 2) == [0, 1]
    eventually(lambda: source.asked == 5, what="two more")
    assert source.given.qsize() == 5
    pump.close()
    assert source.ended.wait(LIMIT)
    assert len(source.threads) == 1, "a generator's finally runs on its thread"


def test_an_error_comes_after_the_items_before_it(source: Source) -> None:
    pump = Pump(MemorySourceContext({}), source.items)
    for item in (1, 2, ValueError("broken")):
        source.given.put(item)
    assert source.ended.wait(LIMIT)
    assert taken(pump, 2) == [1, 2]
    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            eventually(lambda: pump.take(10), what="the error")
    assert not pump.ended
    pump.close()


def test_an_error_of_the_start_is_raised() -> None:
    def items() -> Iterator[object]:
        raise OSError("no connection")

    pump = Pump(MemorySourceContext({}), items)
    with pytest.raises(OSError, match="no connection"):
        eventually(lambda: pump.take(1, 0.1), what="the error")
    pump.close()


def test_a_wait_of_the_iterator_is_interrupted(source: Source) -> None:
    pump = Pump(MemorySourceContext({}), source.items, interrupt=lambda: source.given.put(None))
    eventually(lambda: source.asked == 1, what="the wait")
    pump.close()
    assert source.ended.is_set()


def test_an_iterator_that_cannot_be_ended_is_left_alone(
    source: Source, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("sluiceway.api.pump._CLOSE_SECONDS", 0.05)
    pump = Pump(MemorySourceContext({}), source.items)
    eventually(lambda: source.asked == 1, what="the wait")
    pump.close()
    assert "cannot be ended" in caplog.text
    source.given.put(None)


@settings(deadline=None, max_examples=50)
@given(count=st.integers(0, 200), most=st.integers(1, 20), takes=st.lists(st.integers(1, 30), min_size=1, max_size=5))
def test_all_items_come_once(count: int, most: int, takes: list[int]) -> None:
    pump = Pump(MemorySourceContext({}), lambda: range(count), most=most)
    found: list[int] = []
    turn = 0
    while not pump.ended:
        items = pump.take(takes[turn % len(takes)], 0.01)
        assert len(items) <= most
        found += items
        turn += 1
    pump.close()
    assert found == list(range(count))
