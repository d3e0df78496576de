"""Long texts are readable at each width of the window: nothing is cut off, and the page itself does not scroll sideways."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect

from support.browser import screenshot
from support.dashboard import SINK, MemoryConnectors
from support.page import PageServer, Ui, opened

ERROR = "org.apache.kafka.connect.errors.DataException"
MESSAGE = "Converting byte[] to Kafka Connect data failed due to a serialization error of topic com.example.orders.v1"
CAUSE = "com.fasterxml.jackson.core.JsonParseException: Unrecognized token 'no': was expecting JSON at line 1, column 3"
FRAME = "org.apache.kafka.connect.json.JsonConverter.toConnectData(JsonConverter.java:334)"
TRACE = f"{ERROR}: {MESSAGE}\n\tat {FRAME}\nCaused by: {CAUSE}\n"
CONTEXT = {
    "topic": "com.example.orders.v1",
    "partition": "0",
    "offset": "42",
    "stage": "VALUE_CONVERTER",
    "exception.class.name": ERROR,
    "exception.message": MESSAGE,
    "exception.stacktrace": TRACE,
}
VALUE = {"text": '{"id": 1, "note": "' + 60 * "word " + "and-a-text-without-a-blank-" * 20 + '"', "format": "text"}
HEADERS = [{"key": f"__connect.errors.{key}", "value": {"text": text, "format": "text"}} for key, text in CONTEXT.items()]
RECORD = {
    "partition": 0,
    "offset": 7,
    "timestamp": 1_700_000_000_000,
    "replayed": 0,
    "key": VALUE,
    "value": VALUE,
    "headers": HEADERS,
}
WIDTHS = [1376, 1000, 560]


@pytest.fixture(scope="module")
def server() -> Iterator[PageServer]:
    connectors = MemoryConnectors()
    connectors.add("orders", SINK, errors_deadletterqueue_topic_name="dead")
    connectors.dashboard.start()
    with PageServer(connectors.herder, connectors.dashboard) as server:
        yield server
    connectors.dashboard.stop()


def _answer(ui: Ui, content: dict[str, Any]) -> None:
    def answer(route: Route) -> None:
        route.fulfill(json=content)

    ui.page.route("**/dead-letters*", answer)


def _is_as_wide_as_the_window(ui: Ui) -> bool:
    return bool(ui.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


@pytest.mark.parametrize("width", WIDTHS)
def test_a_dead_letter_queue_record_is_read_without_a_cut_text(browser: Browser, server: PageServer, width: int) -> None:
    with opened(browser, server.url, width=width) as ui:
        _answer(ui, {"topic": "dead", "count": 1, "records": [RECORD]})
        ui.go("#orders")
        ui.page.get_by_text("Dead letter queue records", exact=True).click()
        row = ui.page.locator('[data-record="0:7"]')
        expect(row).to_contain_text(MESSAGE)
        expect(row.get_by_text(f"Cause: {CAUSE}")).to_be_visible()
        screenshot(ui.page, f"letters-{width}")
        assert _is_as_wide_as_the_window(ui)
        cut = "cells => cells.filter((each) => each.scrollWidth > each.clientWidth + 1).map((each) => each.innerText)"
        assert row.locator("td").evaluate_all(cut) == []
        if width >= 1000:
            region = ui.page.get_by_role("region", name="Dead letter queue records")
            assert region.evaluate("element => element.scrollWidth <= element.clientWidth")
        row.get_by_text("Trace", exact=True).click()
        expect(row.locator("pre")).to_contain_text("JsonConverter.java:334")
        row.get_by_text("7 headers").click()
        assert _is_as_wide_as_the_window(ui)


@pytest.mark.parametrize("width", [1000, 800])  # as in the tab of a DAG
def test_cards_of_connectors_use_the_width(browser: Browser, server: PageServer, width: int) -> None:
    with opened(browser, server.url, width=width) as ui:
        stop = ui.page.get_by_role("button", name="Stop orders")
        expect(stop).to_be_visible()
        screenshot(ui.page, f"cards-{width}")
        ends = "element => element.getBoundingClientRect().right / document.documentElement.clientWidth"
        assert 0.8 < stop.evaluate(ends) < 1
        assert _is_as_wide_as_the_window(ui)
