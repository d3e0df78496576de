"""The rules which shards of a stream are read, from where, and by which task."""

from __future__ import annotations

import pytest

from sluiceway.connectors.aws.kinesis_shards import OLDEST, Position, Shard, expired_parents, families, unfinished
from sluiceway.connectors.aws.requests import RequestLimits, RequestSinkTask
from sluiceway.errors import ConnectError

A, B = Shard("a", closed=True), Shard("b")
A1, A2 = Shard("a1", ("a",)), Shard("a2", ("a",), closed=True)
MERGED = Shard("m", ("a2", "b"))
READ, ENDED = Position("5"), Position("5", ended=True)


def test_all_shards_are_read_from_the_begin_of_the_config() -> None:
    assert unfinished([A, A1, B], {}, OLDEST) == dict.fromkeys(("a", "a1", "b"), Position(since=OLDEST))
    assert unfinished([A, A1, B], {}, 7) == dict.fromkeys(("a", "a1", "b"), Position(since=7))


def test_closed_shards_have_no_records_to_come() -> None:
    assert unfinished([A, A1, A2, B], {}, None) == dict.fromkeys(("a1", "b"), Position())


def test_what_was_made_of_a_shard_that_was_read_is_read_from_its_beginning() -> None:
    found = unfinished([A1, A2, B, MERGED], {"a": ENDED}, None)
    assert found == {**dict.fromkeys(("a1", "a2", "m"), Position(since=OLDEST)), "b": Position()}


def test_shards_that_ended_are_left_out_and_others_continued() -> None:
    assert unfinished([A, A1], {"a": ENDED, "a1": READ}, OLDEST) == {"a1": READ}


def test_an_open_shard_that_has_ended_is_one_of_another_stream() -> None:
    with pytest.raises(ConnectError, match="created again"):
        unfinished([B], {"b": ENDED}, OLDEST)


def test_shards_that_expired_before_their_end_are_found() -> None:
    assert expired_parents([A1, MERGED], {"a": READ, "b": READ, "a2": ENDED}) == ["a", "b"]
    assert expired_parents([A, A1], {"a": READ}) == []


def test_shards_made_of_one_another_are_one_family() -> None:
    shards = [A, B, A1, A2, MERGED]
    assert families(shards, ["a", "b", "a1", "a2", "m"]) == {"a": ["a", "a1", "a2", "b", "m"]}
    assert families(shards, ["b", "a1", "a2", "m"]) == {"a1": ["a1"], "a2": ["a2", "b", "m"]}
    assert families(shards, ["a1", "m"]) == {"a1": ["a1"], "m": ["m"]}


@pytest.mark.parametrize(
    "position",
    [
        READ,
        ENDED,
        Position(),
        Position(since=0, read=5),
        Position(since=9, read=5),
        Position("7", 3, read=8),
        Position(ended=True),
    ],
)
def test_positions_are_offsets(position: Position) -> None:
    offset = position.to_offset()
    if offset:
        assert Position.of(offset) == position


@pytest.mark.parametrize(
    "offset", [{}, {"read": 5}, {"sequence": 5}, {"sequence": "x"}, {"from": -1}, {"from": True}, {"ended": 1}, {"a": 1}]
)
def test_other_offsets_are_refused(offset: dict[str, object]) -> None:
    with pytest.raises(ConnectError, match="is no offset of a shard"):
        Position.of(offset)


class Sink(RequestSinkTask[str]):
    """Items are letters, by which they are ordered, and their sizes; lower ones have no order."""

    def start(self, config: object) -> None:
        self.requests = RequestLimits(records=3, size=10, at_once=1)

    def prepare(self, record: object) -> str:
        raise NotImplementedError

    def order_key(self, item: str) -> str | None:
        return item[0] if item[0].isupper() else None

    def size_of(self, item: str) -> int:
        return len(item)


def test_waves_have_each_key_once_and_requests_are_limited() -> None:
    sink = Sink()
    sink.start({})
    items = ["A1", "A2", "b1", "b2", "C1", "A3", "b3"]
    assert list(sink._waves(items)) == [[0, 2, 3, 4, 6], [1], [5]]
    assert list(sink._requests(items, [0, 2, 3, 4, 6])) == [[0, 2, 3], [4, 6]]
    assert list(sink._requests(["a" * 20, "b" * 6, "c" * 6, "d" * 4], range(4))) == [[0], [1], [2, 3]]
