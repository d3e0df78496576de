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
