from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Message

from sluiceway.kafka.dead_letter_headers import DeadLetterRecord


def letter(*headers: tuple[str, bytes | None], **more: Any) -> DeadLetterRecord:
    return DeadLetterRecord.of(
        Message(
            topic="dlq", partition=0, offset=3, key=b"k", value=b"v", headers=list(headers), **{"timestamp": (1, 1000), **more}
        )
    )


CONTEXT = [("__connect.errors.topic", b"t"), ("__sluiceway.errors.source.offset", b"{}")]


def test_a_letter_tells_its_context_and_a_missing_one_is_none() -> None:
    made = letter(("own", b"1"), ("__connect.errors.topic", b"t"), ("__connect.errors.exception.message", None))
    assert (made.context("topic"), made.context("exception.message"), made.context("stage")) == ("t", None, None)
    assert (made.timestamp, made.is_from_source) == (1000, False)
    assert letter(timestamp=(0, -1)).timestamp is None


def test_of_a_letter_that_failed_twice_the_newest_context_counts() -> None:
    assert letter(("__connect.errors.stage", b"OLD"), ("__connect.errors.stage", b"NEW")).context("stage") == "NEW"


@pytest.mark.parametrize(
    ("before", "after"), [([], b"1"), ([("__sluiceway.replayed", b"4")], b"5"), ([("__sluiceway.replayed", b"x")], b"1")]
)
def test_replays_are_counted_in_one_header(before: Any, after: bytes) -> None:
    made = letter(("own", b"1"), *before, *CONTEXT)
    assert made.replay_headers(keep_context=False) == [("own", b"1"), ("__sluiceway.replayed", after)]
    assert made.replay_headers(keep_context=True) == [("own", b"1"), *CONTEXT, ("__sluiceway.replayed", after)]
