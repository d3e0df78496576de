"""A database that is down and a driver that ends at once, on a real Airflow: the REST API, command line, and page say so."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from sluiceway.cli.main import main
from support.browser import chromium, context
from support.eventually import eventually
from support.postgres import PostgresServer
from support.stack import RunningStack

pytestmark = [pytest.mark.airflow, pytest.mark.long]

Say = Callable[..., str]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def say(stack: RunningStack, capsys: pytest.CaptureFixture[str]) -> Say:
    """Return what a command prints."""

    def say(*arguments: str) -> str:
        of_stack = ["--home", str(stack.home)] if arguments[0] == "logs" else ["--server", stack.addresses.rest]
        main([*arguments, *of_stack])
        return "".join(capsys.readouterr())

    return say


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    session = context(browser)
    yield session.new_page()
    session.close()


def shows(stack: RunningStack, page: Page, name: str, text: str) -> None:
    """Wait until the tab of the connector's DAG shows a text."""
    page.goto(f"{stack.addresses.airflow}/dags/{name}")
    page.get_by_role("link", name="Connector", exact=True).click()
    expect(page.frame_locator("iframe").locator("body")).to_contain_text(text)


def ended(stack: RunningStack, name: str) -> None:
    stack.connect.delete(name)
    eventually(lambda: stack.driver(name) is None, what="the end of the driver")


def test_a_database_that_is_down_is_seen_everywhere_until_it_answers(stack: RunningStack, say: Say, page: Page) -> None:
    name = "waits-for-it"
    with PostgresServer() as server:
        server.execute("create table t (id int primary key)")
        keys = {"mode": "incrementing", "incrementing.column.name": "id", "poll.interval.ms": "100"}
        tables = {"table.whitelist": "t", "topic.prefix": f"{name}-", "connection.attempts": "2", "connection.backoff.ms": "300"}
        stack.connect.create(name, {"connector.class": "JdbcSource", **server.first.config, **keys, **tables})
        stack.await_states(name, "RUNNING", "RUNNING")
        server.shut_down()
        eventually(lambda: "Waiting since" in json.dumps(stack.connect.status(name)), what="the wait in the status")
        for command in (("get", "status"), ("describe", "connector")):
            printed = say(*command, name)
            assert "Waiting since" in printed, printed
            assert "next try within" in printed, printed
        shows(stack, page, name, "Waiting since")
        server.run()
        eventually(lambda: "Waiting since" not in json.dumps(stack.connect.status(name)), what="the end of the wait")
        assert "Waiting since" not in say("describe", "connector", name)
        ended(stack, name)


def test_a_driver_that_ends_at_once_is_seen_everywhere_with_its_own_error(
    stack: RunningStack, say: Say, page: Page, tmp_path: Path
) -> None:
    name, missing = "ends-at-once", "org.example.Missing"
    (tmp_path / "lines.txt").touch()
    config = {"connector.class": "FileStreamSource", "file": str(tmp_path / "lines.txt"), "topic": name}
    stack.connect.create(name, {**config, "spark.extraListeners": missing})
    eventually(lambda: missing in json.dumps(stack.connect.status(name)), what="the driver's own error in the status")
    for command in (("get", "status"), ("describe", "connector"), ("logs",)):
        printed = say(*command, name)
        assert f"ClassNotFoundException: {missing}" in printed, printed
    shows(stack, page, name, missing)
    ended(stack, name)
