"""Shows dead letter queue records in the page, and replays chosen ones."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest
from playwright.sync_api import expect

from sluiceway.storage.model import TargetState
from support.browser import screenshot
from support.kafka import Kafka
from support.page import Cluster, Ui

pytestmark = [pytest.mark.kafka, pytest.mark.long]

PREFIX = "__connect.errors."


@pytest.fixture
def topic(kafka: Kafka, unique: Callable[[str], str]) -> str:
    return kafka.create(unique("topic"))


@pytest.fixture
def dlq(kafka: Kafka, unique: Callable[[str], str]) -> str:
    return kafka.create(unique("dlq"))


@pytest.fixture
def sink(cluster: Cluster, name: str, topic: str, dlq: str) -> str:
    """A stopped sink with a dead letter queue."""
    config = {"connector.class": "FileStreamSink", "topics": topic, "errors.deadletterqueue.topic.name": dlq}
    cluster.herder.create(name, config, TargetState.STOPPED)
    return name


def context(name: str, topic: str | None, offset: int) -> list[tuple[str, bytes]]:
    """Return the error headers of a record."""
    fields = {
        "topic": topic,
        "partition": "0",
        "offset": str(offset),
        "connector.name": name,
        "stage": "VALUE_CONVERTER",
        "exception.class.name": "org.apache.kafka.connect.errors.DataException",
        "exception.message": "<b>Not JSON</b>",
        "exception.stacktrace": "org.example.A: no\n\tat a.B\nCaused by: org.example.C: <i>why</i>\n",
    }
    return [(f"{PREFIX}{key}", value.encode()) for key, value in fields.items() if value is not None]


def test_chosen_records_are_replayed_to_the_topic_they_came_from(ui: Ui, kafka: Kafka, sink: str, topic: str, dlq: str) -> None:
    for offset, value in enumerate((b'{"amount": "<i>"}', b"\xff\x00", b"third")):
        kafka.produce(dlq, value, key=b"k", headers=[("own", b"1"), *context(sink, topic, offset)])
    kafka.produce(dlq, b"of another", headers=context("another", topic, 9))
    ui.go(f"#{sink}")
    ui.page.get_by_text("Dead letter queue records", exact=True).click()
    first = ui.page.locator('[data-record="0:0"]')
    expect(first).to_contain_text('"amount": "<i>"')
    expect(first).to_contain_text("DataException: <b>Not JSON</b>")
    expect(first.get_by_text("Cause: org.example.C: <i>why</i>")).to_be_visible()
    expect(first).to_contain_text(f"{topic}-0:0")
    expect(ui.page.locator('[data-record="0:1"]')).to_contain_text("base64")
    expect(ui.page.locator('[data-record="0:3"]')).to_have_count(0)
    expect(ui.button("Replay")).to_be_disabled()
    for record in ("0:0", "0:2"):
        ui.page.get_by_label(f"Choose {record}").check()
    screenshot(ui.page, "dead-letters")
    ui.button("Replay 2").click()
    ui.page.get_by_role("dialog").get_by_role("button", name="Replay").click()
    expect(ui.page.get_by_role("status")).to_contain_text(f"2 sent to {topic}")
    sent = kafka.read(topic, 2)
    assert [(each.key(), each.value()) for each in sent] == [(b"k", b'{"amount": "<i>"}'), (b"k", b"third")]
    assert sent[0].headers() == [("own", b"1"), ("__sluiceway.replayed", b"1")]


def test_a_replay_sends_nothing_if_a_record_cannot_be_sent(
    cluster: Cluster, kafka: Kafka, sink: str, topic: str, dlq: str
) -> None:
    kafka.produce(dlq, b"first", headers=context(sink, topic, 0))
    kafka.produce(dlq, b"no topic", headers=context(sink, None, 1))
    kafka.produce(dlq, b"of another", headers=context("another", topic, 2))

    def replay(*offsets: int, topic: str | None = None) -> httpx.Response:
        records = [{"partition": 0, "offset": offset} for offset in offsets]
        return httpx.post(
            f"{cluster.url}/connectors/{sink}/dead-letters/replay", json={"records": records, "topic": topic}, timeout=60
        )

    for offset, status, message in ((1, 400, "has no header with its topic"), (2, 404, "at 0:2"), (3, 404, "at 0:3")):
        answer = replay(0, offset)
        assert (answer.status_code, message in answer.json()["message"]) == (status, True)
    assert kafka.end(topic) == 0
    assert replay(0, 1, topic=topic).json() == {"sent": {topic: 2}}
    assert kafka.values(topic, 2) == ["first", "no topic"]
    too_many = httpx.get(f"{cluster.url}/connectors/{sink}/dead-letters?limit=1000", timeout=60)
    assert too_many.status_code == 400
