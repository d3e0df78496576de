"""Tests of the page's JSON."""

from __future__ import annotations

import orjson

from sluiceway.kafka.dead_letter_headers import ConsumedDeadLetter
from sluiceway.provider.ui import views


def test_dead_letter_queue_records_have_no_keys_values_and_headers_of_their_own() -> None:
    headers: list[tuple[str, bytes | None]] = [
        ("__connect.errors.topic", b"a"),
        ("__connect.errors.exception.message", b"bad"),
        ("__connect.errors.exception.class.name", b"x.Error"),
        ("__connect.errors.exception.stacktrace", b"x.Error: bad\n\tat a.b(C.java:1)"),
        ("own", b"private"),
    ]
    records = [ConsumedDeadLetter("dead", 0, 3, 1000, b"private", b"private", headers)]
    found = views.dead_letters("dead", 7, records, may_edit=True)
    [record] = found["records"]
    assert (found["count"], record["position"], record["topic"]) == (7, "0:3", "a")
    assert (record["message"], record["stage"]) == ("bad", None)
    assert b"private" not in orjson.dumps(found)
    [record] = views.dead_letters("dead", 7, records)["records"]
    assert (record["message"], record["exception"]) == (None, "x.Error")
    assert record["trace"].splitlines()[:-1] == ["x.Error", "\tat a.b(C.java:1)"]
