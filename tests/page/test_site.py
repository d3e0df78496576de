"""The documentation's site in a browser: searches find an option where it is defined, and no table is cut.

Screenshots are written to build/screenshots.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from support.browser import screenshot

ROOT = Path(__file__).parents[2]
_CUT = """[...document.querySelectorAll('.md-typeset__scrollwrap')]
    .filter(each => each.scrollWidth > each.clientWidth + 1).map(each => each.innerText.slice(0, 200))"""
_WIDER = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
_BROKEN = """[...document.querySelectorAll('.md-typeset table code')]
    .filter(each => each.matches('td:first-child code') || each.innerText.length <= 10)
    .filter(each => each.getClientRects().length > 1).map(each => each.innerText)"""

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material", reason="needs the extra 'docs'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=True)
    return folder


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    yield page
    page.close()


@pytest.mark.parametrize(
    ("key", "pages"),
    [
        ("offset.flush.interval.ms", {"worker-config"}),
        (
            "poll.interval.ms",
            {"DeltaSource", "IcebergSource", "JdbcSourceConnector", "SparkSource", "ElasticsearchSource", "OpenSearchSource"},
        ),
        ("iceberg.control.commit.interval-ms", {"IcebergCompaction", "IcebergSinkConnector"}),
        ("airflow.schedule", {"airflow-keys"}),
        ("slot.name", {"PostgresConnector"}),
    ],
)
def test_a_search_finds_a_key_first_where_it_is_defined(site: Path, page: Page, key: str, pages: set[str]) -> None:
    page.goto(f"file://{site}/index.html")
    page.fill("input.md-search__input", key)
    first = page.locator(".md-search-result__item a").first
    first.wait_for()
    assert Path((first.get_attribute("href") or "").partition("?")[0]).stem in pages


def test_nothing_is_cut_on_a_phone(site: Path, browser: Browser) -> None:
    phone = browser.new_page(viewport={"width": 390, "height": 844})
    found = {}
    for file in sorted(site.glob("**/*.html")):
        phone.goto(f"file://{file}", wait_until="domcontentloaded")
        found[str(file.relative_to(site))] = [*phone.evaluate(_CUT), *(["the page"] if phone.evaluate(_WIDER) else [])]
    phone.goto(f"file://{site}/reference/connectors/ParquetSink.html")
    cell = phone.locator("table td[data-column='Default']").first
    cell.scroll_into_view_if_needed()
    screenshot(phone, "reference-390")
    assert cell.evaluate("each => getComputedStyle(each, '::before').content") == '"Default: "'
    phone.close()
    assert {name: cut for name, cut in found.items() if cut} == {}
    assert len(found) > 100


def test_no_table_of_the_reference_is_cut(site: Path, page: Page) -> None:
    found = {}
    for file in sorted(site.glob("reference/**/*.html")):
        page.goto(f"file://{file}")
        found[file.stem] = [*page.evaluate(_CUT), *page.evaluate(_BROKEN)]
    page.goto(f"file://{site}/reference/connectors/ParquetSink.html")
    page.locator(".md-typeset table").nth(1).scroll_into_view_if_needed()
    screenshot(page, "reference-1280")
    assert {name: cut for name, cut in found.items() if cut} == {}
    assert len(found) > 40
