from __future__ import annotations

from sluiceway.api import TopicPartition
from sluiceway.connectors.mirror.offset_syncs import OffsetSync, OffsetSyncs

HERE, THERE = TopicPartition("t", 0), TopicPartition("t", 1)


def taken(syncs: OffsetSyncs, *offsets: tuple[int, int], place: TopicPartition = HERE) -> list[tuple[int, int]]:
    """Return the offsets of the syncs that are due at once."""
    found = []
    for upstream, downstream in offsets:
        syncs.copied(place, upstream, downstream)
        found += [(sync.upstream, sync.downstream) for sync in syncs.take_due()]
    return found


def test_a_sync_has_mirror_makers_bytes() -> None:
    key, value = OffsetSync(TopicPartition("tö", 3), 5, 9).encoded()
    assert key.hex() == "000374c3b600000003"
    assert value.hex() == "00000000000000050000000000000009"


def test_the_first_record_and_one_after_a_gap_are_due_at_once() -> None:
    assert taken(OffsetSyncs(100), (0, 0), (1, 1), (5, 2), (6, 3)) == [(0, 0), (5, 2)]


def test_a_record_max_lag_after_the_last_sync_is_due_at_once() -> None:
    assert taken(OffsetSyncs(3), *((n, n) for n in range(10))) == [(0, 0), (4, 4), (8, 8)]
    assert taken(OffsetSyncs(0), *((n, n) for n in range(3))) == [(0, 0), (1, 1), (2, 2)]


def test_a_target_topic_that_was_created_again_is_detected() -> None:
    assert taken(OffsetSyncs(100), (7, 50), (8, 0), (9, 1)) == [(7, 50), (8, 0)]


def test_partitions_are_independent() -> None:
    syncs = OffsetSyncs(100)
    assert taken(syncs, (0, 0)) == [(0, 0)]
    assert taken(syncs, (0, 0), (1, 1), place=THERE) == [(0, 0)]


def test_only_the_newest_other_sync_is_kept_until_the_commit() -> None:
    syncs = OffsetSyncs(100)
    taken(syncs, (0, 0), (1, 1), (2, 2))
    taken(syncs, (0, 5), place=THERE)
    assert syncs.take_all() == [OffsetSync(HERE, 2, 2)]
    assert syncs.take_all() == []


def test_no_older_sync_is_written_after_a_newer_one() -> None:
    syncs = OffsetSyncs(2)
    assert taken(syncs, (0, 0), (1, 1), (2, 2), (3, 3)) == [(0, 0), (3, 3)]
    assert syncs.take_all() == []


def test_without_a_max_lag_no_sync_is_held_back() -> None:
    syncs = OffsetSyncs(-1)
    syncs.copied(HERE, 0, 0)
    assert syncs.take_all() == [OffsetSync(HERE, 0, 0)]
