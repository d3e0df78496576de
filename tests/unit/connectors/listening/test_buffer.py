"""The buffer of sources that listen: its limits, and the warnings about losses."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.connectors.listening.buffer import Batch, Buffer, Losses


def batch(items: int, size: int = 0) -> Batch[int]:
    return Batch(range(items), size, 0)


@given(st.lists(st.tuples(st.sampled_from(["put", "take", "withdraw"]), st.integers(1, 6), st.integers(0, 12)), max_size=40))
def test_the_limits_hold_and_nothing_is_lost(steps: list[tuple[str, int, int]]) -> None:
    buffer: Buffer[Batch[int]] = Buffer(10, 20)
    waiting: list[Batch[int]] = []
    for step, items, size in steps:
        if step == "put":
            made = batch(items, size)
            fits = sum(len(each.items) for each in waiting) + items <= 10 and sum(each.size for each in waiting) + size <= 20
            assert buffer.put(made) is fits
            waiting += [made] if fits else []
        elif step == "take":
            assert buffer.take() == waiting
            waiting = []
        elif waiting:
            gone = waiting.pop(items % len(waiting))
            assert buffer.withdraw(gone)
            assert not buffer.withdraw(gone)
        assert buffer.items == sum(len(each.items) for each in waiting)
    assert buffer.close() == waiting


def test_a_closed_buffer_takes_nothing() -> None:
    buffer: Buffer[Batch[int]] = Buffer(10, 20)
    kept = batch(3)
    assert buffer.put(kept)
    assert buffer.close() == [kept]
    assert not buffer.put(batch(1))
    assert buffer.closed
    assert (buffer.items, buffer.take()) == (0, [])


def test_each_loss_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    now = [100.0]
    losses = Losses("%d lines are dropped", lambda: now[0])

    def said() -> list[str]:
        losses.say()
        return [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]

    assert said() == []
    losses.add(2)
    assert said() == ["2 lines are dropped"]
    losses.add(3)
    now[0] += 59
    losses.add(4)
    assert len(said()) == 1
    now[0] += 1
    assert said()[1:] == ["7 lines are dropped"]
    losses.add(1)
    losses.say(at_once=True)
    assert said()[2:] == ["1 lines are dropped"]
    assert losses.total == 10
