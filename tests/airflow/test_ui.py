"""The connectors page in Airflow's UI, in a real browser: with connectors in memory, and in the tab of a real connector's DAG.

Screenshots are written to build/screenshots.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
import uvicorn
from airflow.api_fastapi.app import create_app, get_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.utils.db import initdb
from playwright.sync_api import Browser, FrameLocator, Locator, Page, expect

from sluiceway.api import TopicPartition
from sluiceway.errors import ConnectError
from sluiceway.herder import Herder
from sluiceway.provider.api import app as api
from sluiceway.provider.links import page_url
from sluiceway.provider.ui.dashboard import Dashboard
from sluiceway.stack import demo, demo_shop
from sluiceway.storage.model import State, TargetState
from support import main_job
from support.axe import axe_script, violations
from support.browser import chromium, context, screenshot
from support.dashboard import SINK, SOURCE, MemoryConnectors
from support.eventually import LIMIT, eventually
from support.fleet import fill
from support.main_job import MainJob
from support.stack import START

pytestmark = pytest.mark.airflow

TRACE = """Traceback (most recent call last):
  File "connector.py", line 41, in put
    self._table.insert(rows)
ValueError: column "amount" does not exist in table "<img src=x onerror=alert(1)>"
"""
HOSTILE = "<img src=x onerror=\"document.title='hacked'\">"


class Backend:
    """Replaces ``sluiceway.provider.api.app.Backend``; each test sets its own connectors."""

    connectors = MemoryConnectors()

    def __init__(self, settings: object, loggers: object) -> None: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def herder(self) -> Herder:
        return self.connectors.herder

    def dashboard(self) -> Dashboard:
        return self.connectors.dashboard

    def cluster_id(self) -> None: ...


class Server:
    """Airflow's API server in this process."""

    def __init__(self) -> None:
        self._server = uvicorn.Server(uvicorn.Config(create_app(), host="127.0.0.1", port=0, log_level="warning"))
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        eventually(lambda: self._server.started, what="the API server")
        port = self._server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=LIMIT)


@dataclass
class Ui:
    """A browser session on the connectors page."""

    page: Page
    frame: FrameLocator | Page
    server: Server
    errors: list[str] = field(default_factory=list)

    def row(self, name: str) -> Locator:
        return self.frame.get_by_role("row").filter(has=self.page.locator(f'[data-key="open {name}"]'))

    def button(self, name: str, action: str) -> Locator:
        return self.row(name).locator(f'[data-action="{action}"]')

    def fetched(self, method: str, path: str, config: Mapping[str, str] | None = None) -> int:
        """Return the HTTP status of a request from the page's origin, with a config as its body."""
        options = "config ? {method, body: JSON.stringify(config), headers: {'Content-Type': 'application/json'}} : {method}"
        ask = f"([method, path, config]) => fetch(new URL(path, document.baseURI), {options}).then((answer) => answer.status)"
        return int(self.frame.locator("html").evaluate(f"(_, asked) => ({ask})(asked)", [method, path, config]))


OpenUi = Callable[..., Ui]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    initdb()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "Backend", Backend)
        running = Server()
        yield running
        running.close()


@pytest.fixture
def connectors(server: Server) -> Iterator[MemoryConnectors]:
    Backend.connectors = MemoryConnectors()
    yield Backend.connectors
    Backend.connectors.dashboard.stop()


