"""Shows the log of a connector's driver and tasks in the page. ``tests/airflow/test_ui.py`` does so with Airflow's own API."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from sluiceway.storage.model import State
from support.airflow_answers import ANSWERS, LINES, answer_for_airflow, open_log
from support.browser import screenshot
from support.dashboard import SINK, MemoryConnectors
from support.page import PageServer, opened

pytestmark = pytest.mark.long


@pytest.fixture
def connectors() -> MemoryConnectors:
    made = MemoryConnectors()
    made.add("orders", SINK, tasks=[State.RUNNING, State.FAILED])
    return made


def test_the_lines_of_each_task_are_shown_alone(browser: Browser, connectors: MemoryConnectors) -> None:
    with PageServer(connectors.herder, connectors.dashboard) as server, opened(browser, server.url, "#orders") as ui:
        asked = answer_for_airflow(ui)
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


def test_the_newest_lines_are_visible_without_the_marks_of_groups_in_airflows_zone(
    browser: Browser, connectors: MemoryConnectors
) -> None:
    with PageServer(connectors.herder, connectors.dashboard) as server, opened(browser, server.url, "#orders") as ui:
        ui.page.evaluate("localStorage.setItem('timezone', '\"Asia/Kolkata\"')")
        many = [f"[orders|worker] {number}" for number in range(200)]
        answer_for_airflow(ui, lines=("::group::Log message source details", "::endgroup::", *many, "::endgroup::"))
        open_log(ui)
        log = ui.page.get_by_label("End of the log")
        expect(log).to_have_text("\n".join(f"2026-01-02 08:34:05 INFO {each}" for each in many))
        below = "log => new Promise(requestAnimationFrame).then(() => log.scrollHeight - log.clientHeight - log.scrollTop)"
        assert log.evaluate(below) < 2
        assert log.evaluate("log => log.scrollTop") > 0, "there are more lines than fit"


def test_a_link_leads_to_the_logs_of_executors(browser: Browser, connectors: MemoryConnectors) -> None:
    with PageServer(connectors.herder, connectors.dashboard) as server, opened(browser, server.url, "#orders") as ui:
        ui.page.context.route("http://spark:4040/**", lambda route: route.fulfill(body="Executors", content_type="text/html"))
        answer_for_airflow(ui)
        open_log(ui)
        with ui.page.context.expect_page() as spark:
            ui.page.get_by_role("link", name="Spark UI").click()
        expect(spark.value.get_by_text("Executors")).to_be_visible()
        ui.page.unroute_all()
        answer_for_airflow(ui, {**ANSWERS, "links": {"extra_links": {"Spark UI": "javascript:alert(1)"}}})
        ui.button("Read again").click()
        expect(ui.page.get_by_role("link", name="Spark UI")).to_be_hidden()
        expect(ui.page.get_by_label("End of the log")).to_be_visible()


def test_a_dag_that_never_ran_has_no_log(browser: Browser, connectors: MemoryConnectors) -> None:
    with PageServer(connectors.herder, connectors.dashboard) as server, opened(browser, server.url, "#orders") as ui:
        answer_for_airflow(ui, {**ANSWERS, "dagRuns": {"dag_runs": []}})
        open_log(ui)
        expect(ui.page.get_by_text("Airflow has not started the connector's DAG yet.")).to_be_visible()
        expect(ui.page.get_by_label("Lines of")).to_be_hidden()
