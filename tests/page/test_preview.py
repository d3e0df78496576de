"""Previews configs in the page: in the editor, and of a stored connector."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from sluiceway.storage.model import TargetState
from support.browser import screenshot
from support.kafka import Kafka
from support.page import Cluster, Ui

pytestmark = [pytest.mark.kafka, pytest.mark.long]

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
JSON = "org.apache.kafka.connect.json.JsonConverter"
HOIST = "org.apache.kafka.connect.transforms.HoistField$Value"
FILTER = "org.apache.kafka.connect.transforms.Filter"
REGEX = "org.apache.kafka.connect.transforms.RegexRouter"
START_MS = 90_000  # of a preview's process


def finished(ui: Ui) -> Locator:
    """Return the dialog of the preview when its result is shown."""
    dialog = ui.page.get_by_role("dialog")
    expect(dialog).to_have_attribute("aria-busy", "false", timeout=START_MS)
    return dialog


def stage(dialog: Locator, record: int, name: str) -> Locator:
    return dialog.locator(f'[data-number="{record}"] [data-stage="{name}"]')


def test_what_was_entered_is_previewed_before_it_is_stored(
    ui: Ui, cluster: Cluster, kafka: Kafka, name: str, tmp_path: Path
) -> None:
    file = tmp_path / "in.txt"
    file.write_text("first\n<b>second</b>\nthird\n")
    ui.go(f"#/plugins/{SOURCE}/create")
    expect(ui.field("topic")).to_be_visible()
    ui.fill({"name": name, "topic": name, "file": str(file), "transforms": "line,route"})
    for key, plugin in (("transforms.line.type", HOIST), ("transforms.route.type", REGEX)):
        expect(ui.field(key)).to_be_visible()
        ui.set(key, plugin)
    expect(ui.field("transforms.line.field")).to_be_visible()
    expect(ui.field("transforms.route.regex")).to_be_visible()
    ui.fill({"transforms.line.field": "line", "transforms.route.regex": "none", "transforms.route.replacement": "x"})
    ui.set("value.converter", JSON)
    expect(ui.field("value.converter.schemas.enable")).to_be_attached()
    ui.set("value.converter.schemas.enable", "false")
    ui.button("Preview").click()
    dialog = finished(ui)
    expect(dialog.get_by_role("status")).to_contain_text("3 records from the beginning. Nothing was written.")
    expect(stage(dialog, 2, "Read")).to_contain_text('"<b>second</b>"')
    expect(stage(dialog, 2, "line").locator("td.changed")).to_contain_text('"line": "<b>second</b>"')
    expect(stage(dialog, 2, "line").locator("td.changed")).to_contain_text("struct {line: string}")
    expect(stage(dialog, 2, "route")).to_contain_text("unchanged")
    expect(stage(dialog, 2, "Written to Kafka")).to_contain_text('"line": "<b>second</b>"')
    expect(stage(dialog, 2, "Written to Kafka")).to_contain_text("24 bytes")
    screenshot(ui.page, "preview-source")
    dialog.get_by_label("Records").select_option("1")
    dialog.get_by_role("button", name="Run again").click()
    expect(dialog.get_by_role("status")).to_contain_text("1 record from the beginning", timeout=START_MS)
    dialog.get_by_role("button", name="Close").click()
    expect(ui.control("name")).to_have_value(name)
    assert name not in cluster.herder.connectors()
    assert name not in kafka.admin.list_topics(timeout=30).topics


def test_a_config_with_errors_is_not_run(ui: Ui) -> None:
    ui.go(f"#/plugins/{SOURCE}/create")
    expect(ui.field("topic")).to_be_visible()
    ui.set("tasks.max", "many")
    ui.button("Preview").click()
    dialog = finished(ui)
    expect(dialog.get_by_role("status")).to_contain_text("The config has errors")
    expect(dialog.locator(".findings")).to_contain_text('topic: Missing required configuration "topic"')
    screenshot(ui.page, "preview-errors")


@pytest.fixture
def sink(cluster: Cluster, kafka: Kafka, name: str, unique: Callable[[str], str], tmp_path: Path) -> str:
    """A stopped sink with a record that it writes, one that it drops, and one that fails."""
    topic = kafka.create(unique("topic"))
    config = {"connector.class": "FileStreamSink", "topics": topic, "file": str(tmp_path / "out.txt"), "errors.tolerance": "all"}
    config |= {"value.converter": JSON, "value.converter.schemas.enable": "false", "transforms": "drop", "predicates": "null"}
    config |= {"transforms.drop.type": FILTER, "transforms.drop.predicate": "null"}
    config |= {"predicates.null.type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone"}
    cluster.herder.create(name, config, TargetState.STOPPED)
    kafka.produce(topic, json.dumps({"id": 1}).encode(), key=b"\xff", headers=[("own", b"1")])
    kafka.produce(topic, None)
    kafka.produce(topic, b"{no json")
    return name


def test_a_connector_shows_what_it_would_write_and_what_fails(ui: Ui, kafka: Kafka, sink: str, tmp_path: Path) -> None:
    ui.go(f"#{sink}")
    ui.button("Preview").click()
    dialog = finished(ui)
    expect(dialog.get_by_role("status")).to_contain_text("3 records from the beginning. Nothing was written. 1 failed.")
    expect(stage(dialog, 1, "In Kafka")).to_contain_text("/w==base64, 1 byte")
    expect(stage(dialog, 1, "In Kafka")).to_contain_text("own")
    expect(stage(dialog, 1, "Converted")).to_contain_text('"id": 1')
    expect(stage(dialog, 1, "drop")).to_contain_text("not selected")
    expect(stage(dialog, 1, "Given to put()")).to_contain_text('"id": 1')
    expect(stage(dialog, 2, "drop")).to_contain_text("dropped")
    expect(stage(dialog, 2, "Given to put()")).to_have_count(0)
    expect(dialog.locator('[data-number="3"] .wrong')).to_contain_text("Failed in VALUE_CONVERTER (JsonConverter)")
    expect(dialog.locator("[data-target]")).to_contain_text("out.txt: {id=1}")
    screenshot(ui.page, "preview-sink")
    assert not (tmp_path / "out.txt").exists()
    assert kafka.committed(f"connect-{sink}") == {}
    ui.page.keyboard.press("Escape")
    expect(ui.button("Preview")).to_be_focused()


def test_a_preview_that_is_refused_says_why(ui: Ui, sink: str, cluster: Cluster) -> None:
    ui.go(f"#{sink}")
    expect(ui.button("Preview")).to_be_enabled()
    cluster.herder.delete(sink)
    ui.button("Preview").click()
    dialog = finished(ui)
    expect(dialog.get_by_role("status")).to_have_text("The preview failed.")
    expect(dialog.locator(".banner")).to_contain_text(f"Connector {sink} not found")
