"""Shows connectors on both clusters between which they move."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, expect

from sluiceway.config.worker import MIGRATE_WITH
from sluiceway.herder import Herder
from sluiceway.provider.ui.dashboard import Dashboard
from sluiceway.storage.factory import open_stores
from sluiceway.storage.model import TargetState
from support import peer
from support.browser import screenshot
from support.dashboard import StaticAirflow, StaticProbe
from support.kafka import worker_for
from support.migration import SluicewayInThreads
from support.page import PageServer, opened

pytestmark = [pytest.mark.kafka, pytest.mark.long]

CONFIG = {"connector.class": "FileStreamSource", "topic": "lines", "tasks.max": "1"}


def test_connectors_are_shown_on_both_sides(kafka_bootstrap: str, unique: Callable[[str], str], browser: Browser) -> None:
    here, there = unique("here"), unique("there")
    with SluicewayInThreads(kafka_bootstrap, unique("other")) as other:
        worker = worker_for(kafka_bootstrap, unique, **{MIGRATE_WITH: other.rest})
        with open_stores(worker) as stores:
            herder = Herder(worker, stores.config, stores.status, stores.offsets)
            herder.create(here, CONFIG, TargetState.STOPPED)
            for name in (here, there):
                peer.put_config(other.rest, name, CONFIG)
            dashboard = Dashboard(worker, herder, stores.config, StaticProbe(), StaticAirflow())
            with PageServer(herder, dashboard) as server, opened(browser, server.url) as ui:
                ui.go("#")
                ui.page.get_by_role("link", name="Moves").click()
                expect(ui.page.locator(".moves .about")).to_contain_text(f"at {other.rest}")
                row = ui.page.locator(f'[data-connector="{here}"]')
                expect(row.locator(".here")).to_contain_text("Stopped")
                expect(row.locator(".there")).to_contain_text("Unassigned")
                expect(row.locator(".run")).to_have_text("Nobody")
                expect(ui.page.locator(f'[data-connector="{there}"] .here')).to_have_text("none")
                screenshot(ui.page, "moves")
                row.get_by_role("link", name=here).click()
                expect(ui.page.get_by_role("heading", level=1)).to_have_text(here)
