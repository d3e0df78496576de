"""Shows the log of a connector's driver and tasks in the page. ``tests/airflow/test_ui.py`` does so with Airflow's own API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect

from sluiceway.storage.model import State
from support.browser import screenshot
from support.dashboard import SINK, MemoryConnectors
from support.page import PageServer, Ui, opened

pytestmark = pytest.mark.long

LINES = ["[orders|worker] Starting", "[orders|task-0] Polling", "[other|task-0] Not ours", "[orders|task-1] <b>Failed</b>"]
TASK = {"task_id": "run", "try_number": 2, "map_index": -1, "state": "running", "start_date": "2026-01-02T03:04:05Z"}
ANSWERS: dict[str, Any] = {
    "dagRuns": {"dag_runs": [{"dag_run_id": "manual"}]},
    "taskInstances": {"task_instances": [TASK]},
    "links": {"extra_links": {"Spark UI": "http://spark:4040"}},
}


def log_json(lines: list[str]) -> str:
    return "".join(json.dumps({"timestamp": "2026-01-02T03:04:05Z", "level": "info", "event": each}) + "\n" for each in lines)


@pytest.fixture
def connectors() -> MemoryConnectors:
    made = MemoryConnectors()
    made.add("orders", SINK, tasks=[State.RUNNING, State.FAILED])
    return made


def airflow(ui: Ui, answers: Mapping[str, Any] = ANSWERS, lines: list[str] = LINES) -> list[str]:
    """Answer requests to Airflow's API; return their URLs as they arrive."""
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        last = route.request.url.split("?")[0].rsplit("/", 1)[1]
        if last in answers:
            route.fulfill(json=answers[last])
        else:
            route.fulfill(body=log_json(lines), content_type="application/x-ndjson")

    ui.page.route("**/api/v2/**", answer)
    return asked


def open_log(ui: Ui) -> None:
    ui.page.get_by_text("Log of the driver and its tasks", exact=True).click()


def test_the_lines_of_each_task_are_shown_alone(browser: Browser, connectors: MemoryConnectors) -> None:
    with PageServer(connectors.herder, connectors.dashboard) as server, opened(browser, server.url, "#orders") as ui:
        asked = airflow(ui)
        open_log(ui)
        log = ui.page.get_by_label("End of the log")
        expect(log).to_have_text("\n".join(f"2026-01-02 03:04:05 INFO {each}" for each in LINES))
        assert any(url.endswith("/taskInstances/run/logs/2?map_index=-1") for url in asked)
        part = ui.page.get_by_label("Lines of")
        assert part.locator("option").all_inner_texts() == ["all lines", "the connector", "task 0", "task 1"]
        screenshot(ui.page, "log")
        part.select_option("task 1")
        expect(log).to_have_text("2026-01-02 03:04:05 INFO [orders|task-1] <b>Failed</b>")
        ui.button("Read again").click()
        expect(part).to_have_value("task-1")
        expect(log).not_to_contain_text("worker")


def test_a_link_leads_to_the_logs_of_executors(browser: Browser, connectors: MemoryConnectors) -> None:
    with PageServer(connectors.herder, connectors.dashboard) as server, opened(browser, server.url, "#orders") as ui:
        ui.page.context.route("http://spark:4040/**", lambda route: route.fulfill(body="Executors", content_type="text/html"))
        airflow(ui)
        open_log(ui)
        with ui.page.context.expect_page() as spark:
            ui.page.get_by_role("link", name="Spark UI").click()
        expect(spark.value.get_by_text("Executors")).to_be_visible()
        ui.page.unroute_all()
        airflow(ui, {**ANSWERS, "links": {"extra_links": {"Spark UI": "javascript:alert(1)"}}})
        ui.button("Read again").click()
        expect(ui.page.get_by_role("link", name="Spark UI")).to_be_hidden()
        expect(ui.page.get_by_label("End of the log")).to_be_visible()


def test_a_dag_that_never_ran_has_no_log(browser: Browser, connectors: MemoryConnectors) -> None:
    with PageServer(connectors.herder, connectors.dashboard) as server, opened(browser, server.url, "#orders") as ui:
        airflow(ui, {**ANSWERS, "dagRuns": {"dag_runs": []}})
        open_log(ui)
        expect(ui.page.get_by_text("Airflow has not started the connector's DAG yet.")).to_be_visible()
        expect(ui.page.get_by_label("Lines of")).to_be_hidden()
