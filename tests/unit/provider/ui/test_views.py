"""Tests of the page's JSON."""

from __future__ import annotations

import orjson

from sluiceway.kafka.dead_letter_headers import DeadLetterRecord
from sluiceway.provider.ui import views


def test_dead_letter_queue_records_have_no_keys_values_and_headers_of_their_own() -> None:
    headers: list[tuple[str, bytes | None]] = [
        ("__connect.errors.topic", b"a"),
        ("__connect.errors.exception.message", b"bad"),
        ("own", b"private"),
    ]
    found = views.dead_letters("dead", 7, [DeadLetterRecord("dead", 0, 3, 1000, b"private", b"private", headers)])
    [record] = found["records"]
    assert (found["count"], record["position"], record["topic"]) == (7, "0:3", "a")
    assert (record["message"], record["stage"]) == ("bad", None)
    assert b"private" not in orjson.dumps(found)
