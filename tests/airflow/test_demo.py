"""The demo on a real stack: records keep flowing after its first result, and the page shows it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from sluiceway.stack import demo, demo_shop
from support.browser import chromium, context, screenshot
from support.eventually import eventually
from support.kafka import Kafka
from support.stack import START, RunningStack

pytestmark = [pytest.mark.airflow, pytest.mark.long, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def archive(stack: RunningStack) -> Iterator[Path]:
    """The file that the demo's shop fills."""
    folder = stack.home / "demo"
    demo.run_main_job(stack.connect, folder, print, timeout=5 * START)
    demo_shop.start(stack.connect, stack.home, print, timeout=5 * START)
    yield demo_shop.archive_file(folder)
    demo_shop.writer(stack.home).stop()
    for name in {demo.SOURCE, demo.SINK, *demo_shop.connector_configs(folder)} & set(stack.connect.connectors()):
        stack.connect.delete(name)


def lines(archive: Path, part: str) -> list[str]:
    found = archive.read_text().splitlines() if archive.exists() else []
    return [line for line in found if part in line]


def test_records_keep_flowing(stack: RunningStack, archive: Path) -> None:
    for part in ("shop=garden", "session="):
        seen = len(eventually(lambda part=part: lines(archive, part), what=f"{part} in the archive"))
        eventually(lambda part=part, seen=seen: len(lines(archive, part)) > seen, what=f"more {part} in the archive")
    assert all("email=hidden" in line for line in lines(archive, "shop=garden"))
    kafka = Kafka(stack.addresses.bootstrap)
    eventually(lambda: kafka.count(demo_shop.QUEUE) > 0, what="a record in the dead letter queue")
    assert demo.report(stack.connect, stack.home / "demo").count(f"{demo.LINES:,}") == 2, "the tutorials count these lines"


def test_one_application_runs_the_connectors_of_the_shop(stack: RunningStack, archive: Path) -> None:
    names = [demo_shop.ORDERS, demo_shop.EVENTS, demo_shop.ARCHIVE]
    assert {stack.connect.application(name)["application"] for name in names} == {"demo"}
    assert stack.driver("demo") is not None
    assert [stack.driver(name) for name in names] == [None, None, None]


def test_the_page_shows_them(stack: RunningStack, archive: Path) -> None:
    with chromium() as browser:
        session = context(browser)
        page = session.new_page()
        page.goto(f"{stack.addresses.airflow}/plugin/connectors")
        frame = page.frame_locator("iframe")

        def row(name: str) -> str:
            return frame.get_by_role("row").filter(has=page.locator(f'[data-key="open {name}"]')).inner_text()

        for name in (demo.SOURCE, demo.SINK, demo_shop.ORDERS, demo_shop.EVENTS, demo_shop.ARCHIVE):
            eventually(lambda name=name: "Running" in row(name) and "1/1" in row(name), what=f"{name} runs")
        screenshot(page, "demo-connectors")
        frame.locator(f'[data-key="open {demo_shop.ARCHIVE}"]').click()
        expect(frame.locator(".title .badge")).to_have_text("Running")
        frame.get_by_text("Dead letter queue records", exact=True).click()
        expect(frame.locator("[data-record]").first).to_contain_text("Converting byte[] to Kafka Connect data failed")
        screenshot(page, "demo-connector")
        frame.locator("button.back").click()
        frame.locator(f'[data-key="open {demo_shop.ORDERS}"]').click()
        frame.get_by_text("Edit", exact=True).click()
        transforms = frame.locator('[data-field="transforms.hide.replacement"]')
        transforms.scroll_into_view_if_needed()
        expect(transforms.locator(".control :is(input, select, textarea)")).to_have_value("hidden")
        session.close()