@pytest.fixture
def team(connectors: MemoryConnectors) -> MemoryConnectors:
    """Connectors in all states."""
    connectors.add("orders-jdbc-in", tasks=[State.RUNNING] * 2)
    connectors.add("orders-warehouse", SINK, tasks=[State.RUNNING] * 3, connection_password="hunter2")
    connectors.add(
        "clicks-archive", SINK, tasks=[State.RUNNING] * 2 + [State.FAILED], trace=TRACE, errors_deadletterqueue_topic_name="dead"
    )
    connectors.add("invoices-nightly", state=State.PAUSED, tasks=[State.PAUSED], target=TargetState.PAUSED)
    connectors.add("legacy-mirror", state=State.STOPPED, target=TargetState.STOPPED)
    connectors.add("payments-in", state=State.FAILED, trace=TRACE)
    connectors.add("sensors-edge", state=State.UNASSIGNED)
    connectors.probe.ends[TopicPartition("dead", 0)] = 3
    connectors.pretend_an_hour({"orders-jdbc-in": 240, "orders-warehouse": 236, "clicks-archive": 1900})
    return connectors


def _session(browser: Browser, server: Server, role: str = "admin", *, width: int = 1440) -> Ui:
    """Return a browser session that is logged in with a role, without a page."""
    token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=role, role=role))
    page = context(browser, width=width, token=token, url=server.url).new_page()
    ui = Ui(page, page.frame_locator("iframe"), server)
    page.on("pageerror", lambda error: ui.errors.append(str(error)))
    page.on("console", lambda line: ui.errors.append(line.text) if "Security Policy" in line.text else None)
    page.on(
        "request", lambda asked: None if asked.url.startswith((server.url, "data:", "blob:")) else ui.errors.append(asked.url)
    )
    return ui


@pytest.fixture(scope="module")
def inside(browser: Browser, server: Server) -> Iterator[Ui]:
    """An administrator's session inside Airflow, for all tests: Airflow's own page takes seconds of processor time to load."""
    ui = _session(browser, server)
    ui.page.goto(f"{server.url}/plugin/connectors")
    ui.page.locator("iframe").wait_for()
    yield ui
    ui.page.context.close()


@pytest.fixture
def open_ui(browser: Browser, inside: Ui, connectors: MemoryConnectors) -> Iterator[OpenUi]:
    """Open the page inside Airflow, or for another role by itself; fail at the end if the browser reported an error."""
    others: list[Ui] = []

    def opened(role: str = "admin", *, dark: bool = False, width: int = 1440) -> Ui:
        connectors.dashboard.start()
        own = f"{inside.server.url}/sluiceway/ui/index.html"
        if role != "admin":
            ui = _session(browser, inside.server, role, width=width)
            ui.frame = ui.page
            others.append(ui)
            ui.page.goto(own)
            return ui
        inside.page.set_viewport_size({"width": width, "height": 900})
        inside.page.evaluate("theme => { document.documentElement.className = theme; }", "dark" if dark else "light")
        inside.page.evaluate("history.replaceState(history.state, '', location.pathname)")  # without the last test's hash
        inside.page.frames[1].goto(own)
        return inside

    yield opened
    errors = [error for ui in (inside, *others) for error in ui.errors]
    inside.errors.clear()
    for ui in others:
        ui.page.context.close()
    assert not errors


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_has_airflows_style(team: MemoryConnectors, open_ui: OpenUi, dark: bool) -> None:
    theme = "dark" if dark else "light"
    ui = open_ui(dark=dark)
    expect(ui.row("clicks-archive")).to_contain_text("1 failed")
    expect(ui.row("orders-warehouse").locator("svg.spark")).to_have_count(2)
    expect(ui.frame.locator("html")).to_have_attribute("data-theme", theme)
    ground = "element => getComputedStyle(element).backgroundColor"
    assert ui.frame.locator("body").evaluate(ground) == ui.page.locator("html").evaluate(ground)
    screenshot(ui.page, f"connectors-{theme}")
    axe = axe_script()
    assert violations(ui.page.frames[1], axe) == []
    ui.row("clicks-archive").get_by_role("link").first.click()
    expect(ui.frame.locator(".errors pre")).to_contain_text('column "amount" does not exist')
    ui.frame.get_by_text("Offsets", exact=True).click()
    expect(ui.frame.get_by_role("cell", name="clicks-archive-0")).to_be_visible()
    screenshot(ui.page, f"connector-{theme}")
    assert violations(ui.page.frames[1], axe) == []


