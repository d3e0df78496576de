"""The view of connectors and topics as a graph, and as a table."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, expect

from sluiceway.api import TopicPartition
from sluiceway.storage.model import State, TargetState
from support.axe import axe_script, violations
from support.browser import screenshot
from support.dashboard import SINK, SOURCE, MemoryConnectors
from support.page import PageServer, Ui, opened

INSIDE = """stage => {
    const outer = stage.getBoundingClientRect();
    return [...stage.querySelectorAll('.node')].every((each) => {
        const own = each.getBoundingClientRect();
        return own.left >= outer.left && own.top >= outer.top && own.right <= outer.right + 1 && own.bottom <= outer.bottom + 1;
    });
}"""
OVERLAPS = """body => {
    const all = [...body.querySelectorAll('.node')].map((each) => [each.innerText, each.getBoundingClientRect()]);
    const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
    return all.flatMap(([name, a], index) => all.slice(index + 1).filter(([, b]) => meet(a, b)).map(([other]) => [name, other]));
}"""


@pytest.fixture
def connectors() -> MemoryConnectors:
    """A source, a sink with a dead letter queue that is read, a copy of many tables, and a connector that nothing connects."""
    made = MemoryConnectors()
    made.add("orders", tasks=[State.RUNNING])
    made.add("warehouse", SINK, tasks=[State.RUNNING], topics="orders", errors_deadletterqueue_topic_name="dead")
    made.add("repair", SINK, State.PAUSED, target=TargetState.PAUSED, topics="dead")
    made.add("tables", tasks=[State.FAILED], trace="x.Error: no")
    for number in range(8):
        made.status.put_topic("tables", 0, f"table-{number}")
    made.add("new", SINK, State.UNASSIGNED, topics_regex="x.*", topics="")
    made.probe.ends[TopicPartition("dead", 0)] = 1234
    made.pretend_an_hour({"orders": 40, "warehouse": 40}, minutes=5)
    made.probe.ends[TopicPartition("orders", 0)] = 10_000
    made.probe.committed["connect-warehouse"] = {TopicPartition("orders", 0): 4_000}
    made.dashboard.sampler.sample()
    return made


@pytest.fixture
def server(connectors: MemoryConnectors) -> Iterator[PageServer]:
    with PageServer(connectors.herder, connectors.dashboard) as server:
        yield server


def _node(ui: Ui, name: str) -> Locator:
    return ui.page.locator(f'[data-key="node {name}"]')


def _picture(ui: Ui, name: str) -> Locator:
    return ui.page.locator(".picture", has=_node(ui, name))


def test_connectors_and_topics_are_a_graph_with_rates_lags_and_states(browser: Browser, server: PageServer) -> None:
    with opened(browser, server.url) as ui:
        ui.page.get_by_role("link", name="Flow").click()
        assert ui.page.url.endswith("#/flow")
        expect(_node(ui, "orders").locator(".badge")).to_have_text("Running")
        expect(_node(ui, "tables")).to_have_attribute("data-state", "FAILED")
        expect(_node(ui, "repair").locator(".badge")).to_have_text("Paused")
        expect(ui.page.locator(".picture")).to_have_count(3)
        expect(_picture(ui, "orders").locator(".node")).to_have_count(5)
        expect(_picture(ui, "orders").locator(".edge", has_text="lag 6,000")).to_have_count(1)
        expect(_picture(ui, "orders").locator('.edge[data-kind="dead_letters"]')).to_have_text("1,234dead letters")
        expect(_picture(ui, "tables").locator(".topic")).to_have_text("table-0 and 8 more")
        expect(_picture(ui, "new").locator(".node")).to_have_count(1)
        for stage in ui.page.locator(".stage").all():
            assert stage.evaluate(INSIDE)
        screenshot(ui.page, "flow")
        ui.page.get_by_role("searchbox").fill("table-3")
        expect(ui.page.locator(".picture")).to_have_count(1)
        _node(ui, "tables").focus()
        ui.page.keyboard.press("Enter")
        expect(ui.page.get_by_role("heading", level=1)).to_have_text("tables")
        ui.page.go_back()
        expect(_node(ui, "tables")).to_be_visible()
        expect(ui.page.get_by_role("searchbox")).to_have_value("table-3")


def test_the_graph_changes_in_place(browser: Browser, connectors: MemoryConnectors, server: PageServer) -> None:
    with opened(browser, server.url, "#/flow") as ui:
        node = _node(ui, "orders")
        expect(node.locator(".badge")).to_have_text("Running")
        before = node.element_handle()
        places = {each: _node(ui, each).bounding_box() for each in ("orders", "warehouse", "tables", "new")}
        node.focus()
        connectors.herder.pause("orders")
        connectors.follow("orders")
        expect(node.locator(".badge")).to_have_text("Paused")
        expect(node).to_be_focused()
        assert ui.page.evaluate("([a, b]) => a === b", [before, node.element_handle()])
        assert {each: _node(ui, each).bounding_box() for each in places} == places
        connectors.add("second", SINK, tasks=[State.RUNNING], topics="orders")
        expect(_node(ui, "second")).to_be_visible()
        expect(_node(ui, "orders")).to_be_focused()
        expect(_picture(ui, "second").locator(".node")).to_have_count(6)


def test_the_table_has_the_same_connections(browser: Browser, server: PageServer) -> None:
    with opened(browser, server.url, "#/flow") as ui:
        expect(_node(ui, "orders")).to_be_visible()
        ui.button("Table").click()
        table = ui.page.get_by_role("table", name="Connections")
        cells = [
            [cell.inner_text().split("\n")[0] for cell in row.locator("th, td").all()] for row in table.locator("tbody tr").all()
        ]
        assert [[each[0], each[1], each[2], each[3]] for each in cells if len(each) == 6] == [
            ["orders", "Running", "writes to", "orders"],
            ["repair", "Paused", "reads", "dead"],
            ["warehouse", "Running", "sends dead letters to", "dead"],
            ["warehouse", "Running", "reads", "orders"],
            ["tables", "Failed tasks", "writes to", "table-0 and 8 more"],
        ]
        expect(table.locator("tr", has_text="new").first).to_contain_text("not known yet")
        expect(table.locator('[data-connection="warehouse reads /orders"]')).to_contain_text("6,000")
        screenshot(ui.page, "flow-table")
        table.get_by_role("link", name="repair").focus()
        ui.page.keyboard.press("Enter")
        expect(ui.page.get_by_role("heading", level=1)).to_have_text("repair")


@pytest.mark.parametrize("width", [1376, 560])
def test_fifty_connectors_can_be_read(browser: Browser, width: int) -> None:
    made = MemoryConnectors()
    for number in range(50):
        kind = SINK if number % 5 else SOURCE
        made.add(f"c-{number:02}", kind, State.RUNNING, tasks=[State.RUNNING], trace=None, target=None, **_topics(number))
    with PageServer(made.herder, made.dashboard) as server, opened(browser, server.url, "#/flow", width=width) as ui:
        expect(ui.page.locator(".node.connector")).to_have_count(50)
        screenshot(ui.page, f"flow-fifty-{width}")
        assert ui.page.locator(".flow .body").evaluate(OVERLAPS) == []
        assert ui.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        sizes = "nodes => [...new Set(nodes.map((each) => parseFloat(getComputedStyle(each).fontSize)))]"
        assert min(ui.page.locator(".node, .edge span").evaluate_all(sizes)) >= 12


def _topics(number: int) -> dict[str, str]:
    """Each fifth connector is a source; the sinks after it read its topic, every third one that of the next source, too."""
    source = number // 5 * 5
    others = f",c-{(source + 5) % 50:02}" if number % 3 == 0 else ""
    return {"topics": f"c-{source:02}{others}"} if number % 5 else {"topic": f"c-{number:02}"}


@pytest.mark.long
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("way", ["Graph", "Table"])
def test_everyone_can_use_the_flow(browser: Browser, server: PageServer, way: str, dark: bool) -> None:
    axe = axe_script()
    with opened(browser, server.url, "#/flow", dark=dark) as ui:
        expect(_node(ui, "orders")).to_be_visible()
        ui.button(way).click()
        expect(ui.page.locator(".picture, .flow table").first).to_be_visible()
        screenshot(ui.page, f"flow-{way}-{'dark' if dark else 'light'}")
        assert violations(ui.page, axe) == []
