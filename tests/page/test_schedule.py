"""Shows schedules, runs, and states that are true to Airflow, in its zone and format of times."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from sluiceway.provider.ui.dag_facts import DagFacts, RunFacts
from sluiceway.storage.model import State, TargetState
from support.axe import axe_script, violations
from support.browser import screenshot
from support.dashboard import SINK, MemoryConnectors
from support.fleet import Row, fill
from support.page import PageServer, Ui, opened

TOLD = """() => [...document.querySelectorAll('tr[data-connector]')].map((row) => [
    row.dataset.connector, row.querySelector('.badge').textContent, row.querySelector('.schedule').innerText,
])"""
# In one step, because the list is drawn again every few seconds.
STOP_IS_REACHED = """() => {
    const button = document.querySelector('[data-key="stop idle"]');
    button.scrollIntoView({ block: "center", inline: "nearest" });
    const { left, right, top, bottom } = button.getBoundingClientRect();
    return left >= 0 && top >= 0 && right <= document.documentElement.clientWidth && bottom <= innerHeight;
}"""
NODES = "all => all.map((each) => [each.querySelector('b').textContent, each.querySelector('.badge').textContent])"
FAR = 4e9  # a moment that is never overdue
LAST = datetime(2026, 1, 2, 16, 42, 7, tzinfo=timezone.utc).timestamp()
EVERY = "*/10 * * * *"
OK, BROKEN = RunFacts("success", LAST, "scheduled__1"), RunFacts("failed", LAST, "scheduled__1")
STATES: dict[str, tuple[dict[str, Any], DagFacts | None, str, str]] = {
    "idle": ({"state": State.UNASSIGNED, "tasks": [State.UNASSIGNED]}, DagFacts(EVERY, FAR, last=OK), "IDLE", "Idle"),
    "failed-run": ({"state": State.UNASSIGNED}, DagFacts(EVERY, FAR, last=BROKEN), "FAILED", "Last run failed"),
    "failed-task": (
        {"tasks": [State.RUNNING, State.FAILED]},
        DagFacts("@continuous", active=RunFacts("running", LAST, "r")),
        "FAILED",
        "Failed tasks",
    ),
    "running": ({"tasks": [State.RUNNING]}, DagFacts("@continuous", active=RunFacts("running", LAST, "r")), "RUNNING", "Running"),
    "dead": (
        {"state": State.UNASSIGNED},
        DagFacts("@continuous", active=RunFacts("running", LAST, "r")),
        "UNASSIGNED",
        "Unassigned",
    ),
    "gone": ({"airflow_dag": "etl"}, DagFacts(EVERY, FAR, gone=True, last=OK), "RUNNING", "Running"),
    "unknown": ({"state": State.UNASSIGNED}, None, "UNASSIGNED", "Unassigned"),
    "paused": (
        {"state": State.PAUSED, "target": TargetState.PAUSED},
        DagFacts(EVERY, FAR, paused=True, last=OK),
        "PAUSED",
        "Paused",
    ),
}


@pytest.fixture(scope="module")
def connectors() -> MemoryConnectors:
    made = MemoryConnectors()
    for name, (keys, facts, _, _) in STATES.items():
        made.add(name, SINK, **keys)
        if facts is not None:
            made.airflow.facts[keys.get("airflow_dag", name)] = facts
    return made


@pytest.fixture(scope="module")
def server(connectors: MemoryConnectors) -> Iterator[PageServer]:
    with PageServer(connectors.herder, connectors.dashboard) as server:
        yield server


def _in_zone(ui: Ui, zone: str | None) -> None:
    set_zone = (
        "zone => zone === null ? localStorage.removeItem('timezone') : localStorage.setItem('timezone', JSON.stringify(zone))"
    )
    ui.page.evaluate(set_zone, zone)
    ui.page.reload()


def _row(ui: Ui, name: str) -> Locator:
    return ui.page.locator(f'[data-connector="{name}"]')


def test_the_list_shows_what_airflow_says(browser: Browser, server: PageServer) -> None:
    with opened(browser, server.url) as ui:
        _in_zone(ui, "Europe/Berlin")
        for name, (_, _, state, label) in STATES.items():
            badge = _row(ui, name).locator(".badge")
            expect(badge).to_have_text(label)
            assert (badge.get_attribute("data-state"), _row(ui, name).get_attribute("data-state")) == (state, state)
        expect(_row(ui, "idle").locator(".schedule")).to_contain_text(f"{EVERY}last run OK 2026-01-02 17:42, next 2096-10-02 ")
        expect(_row(ui, "idle").locator(".tasks")).to_have_text("none")
        expect(_row(ui, "failed-run").locator(".schedule")).to_contain_text("last run FAILED 2026-01-02 17:42")
        expect(_row(ui, "paused").locator(".schedule")).to_contain_text("17:42, paused")
        expect(_row(ui, "running").locator(".schedule")).to_contain_text("@continuousrun running since 2026-01-02 17:42")
        expect(_row(ui, "gone").locator(".schedule")).to_have_text("DAG etl is gone")
        expect(_row(ui, "unknown").get_by_role("link", name="DAG unknown")).to_have_attribute("href", "/dags/unknown")
        chips = ui.page.get_by_role("group", name="Filter by state").get_by_role("button")
        assert [chip.inner_text().split() for chip in chips.all()] == [
            ["All", "8"],
            ["Failed", "2"],
            ["Unassigned", "2"],
            ["Running", "2"],
            ["Idle", "1"],
            ["Paused", "1"],
        ]
        screenshot(ui.page, "schedules")


def test_fifty_connectors_are_what_they_and_their_dags_say(browser: Browser) -> None:
    connectors = MemoryConnectors()
    rows = fill(connectors)
    with PageServer(connectors.herder, connectors.dashboard) as server, opened(browser, server.url) as ui:
        told: dict[str, Row] = {}
        for page in ("Page 1 of 3, 63 connectors", "Page 2 of 3, 63 connectors", "Page 3 of 3, 63 connectors"):
            if told:
                ui.button("Next").click()
            expect(ui.page.get_by_text(page)).to_be_visible()
            told |= {name: Row(badge, schedule) for name, badge, schedule in ui.page.evaluate(TOLD)}
        assert {name: row.badge for name, row in told.items()} == {name: row.badge for name, row in rows.items()}
        assert [name for name, row in rows.items() if row.schedule not in told[name].schedule] == []
        chips = {chip.inner_text().split()[0]: chip.inner_text().split()[1] for chip in ui.page.locator(".chip").all()}
        assert (chips["All"], chips["Failed"], chips["Unassigned"], chips["Idle"]) == ("63", "29", "4", "1")
        ui.go("#limping-gone")
        expect(ui.page.locator(".title .badge")).to_have_text("Failed tasks")
        expect(ui.page.get_by_text("Airflow has no file of DAG limping-gone any more")).to_be_visible()
        ui.go("#/flow")
        expect(ui.page.locator(".node.connector")).to_have_count(63)
        nodes = ui.page.locator(".node.connector").evaluate_all(NODES)
        assert dict(nodes) == {name: row.badge for name, row in rows.items()}
        screenshot(ui.page, "flow-fleet")


def test_the_page_of_a_connector_shows_the_same_with_links(browser: Browser, server: PageServer) -> None:
    with opened(browser, server.url, "#idle") as ui:
        about = ui.page.locator(".about").nth(1)
        expect(about).to_contain_text(f"DAG idle · schedule {EVERY} · last run OK 2026-01-02 ")
        expect(about.get_by_role("link", name="last run OK")).to_have_attribute("href", "/dags/idle/runs/scheduled__1")
        expect(ui.page.locator(".title .badge")).to_have_text("Idle")
        ui.go("#gone")
        expect(ui.page.get_by_text("Airflow has no file of DAG etl any more")).to_be_visible()
        ui.go("#failed-task")
        expect(ui.page.locator(".title .badge")).to_have_attribute("data-state", "FAILED")


def test_changes_in_a_dags_file_are_shown_until_they_run(browser: Browser) -> None:
    connectors = MemoryConnectors()
    connectors.add("lines", SINK, airflow_dag="etl", airflow_config_task="load")
    connectors.airflow.configs["etl", "load"] = {"connector.class": SINK, "topics": "others"}
    with PageServer(connectors.herder, connectors.dashboard) as server, opened(browser, server.url, "#lines") as ui:
        changes = ui.page.get_by_role("region", name="Changes in the DAG's file")
        expect(changes.locator('[data-change="topics"]')).to_have_text("topicslinesothers")
        screenshot(ui.page, "drift")
        connectors.airflow.configs["etl", "load"]["topics"] = "lines"
        expect(changes).to_have_count(0)


@pytest.mark.parametrize(
    ("zone", "shown"),
    [("UTC", "2026-01-02 16:42:07"), ("Asia/Kolkata", "2026-01-02 22:12:07"), ("America/Adak", "2026-01-02 06:42:07")],
)
def test_times_are_in_airflows_zone_and_format(browser: Browser, server: PageServer, zone: str, shown: str) -> None:
    with opened(browser, server.url) as ui:
        _in_zone(ui, zone)
        assert ui.evaluated("format", "({ time }, seconds) => time(1000 * seconds)", LAST) == shown
        now = "({ moment, time }) => [moment(Date.now() / 1000), time(Date.now())]"
        short, long = ui.evaluated("format", now)
        assert short == long[11:16], "today's times have no day"
        ui.page.evaluate("localStorage.setItem('timezone', 'no JSON')")
        assert len(ui.evaluated("format", "({ time }) => time(1)")) == len(shown)
        ui.page.evaluate("localStorage.setItem('timezone', '\"Nowhere/Land\"')")
        assert len(ui.evaluated("format", "({ time }) => time(1)")) == len(shown)


# Airflow's navigation takes 64 of 1440, 1280, and 1200.
@pytest.mark.parametrize("width", [1610, 1376, 1350, 1216, 1136, 1110, 1100, 960, 560])
def test_nothing_of_the_list_is_wider_than_the_page(browser: Browser, server: PageServer, width: int) -> None:
    with opened(browser, server.url, width=width) as ui:
        expect(_row(ui, "idle")).to_be_visible()
        assert ui.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        expect(_row(ui, "idle").get_by_role("button", name="Stop")).to_be_visible()
        assert ui.page.evaluate(STOP_IS_REACHED)


@pytest.mark.long
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_states_can_be_read_by_everyone(browser: Browser, server: PageServer, dark: bool) -> None:
    axe = axe_script()
    with opened(browser, server.url, dark=dark) as ui:
        expect(_row(ui, "idle")).to_be_visible()
        assert violations(ui.page, axe) == []