@pytest.mark.long
@pytest.mark.timeout(1500)  # twelve times axe on a busy machine
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_fifty_connectors_can_be_read_by_everyone_inside_airflow(
    connectors: MemoryConnectors, open_ui: OpenUi, dark: bool
) -> None:
    rows = fill(connectors)
    axe, theme = axe_script(), "dark" if dark else "light"
    ui = open_ui(dark=dark)

    def check(part: str) -> None:
        screenshot(ui.page, f"fleet-{part}-{theme}")
        assert violations(ui.page.frames[1], axe) == []

    def show(hash_: str) -> None:
        ui.page.frames[1].evaluate("hash => { location.hash = hash; }", hash_)

    for number in range(1, 4):
        expect(ui.frame.get_by_text(f"Page {number} of 3, 63 connectors")).to_be_visible()
        check(f"list-{number}")
        if number < 3:
            ui.frame.get_by_role("button", name="Next").click()
    for name in ("unassigned-broken", "unassigned-faulty", "limping-gone", "halted-idle", "stopped-unknown"):
        show(name)
        expect(ui.frame.get_by_role("heading", level=1)).to_have_text(name)
        expect(ui.frame.locator(".title .badge")).to_have_text(rows[name].badge)
        check(f"detail-{name}")
    show("running-idle/edit")
    expect(ui.frame.get_by_role("button", name="Review", exact=True)).to_be_enabled()
    expect(ui.frame.locator('[data-field="topic"]')).to_be_visible()
    check("form")
    show("/flow")
    expect(ui.frame.locator(".node.connector")).to_have_count(63)
    check("flow")
    ui.frame.get_by_role("button", name="Table", exact=True).click()
    expect(ui.frame.get_by_role("table", name="Connections")).to_be_visible()
    check("flow-table")
    show("/plugins")
    expect(ui.frame.get_by_role("link", name="FileStreamSourceConnector")).to_be_visible()
    check("catalogue")


@pytest.mark.long
def test_pictures_for_the_readme(connectors: MemoryConnectors, open_ui: OpenUi, tmp_path: Path) -> None:
    """The connectors of `make demo`, and an hour of records. `make screenshots` copies the pictures to docs/images."""
    configs = {**demo.connector_configs(tmp_path / "in", tmp_path / "out"), **demo_shop.connector_configs(Path("/srv/demo"))}
    for name, config in configs.items():
        connectors.add(name, SINK if "topics" in config else SOURCE, tasks=[State.RUNNING], topic=config.get("topic", name))
        connectors.config.put_connector(name, {"name": name, **config}, None)
    connectors.probe.ends[TopicPartition(demo_shop.QUEUE, 0)] = 180
    rates = {demo.SOURCE: 40, demo.SINK: 40, demo_shop.ORDERS: 1, demo_shop.EVENTS: 1, demo_shop.ARCHIVE: 1}
    topics = {demo_shop.ARCHIVE: [demo_shop.ORDERS, demo_shop.EVENTS], demo.SOURCE: [demo.TOPIC], demo.SINK: [demo.TOPIC]}
    connectors.pretend_an_hour(rates, topics=topics)
    connectors.probe.at = connectors.dashboard.sampler.latest(0).at  # however long it takes until the pictures are made
    ui = open_ui(width=1440)
    ui.page.set_viewport_size({"width": 1440, "height": 520})
    expect(ui.row(demo_shop.ARCHIVE)).to_contain_text("180")
    for name in configs:
        expect(ui.row(name).locator(".badge")).to_have_text("Running")
    screenshot(ui.page, "readme-connectors")
    ui.row(demo_shop.ARCHIVE).get_by_role("link").first.click()
    expect(ui.frame.locator(".title .badge")).to_have_text("Running")
    screenshot(ui.page, "readme-connector")
    ui.page.frames[1].evaluate("location.hash = '/flow'")
    expect(ui.frame.locator(".picture")).to_have_count(2)
    ui.page.mouse.move(0, 0)  # nothing is pointed at
    screenshot(ui.page, "readme-flow")


