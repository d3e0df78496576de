from __future__ import annotations

import pytest

from sluiceway.api import TopicPartition
from sluiceway.java_plugins.fetched import FetchedMessages

A, B = TopicPartition("a", 0), TopicPartition("b", 1)


@pytest.fixture
def fetched() -> FetchedMessages:
    """Two messages of A, three of B with gaps, one more of A."""
    return FetchedMessages.of({"runs": [["a", 0, 2, 5, 6], ["b", 1, 3, 10, 30], ["a", 0, 1, 7, 7]], "times": [100, None]})


def test_size_starts_and_times(fetched: FetchedMessages) -> None:
    assert len(fetched) == 6
    assert fetched.starts == {A: 5, B: 10}
    assert fetched.times == (100, None)
    assert len(FetchedMessages.of({"runs": [], "times": []})) == 0


@pytest.mark.parametrize(
    ("taken", "failed", "ends"),
    [
        (6, None, {A: 8, B: 31}),
        (0, 5, {A: 5, B: 10}),
        (1, 6, {A: 6, B: 10}),
        (2, 10, {A: 7, B: 10}),
        (3, 20, {A: 7, B: 20}),
        (5, 7, {A: 7, B: 31}),
    ],
)
def test_the_next_offsets_after_some_of_the_messages(
    fetched: FetchedMessages, taken: int, failed: int | None, ends: dict[TopicPartition, int]
) -> None:
    assert fetched.ends(taken, failed) == ends


def test_partitions_are_left_out(fetched: FetchedMessages) -> None:
    left = fetched.without({A})
    assert (len(left), left.starts, set(left.left_out)) == (3, {B: 10}, {A})
    assert left.without({B}).left_out == {A, B}


def test_the_messages_themselves_are_not_here(fetched: FetchedMessages) -> None:
    with pytest.raises(TypeError, match="in Java"):
        list(fetched)
