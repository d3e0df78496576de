"""The calendar of a connector's intervals, and clearing the run of one."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from playwright.sync_api import Route, expect

from sluiceway.config.intervals import Interval
from sluiceway.storage.factory import open_stores
from sluiceway.storage.intervals import IntervalEntry, IntervalState, ledger_name
from support.browser import screenshot
from support.page import Cluster, Ui

pytestmark = [pytest.mark.kafka, pytest.mark.long]

_HOUR = 3_600_000
_CONFIG = {
    "connector.class": "FileStreamSink",
    "topics": "t",
    "file": "/f",
    "airflow.mode": "micro-batch",
    "airflow.dag": "hourly",
}


@pytest.fixture
def connector(cluster: Cluster, name: str) -> str:
    """A connector with intervals of each kind, one of them older than the calendar."""
    cluster.herder.create(name, _CONFIG)
    last = int(time.time() * 1000) // _HOUR * _HOUR

    def entry(number: int, state: IntervalState = IntervalState.DONE, **more: Any) -> IntervalEntry:
        start = last - number * _HOUR
        return IntervalEntry(Interval(start, start + _HOUR), state, runs=(f"run-{number}",), **more)

    entries = [
        entry(1, IntervalState.RUNNING),
        entry(2, IntervalState.FAILED, error="<b>out of disk</b>"),
        entry(3, attempt=2, records=1, late=0),
        entry(4, records=1204, late=3, at_least=True),
        entry(5, records=0, late=0),
        entry(6, records=9, late=0, rerun=1),
        entry(31 * 24, records=7, late=0),
    ]
    with open_stores(cluster.worker) as stores:
        stores.offsets.put(ledger_name(name), [each.update() for each in entries])
    return name


def test_intervals_are_shown_and_a_run_is_cleared(ui: Ui, connector: str) -> None:
    asked: list[Any] = []

    def answer(route: Route) -> None:
        asked.append((route.request.url.rpartition("/api/v2/")[2], json.loads(route.request.post_data or "")))
        route.fulfill(status=200, content_type="application/json", body="{}")

    ui.page.route("**/api/v2/dags/**", answer)
    ui.go(f"#{connector}")
    ui.page.get_by_text("Intervals of its runs").click()
    cells = ui.page.locator(".calendar button.cell")
    expect(cells).to_have_count(6)
    kinds = {cell.get_attribute("data-kind"): cell for cell in cells.all()}
    expect(cells.first).to_have_attribute(
        "aria-label", re.compile("moved, 9 records, late records wait until it is moved again$")
    )
    assert set(kinds) == {"running", "failed", "again", "late", "done"}
    expect(kinds["late"]).to_have_attribute("aria-label", re.compile("moved, at least 1,204 records, at least 3 late$"))
    expect(kinds["again"]).to_have_attribute("aria-label", re.compile("moved, 1 record, moved 2 times$"))
    kinds["failed"].click()
    expect(ui.page.locator(".chosen pre")).to_have_text("<b>out of disk</b>")
    screenshot(ui.page, "intervals")
    ui.button("Clear its run").click()
    dialog = ui.page.get_by_role("dialog")
    expect(dialog).to_contain_text("Files of the interval are replaced")
    dialog.get_by_role("button", name="Clear").click()
    expect(ui.page.get_by_role("status").last).to_contain_text("run-2 is cleared")
    assert asked == [("dags/hourly/clearTaskInstances", {"dry_run": False, "dag_run_id": "run-2", "only_failed": False})]