@pytest.mark.long
def test_the_page_follows_airflows_dark_mode(team: MemoryConnectors, open_ui: OpenUi) -> None:
    ui = open_ui()
    expect(ui.frame.locator("html")).to_have_attribute("data-theme", "light")
    ui.page.evaluate("document.documentElement.className = 'dark'")
    expect(ui.frame.locator("html")).to_have_attribute("data-theme", "dark")


@pytest.mark.long
def test_a_narrow_window_shows_connectors_as_cards(team: MemoryConnectors, open_ui: OpenUi) -> None:
    ui = open_ui(width=560)
    expect(ui.row("orders-jdbc-in")).to_be_visible()
    screenshot(ui.page, "connectors-narrow")
    assert ui.frame.locator("html").evaluate("element => element.scrollWidth <= element.clientWidth"), "nothing is cut off"


def test_the_pause_and_resume_buttons_change_the_connector_and_its_row(team: MemoryConnectors, open_ui: OpenUi) -> None:
    ui = open_ui()
    for action, state, target in (("pause", "Paused", TargetState.PAUSED), ("resume", "Running", TargetState.STARTED)):
        ui.button("orders-jdbc-in", action).click()
        eventually(lambda target=target: team.target("orders-jdbc-in") is target, what=action)
        team.follow("orders-jdbc-in")
        expect(ui.row("orders-jdbc-in").locator(".badge")).to_have_text(state)
    expect(ui.button("orders-jdbc-in", "pause")).to_be_enabled()


def test_airflows_address_names_what_is_shown(team: MemoryConnectors, open_ui: OpenUi) -> None:
    ui = open_ui()
    expect(ui.row("orders-warehouse")).to_be_visible()
    address = ui.page.url
    ui.row("orders-warehouse").get_by_role("link").first.click()
    title = ui.frame.get_by_role("heading", level=1)
    expect(title).to_have_text("orders-warehouse")
    expect(ui.page).to_have_url(f"{address}#orders-warehouse")
    ui.frame.get_by_role("button", name="History", exact=True).click()
    expect(ui.page).to_have_url(f"{address}#orders-warehouse/history")
    ui.page.go_back()
    expect(ui.page).to_have_url(f"{address}#orders-warehouse")
    expect(title).to_have_text("orders-warehouse")
    ui.page.reload()
    expect(title).to_have_text("orders-warehouse")
    tab = ui.page.context.new_page()  # as the link of a task opens
    tab.goto(f"{ui.server.url}{page_url('clicks-archive')}")
    expect(tab.frame_locator("iframe").get_by_role("heading", level=1)).to_have_text("clicks-archive")
    tab.close()


@pytest.mark.long
def test_a_connector_is_stopped_only_after_a_confirmation(team: MemoryConnectors, open_ui: OpenUi) -> None:
    ui = open_ui()
    ui.button("orders-jdbc-in", "stop").click()
    screenshot(ui.page, "connector-stop")
    ui.frame.get_by_role("button", name="Cancel").click()
    expect(ui.frame.get_by_role("dialog")).to_be_hidden()
    assert team.target("orders-jdbc-in") is TargetState.STARTED
    ui.button("orders-jdbc-in", "stop").click()
    ui.frame.get_by_role("dialog").get_by_role("button", name="Stop").click()
    eventually(lambda: team.target("orders-jdbc-in") is TargetState.STOPPED, what="the stop")


@pytest.mark.long
def test_the_restart_button_restarts_the_connector_and_its_tasks(team: MemoryConnectors, open_ui: OpenUi) -> None:
    ui = open_ui()
    ui.button("clicks-archive", "restart").click()
    expect(ui.frame.get_by_role("status")).to_contain_text("clicks-archive: restart requested")
    [request] = eventually(team.config.take_restart_requests, what="the request")
    assert (request.connector, request.include_tasks, request.only_failed) == ("clicks-archive", True, False)


