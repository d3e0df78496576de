from __future__ import annotations

import pytest

from sluiceway.converters.json.envelope import EnvelopeCache


def learned(*texts: str) -> EnvelopeCache:
    cache = EnvelopeCache(2)
    for text in texts:
        cache.add(text.encode(), None, bytes)
    return cache


@pytest.mark.parametrize(
    ("text", "prefix"),
    [
        ('{"schema":{"type":"string"},"payload":"a"}', '{"schema":{"type":"string"},"payload":'),
        ('{"schema":null,"payload":{"x":1,"payload":2}}', '{"schema":null,"payload":'),
        (' { "schema" : {"type":"string"} ,\n "payload": "a" }', ' { "schema" : {"type":"string"} ,\n "payload":'),
        (
            '{"schema":{"parameters":{"a":"x","payload":"y"}},"payload":1}',
            '{"schema":{"parameters":{"a":"x","payload":"y"}},"payload":',
        ),
    ],
)
def test_the_prefix_ends_before_the_payload(text: str, prefix: str) -> None:
    envelope = learned(text).find(text.encode())
    assert envelope is not None
    assert envelope.prefix == prefix.encode()


@pytest.mark.parametrize("text", ['{"payload":1,"schema":null}', '{"schema":01,"payload":1}', "[]"])
def test_other_documents_are_not_cached(text: str) -> None:
    assert learned(text).find(text.encode()) is None


def test_the_least_recently_used_schemas_are_evicted() -> None:
    texts = [f'{{"schema":{{"type":"{type_}"}},"payload":1}}' for type_ in ("int8", "int16", "int32")]
    cache = learned(*texts[:2])
    assert cache.find(texts[0].encode()) is not None  # and is the newest now
    cache.add(texts[2].encode(), None, bytes)
    assert [cache.find(text.encode()) is not None for text in texts] == [True, False, True]


def test_a_cache_of_size_zero_stays_empty() -> None:
    cache = EnvelopeCache(0)
    cache.add(b'{"schema":null,"payload":1}', None, bytes)
    assert cache.find(b'{"schema":null,"payload":1}') is None
