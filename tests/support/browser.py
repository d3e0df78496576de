"""A headless Chromium for tests: the system's, through Playwright; installed by apt where that is allowed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
_PACKAGES = ("chromium-headless-shell", "fonts-dejavu-core")
_APT_SECONDS = 300
_PATIENCE_MS = 30_000  # on a small busy machine

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"


@contextmanager
def chromium() -> Iterator[Browser]:
    """Give a browser; skips the test, saying why, where there is none and none can be installed."""
    path = os.environ.get("CHROMIUM") or _found() or _installed()
    expect.set_options(timeout=_PATIENCE_MS)
    with sync_playwright() as playwright:
        # Chromium's own sandbox does not work for root, nor in most containers; only pages of this test are opened.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def context(
    browser: Browser, *, dark: bool = False, width: int = 1440, token: str | None = None, url: str = ""
) -> BrowserContext:
    """Return a new session with Airflow's UI in light or dark mode; ``token`` logs it in at ``url``."""
    made = browser.new_context(viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light")
    made.add_init_script(f"window.localStorage.setItem('theme', '{'dark' if dark else 'light'}')")
    made.set_default_timeout(_PATIENCE_MS)
    if token is not None:
        made.add_cookies([{"name": "_token", "value": token, "url": url}])
    return made


def shoot(page: Page, name: str) -> Path:
    """Keep a picture of a page as an artefact of the test run."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    file = SCREENSHOTS / f"{name}.png"
    page.screenshot(path=file, animations="disabled")
    return file


def _found() -> str | None:
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


def _installed() -> str:
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        pytest.skip(f"there is no Chromium, and only root can install it: apt-get install {_PACKAGES[0]}, or set CHROMIUM")
    _run([apt, "update"])
    said = _run([apt, "install", "-y", "--no-install-recommends", *_PACKAGES])
    if (path := _found()) is None:
        pytest.skip(f"Chromium cannot be installed: {said[-300:]}")
    return path


def _run(command: list[str]) -> str:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=_APT_SECONDS, check=False, env=environment)
    return done.stderr