def test_a_viewer_reads_everything_and_changes_nothing(team: MemoryConnectors, open_ui: OpenUi) -> None:
    ui = open_ui("viewer")
    expect(ui.row("orders-jdbc-in").locator(".badge")).to_have_text("Running")
    for action in ("pause", "restart", "stop"):
        expect(ui.button("orders-jdbc-in", action)).to_be_disabled()
    assert ui.fetched("GET", "api/connectors/orders-jdbc-in") == 200
    assert ui.fetched("PUT", "../connectors/orders-jdbc-in/pause") == 403
    assert ui.fetched("POST", "../connectors/orders-jdbc-in/restart?includeTasks=true") == 403
    assert ui.fetched("GET", "../connectors/orders-jdbc-in/history") == 200
    assert ui.fetched("POST", "../connectors/orders-jdbc-in/rollback") == 403
    config = {"name": "lines", "connector.class": "FileStreamSource", "topic": "lines"}
    assert ui.fetched("POST", "../connector-plugins/FileStreamSource/config/preview", config) == 403
    assert team.target("orders-jdbc-in") is TargetState.STARTED


def test_data_is_refused_without_a_login(server: Server, team: MemoryConnectors) -> None:
    for path in ("overview", "flow", "history?name=a", "connectors/orders-jdbc-in", "connectors/clicks-archive/dead-letters"):
        assert httpx.get(f"{server.url}/sluiceway/ui/api/{path}").status_code == 401
    page = httpx.get(f"{server.url}/sluiceway/ui/index.html")
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]


def test_markup_in_traces_and_configs_is_escaped(connectors: MemoryConnectors, open_ui: OpenUi) -> None:
    connectors.add(HOSTILE, state=State.FAILED, trace=HOSTILE, note=HOSTILE)
    ui = open_ui()
    expect(ui.frame.get_by_role("link", name=HOSTILE)).to_be_visible()
    ui.frame.get_by_role("link", name=HOSTILE).click()
    expect(ui.frame.get_by_role("heading", level=1)).to_have_text(HOSTILE)
    ui.frame.get_by_text("Config", exact=True).click()
    expect(ui.frame.get_by_role("cell", name=HOSTILE).first).to_be_visible()
    assert ui.frame.locator("img").count() == 0
    ui.page.frames[1].evaluate("location.hash = '/flow'")
    expect(ui.frame.locator(".node.connector")).to_contain_text(HOSTILE)
    assert ui.frame.locator("img").count() == 0


def test_secrets_in_a_config_are_not_shown(team: MemoryConnectors, open_ui: OpenUi) -> None:
    ui = open_ui()
    ui.row("orders-warehouse").get_by_role("link").first.click()
    ui.frame.get_by_text("Config", exact=True).click()
    expect(ui.frame.get_by_role("row", name=re.compile("connection.password"))).to_contain_text("[hidden]")
    assert "hunter2" not in ui.frame.locator("body").inner_text()


def test_a_thousand_connectors_are_filtered_sorted_and_paged(connectors: MemoryConnectors, open_ui: OpenUi) -> None:
    for number in range(1000):
        connectors.add(f"c-{number:04}", SINK if number % 2 else SOURCE, tasks=[State.RUNNING])
    connectors.pretend_an_hour({f"c-{number:04}": number for number in range(1000)}, minutes=5)
    ui = open_ui()
    expect(ui.frame.get_by_text("Page 1 of 40, 1,000 connectors")).to_be_visible()
    screenshot(ui.page, "connectors-thousand")
    ui.frame.get_by_role("button", name="Next").click()
    expect(ui.row("c-0025")).to_be_visible()
    ui.frame.get_by_role("button", name="Connector", exact=True).click()
    ui.frame.get_by_role("button", name=re.compile("^Connector")).click()
    expect(ui.row("c-0999")).to_be_visible()
    ui.frame.get_by_role("searchbox").press_sequentially("c-07 sink", delay=0)
    expect(ui.frame.get_by_text("Page 1 of 2, 50 connectors")).to_be_visible()


