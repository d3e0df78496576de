"""Shows who changed a connector in the page, and restores earlier configs."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from sluiceway.errors import NotFoundError
from sluiceway.storage.history import Origin
from sluiceway.storage.model import TargetState
from support.browser import screenshot
from support.page import Cluster, Ui

pytestmark = [pytest.mark.kafka, pytest.mark.long]

CONFIG = {"connector.class": "FileStreamSource", "topic": "lines", "tasks.max": "1", "my.password": "hunter2"}
ALICE = Origin("alice", authenticated=True, address="10.0.0.7", client="sluiceway/0.2.0")
BIG = 2**53 + 1  # not a number in JavaScript


@pytest.fixture
def connector(cluster: Cluster, name: str) -> str:
    """A connector with a change of each kind."""
    alice, bob = cluster.herder.acting_for(ALICE), cluster.herder.acting_for(Origin("bob"))
    alice.create(name, CONFIG, TargetState.STOPPED)
    bob.put_config(name, {**CONFIG, "tasks.max": "2", "file": "<b>", "my.password": "rotated"})
    alice.alter_offsets(name, [({"filename": "/f"}, {"position": BIG})])
    bob.pause(name)
    return name


def row(ui: Ui, version: int) -> Locator:
    return ui.page.locator(f'[data-version="{version}"]')


def test_the_history_says_who_changed_what_when_and_from_where(ui: Ui, connector: str) -> None:
    ui.go(f"#{connector}")
    ui.button("History").click()
    expect(row(ui, 4)).to_contain_text("state: STOPPED → PAUSED")
    expect(row(ui, 1)).to_contain_text("alice")
    expect(row(ui, 1)).to_contain_text("10.0.0.7, sluiceway/0.2.0")
    expect(row(ui, 2)).to_contain_text("bobnot authenticated")
    row(ui, 3).get_by_text("offsets of 1 partition").click()
    expect(row(ui, 3)).to_contain_text(str(BIG))
    row(ui, 1).get_by_text("created").click()
    expect(row(ui, 1)).to_contain_text("[hidden]")
    row(ui, 2).get_by_text("config: ").click()
    expect(row(ui, 2).locator('[data-change="tasks.max"]')).to_have_text("tasks.max12")
    expect(row(ui, 2).locator('[data-change="file"]')).to_have_text("filenot set<b>")
    screenshot(ui.page, "history")
    expect(ui.page.locator("body")).not_to_contain_text("hunter2")
    ui.page.locator("button.back").click()
    expect(ui.page.get_by_role("heading", level=1)).to_have_text(connector)


def test_a_config_is_rolled_back_after_a_review_and_keeps_its_secrets(ui: Ui, cluster: Cluster, connector: str) -> None:
    ui.go(f"#{connector}/history")
    expect(row(ui, 3).get_by_role("button")).to_have_count(0)  # offsets are not rolled back
    ui.button("Roll back to version 1").click()
    dialog = ui.page.get_by_role("dialog")
    expect(dialog.locator("[data-change]")).to_have_count(2)
    expect(dialog.locator('[data-change="tasks.max"]')).to_have_text("tasks.max21")
    expect(dialog.locator('[data-change="file"]')).to_have_text("file<b>not set")
    screenshot(ui.page, "history-rollback")
    dialog.get_by_role("button", name="Roll back").click()
    expect(row(ui, 5)).to_contain_text("rollback to version 1")
    expect(ui.page.get_by_role("status")).to_contain_text("has the config of version 1")
    assert cluster.config(connector) == {**CONFIG, "name": connector, "my.password": "rotated"}
    ui.button("Roll back to version 5").click()
    expect(dialog).to_contain_text("Nothing has changed.")
    expect(dialog.get_by_role("button", name="Roll back")).to_be_disabled()


def test_a_deleted_connector_is_created_again_unless_a_secret_is_missing(ui: Ui, cluster: Cluster, connector: str) -> None:
    cluster.herder.delete(connector)
    ui.go(f"#{connector}")
    ui.page.get_by_role("link", name="History").click()
    ui.button("Roll back to version 2").click()
    dialog = ui.page.get_by_role("dialog")
    dialog.get_by_role("button", name="Create again").click()
    expect(dialog.get_by_role("alert")).to_contain_text("has none for my.password")
    dialog.get_by_role("button", name="Back").click()
    with pytest.raises(NotFoundError):
        cluster.herder.info(connector)


def test_a_connector_without_recorded_changes_says_so(ui: Ui, name: str) -> None:
    ui.go(f"#{name}/history")
    expect(ui.page.get_by_text(f"Connector {name} not found")).to_be_visible()
