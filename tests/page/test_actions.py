"""Starts, pauses, stops and restarts connectors and tasks in the page."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from sluiceway.storage.model import State, TargetState
from support.browser import screenshot
from support.dashboard import SINK, MemoryConnectors
from support.eventually import eventually
from support.page import PageServer, Ui, opened


@pytest.fixture
def connectors() -> MemoryConnectors:
    made = MemoryConnectors()
    made.add("orders", SINK, tasks=[State.RUNNING, State.FAILED], trace="Broken")
    return made


def test_the_details_restart_one_task(browser: Browser, connectors: MemoryConnectors) -> None:
    with PageServer(connectors.herder, connectors.dashboard) as server, opened(browser, server.url, "#orders") as ui:
        ui.button("Restart task 1").click()
        expect(ui.page.get_by_role("status")).to_contain_text("restart of task 1 requested")
        [request] = eventually(connectors.config.take_restart_requests, what="the request")
        assert (request.connector, request.task) == ("orders", 1)
        screenshot(ui.page, "connector-tasks")


def _act(ui: Ui, connectors: MemoryConnectors, action: str, target: TargetState) -> None:
    ui.page.locator(f'[data-action="{action}"]').click()
    if action == "stop":
        ui.page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    eventually(lambda: connectors.target("orders") is target, what=action)


def test_the_details_pause_resume_and_stop_a_connector(browser: Browser, connectors: MemoryConnectors) -> None:
    with PageServer(connectors.herder, connectors.dashboard) as server, opened(browser, server.url, "#orders") as ui:
        _act(ui, connectors, "pause", TargetState.PAUSED)
        _act(ui, connectors, "resume", TargetState.STARTED)
        _act(ui, connectors, "stop", TargetState.STOPPED)
        expect(ui.button("Edit offsets")).to_be_enabled()


def test_a_config_that_a_dag_sets_is_not_edited_here_and_a_clone_is_nobodys(browser: Browser) -> None:
    connectors = MemoryConnectors()
    connectors.add("lines", airflow_dag="etl", airflow_config_task="load")
    with PageServer(connectors.herder, connectors.dashboard) as server, opened(browser, server.url, "#lines") as ui:
        set_by = "The config is set by DAG etl, task load: change it in the DAG's file"
        expect(ui.page.get_by_text(set_by)).to_be_visible()
        expect(ui.button("Edit")).to_be_disabled()
        expect(ui.button("Edit")).to_have_attribute("title", set_by)
        ui.button("Delete").click()
        expect(ui.page.get_by_role("dialog")).to_contain_text("The next run of DAG etl creates it again")
        ui.page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        ui.go("#lines/edit")
        expect(ui.page.get_by_role("note")).to_contain_text(set_by)
        expect(ui.button("Review")).to_be_disabled()
        screenshot(ui.page, "editor-of-a-dags-config")
        ui.go("#lines/clone")
        expect(ui.button("Review")).to_be_enabled()
        expect(ui.page.get_by_role("note")).to_be_hidden()
        expect(ui.control("airflow.dag")).to_have_value("")
        expect(ui.field("airflow.config.task")).to_have_count(0)


def test_what_a_dag_does_not_set_is_edited(browser: Browser, connectors: MemoryConnectors) -> None:
    with PageServer(connectors.herder, connectors.dashboard) as server, opened(browser, server.url, "#orders") as ui:
        expect(ui.button("Edit")).to_be_enabled()
        expect(ui.page.get_by_text("The config is set by")).to_have_count(0)
        ui.go("#orders/edit")
        expect(ui.button("Review")).to_be_enabled()
        expect(ui.page.get_by_role("note")).to_be_hidden()


def test_a_connector_that_moves_or_has_moved_says_where_it_is(browser: Browser) -> None:
    connectors = MemoryConnectors()
    connectors.add("gone", state=State.STOPPED, target=TargetState.STOPPED, sluiceway_moved_to="http://connect:8083")
    connectors.add("going", state=State.STOPPED, target=TargetState.STOPPED, sluiceway_migrate_state="RUNNING")
    connectors.add("here")
    with PageServer(connectors.herder, connectors.dashboard) as server, opened(browser, server.url) as ui:
        rows = {name: ui.page.locator(f'[data-connector="{name}"] .whereabouts') for name in ("gone", "going", "here")}
        expect(rows["gone"]).to_have_text("Has moved to http://connect:8083 and rests here")
        expect(rows["going"]).to_contain_text("Moves between two clusters")
        expect(rows["here"]).to_have_count(0)
        screenshot(ui.page, "moves")
        ui.go("#gone")
        expect(ui.page.get_by_text("Has moved to http://connect:8083")).to_be_visible()
        ui.page.locator('[data-action="resume"]').click()
        expect(ui.page.get_by_role("status")).to_contain_text("sluiceway migrate --execute")
        assert connectors.target("gone") is TargetState.STOPPED