@pytest.mark.long
def test_the_page_works_with_the_keyboard_and_keeps_the_focus(team: MemoryConnectors, open_ui: OpenUi) -> None:
    ui = open_ui()
    ui.frame.get_by_role("searchbox").focus()
    ui.page.keyboard.type("warehouse")
    expect(ui.row("orders-jdbc-in")).to_have_count(0)
    for _ in range(4):  # past the columns that sort
        ui.page.keyboard.press("Tab")
    ui.frame.locator('[data-key="open orders-warehouse"]').focus()
    asked = len(team.probe.requests)
    team.follow("clicks-archive")
    eventually(lambda: ui.page.wait_for_timeout(50) or len(team.probe.requests) > asked + 1, what="the next looks")
    expect(ui.frame.locator('[data-key="open orders-warehouse"]')).to_be_focused()
    ui.page.keyboard.press("Enter")
    expect(ui.frame.get_by_role("heading", level=1)).to_have_text("orders-warehouse")


@pytest.mark.long
def test_an_empty_page_explains_how_to_create_a_connector(open_ui: OpenUi) -> None:
    ui = open_ui()
    expect(ui.frame.get_by_role("heading", name="There are no connectors yet")).to_be_visible()
    expect(ui.frame.get_by_text("/sluiceway/connectors")).to_be_visible()
    screenshot(ui.page, "connectors-none")


@pytest.mark.long
def test_an_outage_of_kafka_is_reported_and_known_data_stays(team: MemoryConnectors, open_ui: OpenUi) -> None:
    team.probe.failure = ConnectError("The brokers are away.")
    ui = open_ui()
    expect(ui.frame.get_by_role("alert")).to_contain_text("The brokers are away.")
    expect(ui.row("orders-jdbc-in").locator(".badge")).to_have_text("Running")
    team.probe.failure = None
    expect(ui.frame.get_by_role("alert")).to_be_hidden()


@pytest.mark.timeout(1500)  # Spark starts on a busy machine
def test_a_connectors_dag_has_a_tab_that_pauses_it_for_real(browser: Browser, running: MainJob) -> None:
    stack, name = running.stack, main_job.SOURCE
    session = context(browser)
    page = session.new_page()
    frame = page.frame_locator("iframe")
    page.goto(f"{stack.addresses.airflow}/dags/{name}")
    page.get_by_role("link", name="Connector", exact=True).click()
    badge = frame.locator(".title .badge")
    expect(badge).to_have_text("Running")
    expect(frame.get_by_text(f"topics {main_job.TOPIC}")).to_be_visible()
    screenshot(page, "dag-tab")
    frame.locator('[data-action="pause"]').click()
    expect(badge).to_have_text("Paused", timeout=3000 * START)
    eventually(lambda: stack.is_paused(name), what="the DAG's own switch")
    stack.set_paused(name, False)
    expect(badge).to_have_text("Running", timeout=3000 * START)
    frame.get_by_text("Offsets", exact=True).click()
    expect(frame.get_by_text(f'"position":{running.source.stat().st_size}')).to_be_visible()
    frame.get_by_text("Log of the driver and its tasks", exact=True).click()
    frame.get_by_label("Lines of").select_option("the connector")
    expect(frame.get_by_label("End of the log")).to_contain_text(f"[{name}|worker]")
    screenshot(page, "dag-tab-log")
    frame.get_by_role("button", name="History", exact=True).click()
    expect(frame.get_by_text("state: STARTED → PAUSED").first).to_be_visible()
    expect(frame.locator('[data-version="1"]')).to_contain_text("created")
    screenshot(page, "dag-tab-history")
    session.close()
