"""Dead letter queue records as text."""

from __future__ import annotations

import struct

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import BadRequestError, NotFoundError
from sluiceway.herder import dead_letters
from sluiceway.herder.dead_letters import ConnectorDeadLetters, DeadLetterList, ReadableBytes
from sluiceway.kafka.dead_letter_headers import ConsumedDeadLetter
from sluiceway.kafka.dead_letter_topic import DeadLetterPosition

STRING = "org.apache.kafka.connect.storage.StringConverter"
LONG = "org.apache.kafka.connect.converters.LongConverter"
DLQ = {"errors.deadletterqueue.topic.name": "dead"}
WORKER = WorkerConfig.of({"key.converter": STRING, "value.converter": STRING})


class Topic:
    """Replaces ``DeadLetterTopic``; holds one record."""

    value: bytes | None = None

    def __init__(self, worker: WorkerConfig, topic: str, connector: str) -> None:
        if topic == "missing":
            raise NotFoundError(topic)

    def count(self) -> int:
        return 7

    def newest(self, count: int) -> list[ConsumedDeadLetter]:
        return [ConsumedDeadLetter("dead", 0, 1, None, None, self.value, [("h", b"\x00"), ("n", None)])]


@pytest.fixture(autouse=True)
def _topic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letters, "DeadLetterTopic", Topic)


@pytest.mark.parametrize(
    ("converter", "data", "text", "kind"),
    [
        (STRING, b"", "", "text"),
        (STRING, "ä\n\t{}".encode(), "ä\n\t{}", "text"),
        (STRING, b"\xff", "/w==", "base64"),
        (LONG, struct.pack(">q", 42), "42", "json"),
        (LONG, b"\x00\x01", "AAE=", "base64"),
        ("no.such.Converter", b"\x00", "AA==", "base64"),
        ("${env:UNSET_FOR_THIS_TEST}", b"\x00", "AA==", "base64"),
    ],
)
def test_values_are_text_or_read_by_the_converter_or_base64(
    monkeypatch: pytest.MonkeyPatch, converter: str, data: bytes, text: str, kind: str
) -> None:
    monkeypatch.setattr(Topic, "value", data)
    [found] = ConnectorDeadLetters(WORKER, "c", {**DLQ, "value.converter": converter}).newest(5).records
    assert found.value == ReadableBytes(text, kind)
    assert found.key is None
    assert found.headers == [("h", ReadableBytes("AA==", "base64")), ("n", None)]


def test_a_queue_may_not_exist_yet() -> None:
    config = {"errors.deadletterqueue.topic.name": "missing"}
    assert ConnectorDeadLetters(WORKER, "c", config).newest(5) == DeadLetterList("missing", 0, [])


def test_a_connector_may_have_no_queue() -> None:
    queue = ConnectorDeadLetters(WORKER, "c", {})
    assert queue.newest(5) == DeadLetterList(None, None, [])
    with pytest.raises(BadRequestError, match=r"does not set errors\.deadletterqueue\.topic\.name"):
        queue.replay([DeadLetterPosition(0, 1)], None)
