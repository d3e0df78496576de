"""Checks each part of the page with axe-core, in light and dark mode, and uses it with the keyboard."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, expect

from sluiceway.storage.history import Origin
from sluiceway.storage.model import State, TargetState
from support.airflow_answers import answer_for_airflow, open_log
from support.axe import axe_script, violations
from support.browser import screenshot
from support.dashboard import SINK, MemoryConnectors
from support.kafka import Kafka
from support.page import Cluster, PageServer, Ui, opened

pytestmark = [pytest.mark.kafka, pytest.mark.long]

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
JSON = "org.apache.kafka.connect.json.JsonConverter"
HOIST = "org.apache.kafka.connect.transforms.HoistField$Value"


def list_of_connectors(ui: Ui, name: str) -> None:
    expect(ui.page.get_by_role("table")).to_be_visible()


def details(ui: Ui, name: str) -> None:
    ui.go(f"#{name}")
    ui.page.get_by_text("Dead letter queue records", exact=True).click()
    expect(ui.page.locator("[data-record]").first).to_be_visible()
    ui.page.get_by_text("Config", exact=True).click()


def flow(ui: Ui, name: str) -> None:
    ui.go("#/flow")
    expect(ui.page.locator(f'[data-key="node {name}"]')).to_be_visible()


def catalogue(ui: Ui, name: str) -> None:
    ui.go("#/plugins")
    expect(ui.page.get_by_role("link", name="FileStreamSourceConnector")).to_be_visible()


def documentation(ui: Ui, name: str) -> None:
    ui.go(f"#/plugins/{SOURCE}")
    expect(ui.page.get_by_text("Topic for the lines")).to_be_visible()


def form(ui: Ui, name: str) -> None:
    ui.go(f"#/plugins/{SOURCE}/create")
    ui.fill({"name": "a", "tasks.max": "x", "my.password": "p", "transforms": "t"})
    ui.button("Review").click()
    expect(ui.field("topic").locator(".wrong")).to_contain_text("Missing")
    closed = ui.page.locator("details:not([open]) > summary:visible")
    while closed.count():
        closed.first.click()


def json(ui: Ui, name: str) -> None:
    form(ui, name)
    ui.button("JSON").click()
    expect(ui.page.locator(".findings li").first).to_be_visible()


def review(ui: Ui, name: str) -> None:
    ui.go(f"#{name}/edit")
    ui.set("tasks.max", "3")
    ui.button("Review").click()
    expect(ui.page.get_by_role("dialog")).to_contain_text("tasks.max")


def offsets(ui: Ui, name: str) -> None:
    ui.go(f"#{name}/offsets")
    expect(ui.page.get_by_role("table")).to_be_visible()
    expect(ui.page.get_by_role("row")).not_to_have_count(0)


def offsets_picker(ui: Ui, name: str) -> None:
    offsets(ui, name)
    for target in ("a time", "the current, shifted by"):
        ui.page.get_by_label("Set to").select_option(target)
    ui.button("Fill in").click()
    expect(ui.page.get_by_role("alert").filter(has_text="Enter a number")).to_be_visible()


def history(ui: Ui, name: str) -> None:
    ui.go(f"#{name}/history")
    for summary in ("created", "config: ", "offsets of"):
        ui.page.locator("summary").filter(has_text=summary).first.click()
    expect(ui.page.locator("[data-change]").first).to_be_visible()


def rollback(ui: Ui, name: str) -> None:
    ui.go(f"#{name}/history")
    ui.button("Roll back to version 1").click()
    expect(ui.page.get_by_role("dialog")).to_contain_text("tasks.max")


def preview(ui: Ui, name: str) -> None:
    ui.go(f"#{name}")
    ui.button("Preview").click()
    dialog = ui.page.get_by_role("dialog")
    expect(dialog).to_have_attribute("aria-busy", "false", timeout=90_000)
    expect(dialog.locator("td.changed").first).to_be_visible()
    expect(dialog.locator(".wrong")).to_be_visible()


def log(ui: Ui, name: str) -> None:
    answer_for_airflow(ui)
    ui.go(f"#{name}")
    open_log(ui)
    expect(ui.page.get_by_label("End of the log")).to_be_visible()


PARTS: list[Callable[[Ui, str], None]] = [
    *(list_of_connectors, details, flow, catalogue, documentation, form, json, review),
    *(offsets, offsets_picker, history, rollback, preview, log),
]


@pytest.fixture(scope="module")
def axe() -> str:
    return axe_script()


@pytest.fixture(scope="module")
def connector(cluster: Cluster, kafka: Kafka, unique: Callable[[str], str]) -> str:
    """A stopped sink with offsets, a history, records that a preview shows and one that fails, and a dead letter queue record."""
    name, topic, dlq = unique("connector"), kafka.create(unique("topic")), kafka.create(unique("dlq"))
    config = {"connector.class": "FileStreamSink", "topics": topic, "errors.deadletterqueue.topic.name": dlq}
    config |= {"value.converter": JSON, "value.converter.schemas.enable": "false"}
    config |= {"transforms": "hoist", "transforms.hoist.type": HOIST, "transforms.hoist.field": "f"}
    herder = cluster.herder.acting_for(Origin("alice"))  # changes without an origin are not in the history
    herder.create(name, config, TargetState.STOPPED)
    herder.put_config(name, {**config, "tasks.max": "2"})
    kafka.produce(topic, b"0", b'{"a": 1}', b"\xff", headers=[("own", b"1")])
    herder.alter_offsets(name, [({"kafka_topic": topic, "kafka_partition": 0}, {"kafka_offset": 1})])
    kafka.produce(dlq, b"{}", headers=[("own", b"1")])
    return name


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_axe_finds_nothing_serious(
    browser: Browser, cluster: Cluster, connector: str, axe: str, part: Callable[[Ui, str], None], dark: bool
) -> None:
    with opened(browser, cluster.url, dark=dark) as ui:
        expect(ui.page.locator(f'[data-key="open {connector}"]')).to_be_visible()
        part(ui, connector)
        screenshot(ui.page, f"page-{part.__name__}-{'dark' if dark else 'light'}")
        assert violations(ui.page, axe) == []


def test_a_connector_is_made_with_the_keyboard_alone(browser: Browser) -> None:
    connectors = MemoryConnectors()
    with PageServer(connectors.herder, connectors.dashboard) as server, opened(browser, server.url) as ui:
        keyboard = ui.page.keyboard

        def tab_to(name: str) -> None:
            focused = "() => (document.activeElement.labels?.[0] ?? document.activeElement.closest('body *'))?.innerText"
            for _ in range(80):
                keyboard.press("Tab")
                if name in (ui.page.evaluate(focused) or ""):
                    return
            raise AssertionError(f"The Tab key does not reach {name}")

        expect(ui.page.get_by_role("link", name="Create connector")).to_be_visible()
        tab_to("Create connector")
        keyboard.press("Enter")
        expect(ui.page.get_by_role("link", name="FileStreamSourceConnector")).to_be_visible()
        tab_to("FileStreamSourceConnector")
        keyboard.press("Enter")
        expect(ui.page.get_by_text("Topic for the lines")).to_be_visible()
        tab_to("Create a connector")
        keyboard.press("Enter")
        expect(ui.control("name")).to_be_focused()
        keyboard.type("typed")
        tab_to("topic")
        keyboard.type("lines")
        tab_to("Review")
        keyboard.press("Enter")
        expect(ui.page.get_by_role("dialog")).to_contain_text("lines")
        tab_to("Create")
        keyboard.press("Enter")
        expect(ui.page.get_by_role("heading", level=1)).to_have_text("typed")
        assert connectors.herder.info("typed").config["topic"] == "lines"


def test_the_focus_stays_where_the_user_types_while_validations_arrive(browser: Browser) -> None:
    connectors = MemoryConnectors()
    with PageServer(connectors.herder, connectors.dashboard) as server, opened(browser, server.url) as ui:
        ui.go(f"#/plugins/{SOURCE}/create")
        ui.set("transforms", "")
        ui.control("transforms").focus()
        for letter in "route":
            ui.page.keyboard.type(letter)
            typed = ui.control("transforms").input_value()
            expect(ui.field(f"transforms.{typed}.type")).to_be_visible()
        expect(ui.control("transforms")).to_have_value("route")
        expect(ui.control("transforms")).to_be_focused()


def test_a_form_beside_a_thousand_connectors_is_as_fast(browser: Browser) -> None:
    connectors = MemoryConnectors()
    for number in range(1000):
        connectors.add(f"c-{number:04}", SINK, tasks=[State.RUNNING])
    with PageServer(connectors.herder, connectors.dashboard) as server, opened(browser, server.url) as ui:
        expect(ui.page.get_by_text("Page 1 of 40, 1,000 connectors")).to_be_visible()
        ui.go("#c-0500/edit")
        ui.set("tasks.max", "2")
        ui.button("Review").click()
        ui.page.get_by_role("dialog").get_by_role("button", name="Save").click()
        expect(ui.page.get_by_role("heading", level=1)).to_have_text("c-0500")
        ui.page.get_by_role("button", name="All connectors").click()
        expect(ui.page.get_by_text("Page 1 of 40, 1,000 connectors")).to_be_visible()
