"""Views, edits and resets the offsets of stopped connectors in the page."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from sluiceway.storage.model import TargetState
from support.browser import screenshot
from support.kafka import Kafka
from support.page import Cluster, Ui

pytestmark = [pytest.mark.kafka, pytest.mark.long]

SOURCE = {"connector.class": "FileStreamSource", "file": "/f", "topic": "t"}
BIG = 2**53 + 1  # not a number in JavaScript


def test_offsets_of_a_sink_are_set_and_removed_after_a_review(
    ui: Ui, cluster: Cluster, kafka: Kafka, name: str, unique: Callable[[str], str]
) -> None:
    topic = kafka.create(unique("topic"), 2)
    cluster.herder.create(name, {"connector.class": "FileStreamSink", "topics": topic}, TargetState.STOPPED)
    kafka.set_offsets(f"connect-{name}", {(topic, 0): 7, (topic, 1): 8})
    ui.go(f"#{name}")
    ui.button("Edit offsets").click()
    first, second = (f'{{"kafka_partition":{number},"kafka_topic":"{topic}"}}' for number in (0, 1))
    ui.page.get_by_label(f"New offset of {first}").fill("x")
    expect(ui.page.get_by_role("row", name=topic).first).to_contain_text("Unexpected text")
    ui.button("Review").click()
    expect(ui.page.get_by_label(f"New offset of {first}")).to_be_focused()
    ui.page.get_by_label(f"New offset of {first}").fill("3")
    ui.page.get_by_label(f"Remove the offset of {second}").check()
    screenshot(ui.page, "offsets")
    ui.button("Review").click()
    expect(ui.page.get_by_role("dialog")).to_contain_text("kafka_offset")
    screenshot(ui.page, "offsets-review")
    ui.page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(ui.page.get_by_role("heading", level=1)).to_have_text(name)
    expect(ui.page.get_by_role("status")).to_contain_text("altered successfully")
    assert kafka.committed(f"connect-{name}") == {(topic, 0): 3}


def test_offsets_of_a_source_keep_every_digit_and_are_reset(ui: Ui, cluster: Cluster, name: str) -> None:
    cluster.herder.create(name, SOURCE, TargetState.STOPPED)
    ui.go(f"#{name}/offsets")
    expect(ui.page.get_by_text("The connector has no offsets.")).to_be_visible()
    ui.page.get_by_label("Add a partition").fill('{"filename": "/f"}')
    ui.button("Add").click()
    ui.page.keyboard.type(f'{{"position": {BIG}}}')
    ui.button("Review").click()
    ui.page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(ui.page.get_by_role("heading", level=1)).to_have_text(name)
    assert cluster.herder.offsets(name) == [({"filename": "/f"}, {"position": BIG})]
    ui.button("Edit offsets").click()
    expect(ui.page.get_by_role("cell", name=str(BIG)).first).to_be_visible()
    ui.button("Reset all").click()
    ui.page.get_by_role("dialog").get_by_role("button", name="Reset").click()
    expect(ui.page.get_by_role("heading", level=1)).to_have_text(name)
    assert cluster.herder.offsets(name) == []


def test_offsets_of_a_sink_are_picked(ui: Ui, cluster: Cluster, kafka: Kafka, name: str, unique: Callable[[str], str]) -> None:
    topic, half_an_hour_ago = kafka.create(unique("topic"), 2), int(time.time()) - 1800
    cluster.herder.create(name, {"connector.class": "FileStreamSink", "topics": topic}, TargetState.STOPPED)
    for timestamp in (half_an_hour_ago - 60, half_an_hour_ago, half_an_hour_ago + 60):
        kafka.produce(topic, b"x", timestamp=1000 * timestamp)
    kafka.produce(topic, b"x", partition=1)
    kafka.set_offsets(f"connect-{name}", {(topic, 0): 2})
    ui.go(f"#{name}/offsets")
    partitions = [f'{{"kafka_partition":{number},"kafka_topic":"{topic}"}}' for number in (0, 1)]
    first, second = (ui.page.get_by_label(f"New offset of {each}") for each in partitions)
    expect(first).to_be_visible()
    target = ui.page.get_by_label("Set to")

    target.select_option("the current, shifted by")
    ui.page.get_by_label("Number of records").fill("much")
    ui.button("Fill in").click()
    expect(ui.page.get_by_role("alert").filter(has_text="Enter a number")).to_be_visible()
    ui.page.get_by_label("Number of records").fill("-1")
    ui.button("Fill in").click()
    expect(first).to_have_value("1")
    expect(second).to_have_count(0)  # it has no offset to shift

    local = dt.datetime.fromtimestamp(half_an_hour_ago - 30, dt.timezone.utc).astimezone().replace(tzinfo=None)
    target.select_option("a time")
    ui.page.get_by_label("Time, in your zone").fill(local.isoformat())
    ui.button("Fill in").click()
    expect(second).to_have_value("0")
    expect(first).to_have_value("1")
    expect(ui.page.get_by_role("row").filter(has=second)).to_contain_text("not set")

    ui.page.get_by_role("searchbox").fill('"kafka_partition":1')
    target.select_option("the latest")
    ui.button("Fill in").click()
    expect(second).to_have_value("1")
    ui.page.get_by_role("searchbox").fill("")
    expect(first).to_have_value("1")  # the filter did not show it
    screenshot(ui.page, "offsets-picker")
    ui.button("Review").click()
    ui.page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(ui.page.get_by_role("heading", level=1)).to_have_text(name)
    assert kafka.committed(f"connect-{name}") == {(topic, 0): 1, (topic, 1): 1}


def test_offsets_of_a_source_are_picked_if_it_can_find_them(ui: Ui, cluster: Cluster, name: str, tmp_path: Path) -> None:
    file = tmp_path / "in.txt"
    file.write_text("first\nsecond\n")
    cluster.herder.create(name, {**SOURCE, "file": str(file)}, TargetState.STOPPED)
    ui.go(f"#{name}/offsets")
    ui.page.get_by_label("Set to").select_option("the latest")
    ui.button("Fill in").click()
    expect(ui.page.get_by_label("New offset of")).to_have_value('{"position":13}')
    ui.button("Review").click()
    ui.page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(ui.page.get_by_role("heading", level=1)).to_have_text(name)
    assert cluster.herder.offsets(name) == [({"filename": str(file)}, {"position": 13})]
    cluster.herder.put_config(name, {"connector.class": "FileStreamSource", "topic": "t"})
    ui.go(f"#{name}/offsets")
    ui.page.get_by_label("Set to").select_option("the earliest")
    ui.button("Fill in").click()
    expect(ui.page.get_by_role("alert").filter(has_text="reads standard input")).to_be_visible()


def test_offsets_of_a_running_connector_are_refused(ui: Ui, cluster: Cluster, name: str) -> None:
    cluster.herder.create(name, SOURCE, TargetState.STOPPED)
    ui.go(f"#{name}/offsets")
    expect(ui.button("Review")).to_be_enabled()
    cluster.herder.resume(name)  # by somebody else meanwhile
    ui.page.get_by_label("Add a partition").fill('{"filename": "/f"}')
    ui.button("Add").click()
    ui.page.keyboard.type('{"position": 1}')
    ui.button("Review").click()
    ui.page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(ui.page.get_by_role("dialog").get_by_role("alert")).to_contain_text("must be in the STOPPED state")


def test_the_editor_says_why_it_cannot_save(ui: Ui, cluster: Cluster, name: str) -> None:
    cluster.herder.create(name, SOURCE)
    ui.go(f"#{name}")
    expect(ui.button("Edit offsets")).to_be_disabled()
    ui.go(f"#{name}/offsets")
    expect(ui.page.get_by_role("note")).to_contain_text("only while the connector is stopped; it is Unassigned now")
    expect(ui.button("Review")).to_be_disabled()
    expect(ui.button("Reset all")).to_be_disabled()
    cluster.herder.stop(name)
    ui.page.reload()
    expect(ui.button("Review")).to_be_enabled()
    expect(ui.page.get_by_role("note")).to_be_hidden()


def test_the_editor_says_where_a_position_is_that_is_not_in_kafka(ui: Ui, cluster: Cluster, name: str) -> None:
    cluster.herder.create(name, {"connector.class": "StatsdSource", "topic": "t"}, TargetState.STOPPED)
    ui.go(f"#{name}/offsets")
    expect(ui.page.get_by_role("note")).to_have_text(
        "There is no position: what is sent to the connector once cannot be asked for again."
    )
    expect(ui.button("Review")).to_be_disabled()
    expect(ui.button("Reset all")).to_be_disabled()
