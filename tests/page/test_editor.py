"""Creates, edits, clones and deletes connectors in the page. Screenshots are written to build/screenshots."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect

from sluiceway.storage.model import State, TargetState
from support.browser import screenshot
from support.page import Cluster, Ui

pytestmark = pytest.mark.kafka

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
ROUTER = "org.apache.kafka.connect.transforms.RegexRouter"


def test_a_connector_is_made_from_a_plugin_of_the_catalogue_by_the_form(ui: Ui, cluster: Cluster, name: str) -> None:
    ui.page.get_by_role("link", name="Create connector").click()
    ui.page.get_by_role("searchbox").fill("filestream source")
    expect(ui.page.get_by_role("row")).to_have_count(3)  # with the head, and the name of the system
    expect(ui.page.locator('[data-system="Files"] [data-plugin]')).to_contain_text("Follows one file")
    screenshot(ui.page, "plugins")
    ui.page.get_by_role("link", name="FileStreamSourceConnector").click()
    expect(ui.page.get_by_text("Path of the file to read and follow")).to_be_visible()
    screenshot(ui.page, "plugin")
    ui.page.get_by_role("link", name="Create a connector").click()
    expect(ui.control("name")).to_be_focused()
    expect(ui.field("topic")).to_contain_text("required")
    expect(ui.control("connector.class")).not_to_be_editable()
    expect(ui.page.get_by_role("status").first).to_have_text("2 keys to fill in")
    first = ui.page.locator("fieldset").nth(1)
    expect(first.locator("legend")).to_have_text("Where and when it runs")
    expect(first.locator('[data-field="airflow.mode"] select, [data-field="airflow.schedule"] input')).to_have_count(2)
    ui.fill({"name": name, "tasks.max": "many"})
    expect(ui.field("tasks.max").locator(".wrong")).to_contain_text("Not a number of type INT")
    expect(ui.control("tasks.max")).to_have_attribute("aria-invalid", "true")
    expect(ui.field("topic").locator(".wrong")).to_be_empty()  # not asked for yet
    screenshot(ui.page, "form")
    ui.button("Review").click()
    expect(ui.field("topic").locator(".wrong")).to_contain_text('Missing required configuration "topic"')
    expect(ui.control("tasks.max")).to_be_focused()
    ui.fill({"tasks.max": "2", "topic": "lines", "spark.executor.memory": "1g", "airflow.mode": "micro-batch"})
    expect(ui.page.get_by_role("status").first).to_have_text("No errors")
    ui.page.get_by_label("Start as").select_option("Stopped")
    ui.button("Review").click()
    expect(ui.page.get_by_role("dialog")).to_contain_text("spark.executor.memory")
    ui.page.get_by_role("dialog").get_by_role("button", name="Create").click()
    expect(ui.page.get_by_role("heading", level=1)).to_have_text(name)
    assert cluster.config(name) == {
        "name": name,
        "connector.class": SOURCE,
        "tasks.max": "2",
        "topic": "lines",
        "spark.executor.memory": "1g",
        "airflow.mode": "micro-batch",
    }
    assert cluster.herder.status(name).connector.state is State.STOPPED


def test_the_sections_of_a_form_are_listed_with_their_errors_and_can_be_jumped_to(ui: Ui) -> None:
    ui.go(f"#/plugins/{SINK}/create")
    index = ui.page.get_by_role("navigation", name="Sections")
    jump = index.get_by_role("button", name="Error Handling")
    section = ui.page.locator('[data-section="Error Handling"]')
    expect(jump).to_be_visible()
    legends = ui.page.locator("fieldset:visible > legend").all_inner_texts()
    assert index.get_by_role("button").all_inner_texts() == legends
    assert len(legends) > 5
    assert section.evaluate("element => element.getBoundingClientRect().top") > 100
    jump.click()
    expect(section).to_be_focused()
    expect(section).to_be_in_viewport()
    ui.fill({"errors.retry.timeout": "soon", "name": "a"})
    expect(section.locator(".wrong p").first).to_be_visible()
    expect(jump).to_have_text(re.compile(r"^Error Handling \d errors?$"))
    ui.fill({"errors.retry.timeout": "5"})
    expect(jump).to_have_text("Error Handling")


@pytest.mark.long
def test_the_form_shows_the_keys_of_transforms_and_converters_as_they_are_chosen(ui: Ui) -> None:
    ui.go(f"#/plugins/{SINK}/create")
    ui.fill({"topics": "a", "transforms": "route"})
    expect(ui.field("transforms.route.type")).to_be_visible()
    assert ROUTER in ui.control("transforms.route.type").locator("option").evaluate_all("all => all.map((each) => each.value)")
    ui.set("transforms.route.type", ROUTER)
    expect(ui.field("transforms.route.regex")).to_contain_text("required")
    expect(ui.page.locator("fieldset", has=ui.field("transforms.route.regex")).locator("legend")).to_have_text(
        "Transforms: route"
    )
    ui.set("value.converter", "org.apache.kafka.connect.json.JsonConverter")
    expect(ui.control("value.converter.schemas.enable").locator("option").first).to_have_text("Default: true")
    ui.set("transforms", "")
    expect(ui.field("transforms.route.regex")).to_have_count(0)


@pytest.mark.long
def test_keys_that_are_not_visible_are_hidden_unless_they_have_a_value(ui: Ui) -> None:
    shown = """({ Field }) => {
        const definition = {name: "a", type: "STRING", required: false, importance: "LOW", documentation: "", width: "SHORT"};
        const field = new Field("a", () => {});
        return [[true, undefined], [false, undefined], [false, "x"]].map(([visible, value]) => {
            field.update({definition, found: {errors: [], recommended_values: [], visible}}, value, false);
            return !field.element.hidden;
        });
    }"""
    assert ui.evaluated("field", shown) == [True, False, True]


@pytest.mark.long
def test_json_has_the_same_findings_beside_its_lines(ui: Ui, cluster: Cluster, name: str) -> None:
    ui.go(f"#/plugins/{SOURCE}/create")
    expect(ui.field("topic")).to_be_visible()
    ui.button("JSON").click()
    text = ui.page.get_by_label("Config as JSON")
    text.fill(f'{{"name": "{name}", "config": {{\n"connector.class": "FileStreamSource",\n"tasks.max": 0,\n"topic": "t"}}}}')
    note = ui.page.locator(".notes li").nth(2)
    expect(note).to_contain_text("Value must be at least 1")
    screenshot(ui.page, "json")
    ui.page.get_by_role("button", name="Line 3").click()
    assert text.evaluate("element => element.value.slice(element.selectionStart, element.selectionEnd)") == '"tasks.max": 0,'
    text.fill('{"topic": "t"\n"file": "f"}')
    expect(ui.page.locator(".notes li").nth(1)).to_contain_text("Expected ,")
    ui.button("Form").click()
    expect(text).to_be_visible()
    text.fill(f'{{"name": "{name}",\n"connector.class": "FileStreamSource",\n"tasks.max": 3,\n"topic": "t"}}')
    expect(ui.page.locator(".findings li")).to_have_count(0)
    ui.button("Form").click()
    expect(ui.control("tasks.max")).to_have_value("3")
    ui.button("Review").click()
    ui.page.get_by_role("dialog").get_by_role("button", name="Create").click()
    expect(ui.page.get_by_role("heading", level=1)).to_have_text(name)
    assert cluster.config(name)["tasks.max"] == "3"


@pytest.mark.long
def test_an_edit_shows_its_changes_and_keeps_secrets(ui: Ui, cluster: Cluster, name: str) -> None:
    before = {"connector.class": SOURCE, "topic": "t", "file": "/a", "my.password": "hunter2", "note": "two\nlines"}
    cluster.herder.create(name, before, TargetState.STOPPED)
    ui.go(f"#{name}")
    ui.button("Edit").click()
    expect(ui.control("name")).not_to_be_editable()
    expect(ui.control("my.password")).to_have_attribute("type", "password")
    ui.set("file", "")
    ui.set("topic", "u")
    ui.button("JSON").click()
    text = ui.page.get_by_label("Config as JSON")
    shown = {"connector.class": SOURCE, "topic": "u", "my.password": "[hidden]", "note": "two\nlines", "name": name}
    expect(text).to_have_value(f"{json.dumps(shown, indent=2)}\n")
    text.fill(text.input_value().replace('"topic": "u"', '"topic": "u", "batch.size": 10'))
    ui.button("Review").click()
    for key, before_and_after in (("batch.size", "not set10"), ("file", "/anot set"), ("topic", "tu")):
        expect(ui.page.locator(f'[data-change="{key}"]')).to_have_text(f"{key}{before_and_after}")
    screenshot(ui.page, "review")
    ui.page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(ui.page.get_by_role("heading", level=1)).to_have_text(name)
    after = {**before, "topic": "u", "batch.size": "10", "name": name}
    del after["file"]
    assert cluster.config(name) == after


@pytest.mark.long
def test_a_review_tells_that_somebody_else_has_changed_the_config(ui: Ui, cluster: Cluster, name: str) -> None:
    cluster.herder.create(name, {"connector.class": SOURCE, "topic": "t"}, TargetState.STOPPED)
    ui.go(f"#{name}/edit")
    ui.set("batch.size", "10")
    cluster.herder.patch_config(name, {"topic": "theirs"})
    ui.button("Review").click()
    expect(ui.page.get_by_role("dialog")).to_contain_text("Somebody has changed this config")
    expect(ui.page.locator('[data-change="topic"]')).to_contain_text("theirs")
    ui.button("Back").click()
    ui.page.get_by_role("button", name="Cancel").click()
    ui.page.get_by_role("dialog").get_by_role("button", name="Discard").click()
    expect(ui.page.get_by_role("heading", level=1)).to_have_text(name)
    assert cluster.config(name)["topic"] == "theirs"


@pytest.mark.long
def test_what_was_entered_is_kept_while_the_user_looks_at_something_else(ui: Ui, cluster: Cluster, name: str) -> None:
    cluster.herder.create(name, {"connector.class": SOURCE, "topic": "t"}, TargetState.STOPPED)
    ui.go(f"#{name}")
    ui.button("Edit").click()
    ui.set("topic", "entered")
    ui.page.go_back()
    expect(ui.page.get_by_role("heading", level=1)).to_have_text(name)
    ui.page.go_forward()
    expect(ui.control("topic")).to_have_value("entered")


@pytest.mark.long
def test_a_clone_differs_in_its_name_only(ui: Ui, cluster: Cluster, name: str) -> None:
    cluster.herder.create(name, {"connector.class": SOURCE, "topic": "t", "my.password": "hunter2"}, TargetState.STOPPED)
    ui.go(f"#{name}")
    ui.button("Clone").click()
    expect(ui.control("name")).to_have_value("")
    ui.set("name", name)
    ui.button("Review").click()
    ui.page.get_by_role("dialog").get_by_role("button", name="Create").click()
    expect(ui.page.get_by_role("dialog").get_by_role("alert")).to_have_text(f"Connector {name} already exists")
    ui.button("Back").click()
    ui.set("name", f"{name}-2")
    ui.page.get_by_label("Start as").select_option("Paused")
    ui.button("Review").click()
    expect(ui.page.get_by_role("dialog")).not_to_contain_text("hunter2")
    ui.page.get_by_role("dialog").get_by_role("button", name="Create").click()
    expect(ui.page.get_by_role("heading", level=1)).to_have_text(f"{name}-2")
    assert cluster.config(f"{name}-2") == {**cluster.config(name), "name": f"{name}-2"}
    assert cluster.herder.status(f"{name}-2").connector.state is State.PAUSED


@pytest.mark.long
def test_a_connector_is_deleted_after_a_confirmation(ui: Ui, cluster: Cluster, name: str) -> None:
    cluster.herder.create(name, {"connector.class": SOURCE, "topic": "t"}, TargetState.STOPPED)
    ui.go(f"#{name}")
    ui.button("Delete").click()
    ui.page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert name in cluster.herder.connectors()
    ui.button("Delete").click()
    expect(ui.page.get_by_role("dialog")).to_contain_text("Its offsets are kept")
    screenshot(ui.page, "connector-delete")
    ui.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(ui.page.get_by_role("heading", level=1)).to_have_text("Connectors")
    assert name not in cluster.herder.connectors()
