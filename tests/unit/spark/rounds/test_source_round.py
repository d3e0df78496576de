"""Rows of a slot cut into splits, and offsets compared with the stored ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest

from sluiceway.api import Offset, Partition
from sluiceway.api.data_frames import Offsets
from sluiceway.errors import RetriableError
from sluiceway.spark.rounds.source_round import produced_splits, splits_of, stored_offsets


def batch(rows: Sequence[tuple[int, str]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([id_ for id_, _ in rows]), pa.array([split for _, split in rows])], ["id", "split"]
    )


def test_a_batch_may_have_the_rows_of_several_splits_and_a_split_rows_of_several_batches() -> None:
    batches = [batch([(1, "0"), (2, "0")]), batch([]), batch([(3, "0"), (4, "12"), (5, "2")]), batch([(6, "2"), (0, "end")])]
    found = [(number, [row for rows in parts for row in rows.to_pylist()]) for number, parts in splits_of(batches)]
    assert found == [(0, [{"id": 1}, {"id": 2}, {"id": 3}]), (12, [{"id": 4}]), (2, [{"id": 5}, {"id": 6}])]


def test_no_rows_are_no_splits() -> None:
    assert not list(splits_of([batch([(0, "end")])]))


def test_a_split_whose_rows_are_cut_off_fails_but_not_the_one_before_it() -> None:
    found = splits_of([batch([(1, "0"), (2, "1")])])
    number, rows = next(found)
    assert (number, [row for part in rows for row in part.to_pylist()]) == (0, [{"id": 1}])
    number, rows = next(found)
    assert number == 1
    with pytest.raises(RetriableError, match="before it had sent all rows"):
        list(rows)


class _Reader:
    """An ``OffsetStorageReader`` of a table's offset."""

    def offset(self, partition: Partition) -> Offset | None:
        stored: Mapping[str, Offset] = {"a": {"incrementing": 5}}
        return stored.get(str(partition["table"]))

    def offsets(self, partitions: Sequence[Partition]) -> list[Offset | None]:
        return [self.offset(partition) for partition in partitions]


def test_offsets_are_compared_with_the_stored_ones_by_group() -> None:
    groups: list[Offsets] = [
        [({"table": "a"}, {"incrementing": 5})],
        [],
        [({"table": "a"}, {"incrementing": 4}), ({"table": "b"}, None)],
    ]
    assert stored_offsets(_Reader(), groups) == [[True], [], [False, True]]


_STORED: Offsets = [({"table": "a"}, {"incrementing": 5})]
_NOT_STORED: Offsets = [({"table": "b"}, {"incrementing": 6})]


def test_those_splits_are_produced_whose_offsets_are_all_stored() -> None:
    assert produced_splits(_Reader(), _STORED, {3: _NOT_STORED, 5: _STORED, 7: []}) == {5}


def test_the_splits_of_a_round_that_is_not_stored_are_refused_unless_all_are_produced() -> None:
    with pytest.raises(RetriableError, match="no longer part of the stored plan"):
        produced_splits(_Reader(), _NOT_STORED, {3: _NOT_STORED, 5: _STORED})
    assert produced_splits(_Reader(), _NOT_STORED, {5: _STORED}) == {5}


def test_a_split_of_which_some_offsets_are_stored_is_refused() -> None:
    with pytest.raises(RetriableError, match="no longer part of the stored plan"):
        produced_splits(_Reader(), _STORED, {3: [*_STORED, *_NOT_STORED]})
