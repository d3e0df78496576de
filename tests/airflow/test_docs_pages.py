"""Pages of the documentation as a reader follows them: each command runs as printed, and prints what the page says.

``make test-docs`` runs them. ``support.docs_pages`` lists the pages, and those that no test runs with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sluiceway.stack import demo, demo_shop
from support import docker_stand_in
from support.docs_pages import ON_THE_DEMO, Shell, end_processes, run_page
from support.eventually import LIMIT
from support.guard import Guard
from support.mariadb import MariaDbServer
from support.own_environment import make_environment
from support.postgres import PostgresServer
from support.search import SearchServer
from support.stack import START, RunningStack

pytestmark = [pytest.mark.airflow, pytest.mark.long, pytest.mark.timeout(2400)]


@pytest.fixture(scope="module")
def databases() -> Iterator[None]:
    """The servers that pages start with Docker, on the pages' ports."""
    postgres, mariadb = PostgresServer(), MariaDbServer(binlog=True)
    postgres.port, mariadb.port = docker_stand_in.POSTGRES_PORT, docker_stand_in.MARIADB_PORT
    user, password = docker_stand_in.POSTGRES_USER, docker_stand_in.POSTGRES_PASSWORD
    with postgres, mariadb:
        postgres.execute(f"CREATE ROLE {user} SUPERUSER REPLICATION LOGIN PASSWORD '{password}'")
        yield


@pytest.fixture(scope="module")
def running_demo(stack: RunningStack) -> Iterator[None]:
    """What ``make demo`` has made and started."""
    demo.run_main_job(stack.connect, stack.home / "demo", print, timeout=5 * START)
    demo_shop.start(stack.connect, stack.home, print, timeout=5 * START)
    yield
    demo_shop.writer(stack.home).stop()
    for name in stack.connect.connectors():
        stack.connect.delete(name)


@pytest.fixture
def shell(stack: RunningStack, running_demo: None, tmp_path: Path) -> Iterator[Shell]:
    """The shell of a reader who has run ``make demo``. The connectors that the page leaves are deleted."""
    before = set(stack.connect.connectors())
    yield Shell(tmp_path, stack.home)
    for name in set(stack.connect.connectors()) - before:
        stack.connect.delete(name)


@pytest.fixture(scope="module")
def search_server() -> Iterator[None]:
    """The OpenSearch that a page starts with Docker, on the page's port."""
    with SearchServer(docker_stand_in.SEARCH_PORT):
        yield


def test_the_first_connector(tmp_path: Path, search_server: None) -> None:
    """First, because the page starts a broker on the port that the stack of the others would have."""
    shell = Shell(tmp_path, tmp_path / "home", "acme-orders", make_environment(tmp_path / "environment"))
    guard = Guard(end_processes, tmp_path)
    try:
        run_page("tutorial/first-connector.md", shell)
    finally:
        guard.close()


@pytest.mark.parametrize("page", ON_THE_DEMO)
def test_a_guide_on_the_demo(shell: Shell, page: str, request: pytest.FixtureRequest) -> None:
    if page == "how-to/write-to-a-search-index.md":
        request.getfixturevalue("search_server")
    run_page(page, shell)


def test_the_first_pipeline(shell: Shell) -> None:
    run_page("tutorial/first-pipeline.md", shell)


def test_the_lakehouse(shell: Shell) -> None:
    run_page("tutorial/topic-to-lakehouse.md", shell)


def test_the_changes_of_a_database(shell: Shell, databases: None) -> None:
    run_page("tutorial/changes-of-a-database.md", shell)


def test_every_hour(shell: Shell, databases: None) -> None:
    run_page("tutorial/every-hour-exactly-once.md", shell, within=2 * LIMIT)


def test_the_recipes(shell: Shell, databases: None) -> None:
    run_page("how-to/recipes.md", shell)
