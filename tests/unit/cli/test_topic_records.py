"""Records of topics as ``sluiceway read`` shows them."""

from __future__ import annotations

import argparse
import datetime as dt
import json
from typing import Any, cast
from unittest.mock import Mock

import pytest

from sluiceway.cli import topics
from sluiceway.cli.topic_records import RecordReader, guessed
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError, DataError, RetriableError
from sluiceway.java_plugins.errors import JavaDataError
from sluiceway.kafka.clients import ConsumedMessage
from sluiceway.runtime.task_converters import task_converters

JSON = "org.apache.kafka.connect.json.JsonConverter"


class Message:
    def __init__(self, key: bytes | None, value: bytes | None, timestamp: tuple[int, int] = (1, 1500)) -> None:
        self._parts = (key, value)
        self._timestamp = timestamp

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return 7

    def key(self) -> bytes | None:
        return self._parts[0]

    def value(self) -> bytes | None:
        return self._parts[1]

    def timestamp(self) -> tuple[int, int]:
        return self._timestamp

    def headers(self) -> list[tuple[str, bytes | None]]:
        return [("h", b"1"), ("n", None)]


def document(reader: RecordReader, *parts: Any) -> dict[str, Any]:
    return reader.document(cast(ConsumedMessage, Message(*parts)))


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (None, None),
        (b"", ""),
        (b"plain", "plain"),
        (b'{"a": [1, null]}', {"a": [1, None]}),
        (b'{"schema": {"type": "int32"}, "payload": 5}', 5),
        (b"17", 17),
        (b"\xff\xfe", {"size": 2, "base64": "//4="}),
        (b"\x00\x00\x00\x00\x2a\x02", {"schema_registry_id": 42, "size": 6, "base64": "AAAAACoC"}),
    ],
)
def test_bytes_are_shown_as_what_they_look_like(data: bytes | None, shown: object) -> None:
    assert guessed(data) == shown


def test_a_connectors_converters_decode_and_what_they_cannot_decode_is_shown_with_the_reason() -> None:
    config = {"key.converter": JSON, "value.converter": JSON, "key.converter.schemas.enable": "false"}
    converters = task_converters(config, WorkerConfig.of({}))
    with RecordReader("", converters, mask=True) as reader:
        whole = document(reader, b'"k"', b'{"schema": {"type": "int32"}, "payload": 5}')
        assert (whole["key"], whole["value"]) == ("k", 5)
        assert (whole["partition"], whole["offset"], whole["timestamp"]) == (3, 7, "1970-01-01T00:00:01.500000+00:00")
        assert whole["headers"] == [{"key": "h", "value": 1}, {"key": "n", "value": None}]
        bad = document(reader, b'"k"', b'{"a": 1}')
        assert (bad["key"], bad["value"]) == ("k", {"a": 1})
        assert 'requires "schema" and "payload"' in bad["error"]


def test_fields_with_names_of_secrets_are_masked_at_any_depth() -> None:
    value = b'{"user": "u", "db.password": "p", "in": [{"api_key": "k", "token": null}]}'
    hidden = {"user": "u", "db.password": "[hidden]", "in": [{"api_key": "[hidden]", "token": None}]}
    assert document(RecordReader("", None, mask=True), None, value)["value"] == hidden
    assert document(RecordReader("", None, mask=False), None, value)["value"]["db.password"] == "p"


def test_passwords_in_texts_are_masked() -> None:
    value = b'{"url": "jdbc:postgresql://h/d?password=hunter2", "n": 1, "pin.password": 17, "note": "see ${file:/f:k}"}'
    hidden = {
        "url": "jdbc:postgresql://h/d?password=[hidden]",
        "n": 1,
        "pin.password": "[hidden]",
        "note": "see ${file:/f:k}",
    }
    assert document(RecordReader("", None, mask=True), None, value)["value"] == hidden
    plain = b"user=u;password=hunter2"
    assert document(RecordReader("", None, mask=True), plain, plain)["value"] == "user=u;password=[hidden]"


def test_a_config_topics_records_are_masked_by_the_types_of_keys() -> None:
    worker = WorkerConfig.of({"config.storage.topic": "configs"})
    config = {"connector.class": "AzureBlobStorageSink", "topics": "t", "azblob.account.key": "hunter2"}
    record = json.dumps({"properties": config}).encode()
    configs = {"a": {"connector.class": "MockSource"}, "b": config}
    for mask, shown in ((True, "[hidden]"), (False, "hunter2")):
        with RecordReader.of(worker, configs, "configs", None, mask=mask) as reader:
            found = document(reader, b"connector-b", record)["value"]
        assert found["properties"] == {**config, "azblob.account.key": shown}


def test_a_record_has_no_control_characters_on_a_terminal() -> None:
    lines = list(topics._lines({**document(RecordReader("", None, mask=True), b"\x1b[2J", b"a\nb", (0, 0)), "error": "x\n\ty"}))
    assert lines == [
        "t:3:7  no timestamp",
        '  key     {"size": 4, "base64": "G1sySg=="}',
        '  value   "a\\nb"',
        '  header  "h" = 1',
        '  header  "n" = null',
        "  error   x y",
    ]


def test_where_to_start_is_a_word_an_offset_or_a_time() -> None:
    utc = dt.timezone.utc
    assert [topics._start(where) for where in ("latest", "12", "2026-11-23T09:00:00", "2026-11-23T09:00:00Z")] == [
        "latest",
        12,
        dt.datetime(2026, 11, 23, 9, tzinfo=utc),
        dt.datetime(2026, 11, 23, 9, tzinfo=utc),
    ]
    with pytest.raises(argparse.ArgumentTypeError, match="neither earliest"):
        topics._start("yesterday")


@pytest.mark.parametrize("error", [DataError("bad"), RetriableError("the registry is away"), JavaDataError("bad", "x.Bad", "")])
def test_a_converters_declared_error_is_the_records(error: ConnectError) -> None:
    assert document(_failing(error), b"k", b"v")["error"] == str(error)


@pytest.mark.parametrize("error", [AttributeError("no such attribute"), TypeError("not callable"), KeyError("k")])
def test_a_converters_programming_error_is_not_the_records(error: Exception) -> None:
    with pytest.raises(type(error)):
        document(_failing(error), b"k", b"v")


def _failing(error: Exception) -> RecordReader:
    converters = task_converters({"key.converter": JSON, "value.converter": JSON}, WorkerConfig.of({}))
    converters.key.to_connect_data = Mock(side_effect=error)  # type: ignore[method-assign]
    return RecordReader("", converters, mask=True)
