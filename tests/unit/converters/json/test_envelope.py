from __future__ import annotations

import pytest

from sluiceway.converters.json.envelope import EnvelopeCache


def learned(*texts: str) -> EnvelopeCache:
    cache = EnvelopeCache(2)
    for text in texts:
        cache.learn(text.encode(), None, bytes)
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
def test_the_start_of_a_record_is_known_up_to_its_payload(text: str, prefix: str) -> None:
    envelope = learned(text).find(text.encode())
    assert envelope is not None
    assert envelope.prefix == prefix.encode()


@pytest.mark.parametrize("text", ['{"payload":1,"schema":null}', '{"schema":01,"payload":1}', "[]"])
def test_a_record_of_another_form_teaches_nothing(text: str) -> None:
    assert learned(text).find(text.encode()) is None


def test_the_schemas_seen_least_lately_are_forgotten() -> None:
    texts = [f'{{"schema":{{"type":"{type_}"}},"payload":1}}' for type_ in ("int8", "int16", "int32")]
    cache = learned(*texts[:2])
    assert cache.find(texts[0].encode()) is not None  # and is the newest now
    cache.learn(texts[2].encode(), None, bytes)
    assert [cache.find(text.encode()) is not None for text in texts] == [True, False, True]


def test_a_cache_of_no_size_knows_nothing() -> None:
    cache = EnvelopeCache(0)
    cache.learn(b'{"schema":null,"payload":1}', None, bytes)
    assert cache.find(b'{"schema":null,"payload":1}') is None
