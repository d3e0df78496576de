from __future__ import annotations

from typing import Any, cast

import pytest
from confluent_kafka import Message

from sluiceway.kafka.clients import ConsumedMessage
from sluiceway.kafka.dead_letter_headers import ConsumedDeadLetter


def dead_letter_record(*headers: tuple[str, bytes | None], **more: Any) -> ConsumedDeadLetter:
    fields = {"timestamp": (1, 1000), **more}
    message = Message(topic="dlq", partition=0, offset=3, key=b"k", value=b"v", headers=list(headers), **fields)
    return ConsumedDeadLetter.of(cast(ConsumedMessage, message))


CONTEXT = [("__connect.errors.topic", b"t"), ("__sluiceway.errors.source.offset", b"{}")]


def test_a_record_returns_its_context_headers_or_none() -> None:
    made = dead_letter_record(("own", b"1"), ("__connect.errors.topic", b"t"), ("__connect.errors.exception.message", None))
    assert (made.context("topic"), made.context("exception.message"), made.context("stage")) == ("t", None, None)
    assert (made.timestamp, made.is_from_source) == (1000, False)
    assert dead_letter_record(timestamp=(0, -1)).timestamp is None


def test_the_newest_context_header_wins() -> None:
    assert dead_letter_record(("__connect.errors.stage", b"OLD"), ("__connect.errors.stage", b"NEW")).context("stage") == "NEW"


@pytest.mark.parametrize(
    ("before", "after"), [([], b"1"), ([("__sluiceway.replayed", b"4")], b"5"), ([("__sluiceway.replayed", b"x")], b"1")]
)
def test_replays_are_counted_in_one_header(before: Any, after: bytes) -> None:
    made = dead_letter_record(("own", b"1"), *before, *CONTEXT)
    assert made.replay_headers(keep_context=False) == [("own", b"1"), ("__sluiceway.replayed", after)]
    assert made.replay_headers(keep_context=True) == [("own", b"1"), *CONTEXT, ("__sluiceway.replayed", after)]
