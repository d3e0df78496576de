"""Java plugins in the page's catalogue of plugins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from sluiceway.java_plugins.finder import use_java_plugins
from support.browser import screenshot
from support.java_plugins import CONNECT_FILE, fetch_runtime, forget_plugins, plugin_folder
from support.page import Ui

pytestmark = pytest.mark.kafka

SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"


@pytest.fixture
def java_plugins(tmp_path: Path) -> Iterator[None]:
    fetch_runtime()
    plugin_folder(tmp_path, "connect-file", CONNECT_FILE)
    use_java_plugins([tmp_path], {})
    yield
    forget_plugins()


def test_the_catalogue_says_which_of_two_classes_is_used(java_plugins: None, ui: Ui) -> None:
    ui.go("#/plugins")
    row = ui.page.locator(f'[data-plugin="{SINK}"]')
    expect(row).to_contain_text("Python is used")
    expect(ui.page.locator("[data-plugin$=VerifiableSinkConnector]")).not_to_contain_text("is used")
    screenshot(ui.page, "plugins-java")
    row.get_by_role("link").click()
    expect(ui.page.get_by_text("Python is used, though both are installed")).to_be_visible()
