"""Starts a headless Chromium for tests through Playwright.

Uses, in this order: the file in CHROMIUM, the system's browser, the one that ``playwright install chromium-headless-shell`` has
installed. Otherwise, root installs one with apt within two minutes; if that fails, the tests are skipped with the reason.
SLUICEWAY_NO_INSTALL=1 prevents the installation.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from support.eventually import LIMIT

_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
_PACKAGES = ("chromium-headless-shell", "fonts-dejavu-core")
_INSTALL_SECONDS = 120.0
_LIMIT_MS = int(1000 * LIMIT)

log = logging.getLogger(__name__)

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"


@contextmanager
def chromium() -> Iterator[Browser]:
    """Yield a browser; skip the test with the reason if none is installed or can be."""
    expect.set_options(timeout=_LIMIT_MS)
    with sync_playwright() as playwright:
        path = os.environ.get("CHROMIUM") or _found() or _playwrights(playwright.chromium.executable_path) or _installed()
        # Chromium's sandbox fails for root and in most containers; only pages of this test are opened.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def context(
    browser: Browser, *, dark: bool = False, width: int = 1440, token: str | None = None, url: str = ""
) -> BrowserContext:
    """Return a new browser context with Airflow's UI in light or dark mode; ``token`` logs it in at ``url``."""
    made = browser.new_context(viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light")
    made.add_init_script(f"window.localStorage.setItem('theme', '{'dark' if dark else 'light'}')")
    made.set_default_timeout(_LIMIT_MS)
    if token is not None:
        made.add_cookies([{"name": "_token", "value": token, "url": url}])
    return made


def screenshot(page: Page, name: str) -> Path:
    """Save a screenshot of a page in build/screenshots."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    file = SCREENSHOTS / f"{name}.png"
    page.screenshot(path=file, animations="disabled")
    return file


def _found() -> str | None:
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


def _playwrights(path: str) -> str | None:
    """Return Playwright's browser; ``path`` is the full browser's, even if only the headless shell is installed."""
    folder = Path(path).parents[2]
    shells = sorted(folder.glob("chromium_headless_shell-*/*/*headless*shell"))
    return next((str(each) for each in (*reversed(shells), Path(path)) if each.is_file() and os.access(each, os.X_OK)), None)


def _installed() -> str:
    """Install a browser, one process at a time, or skip the test."""
    apt = shutil.which("apt-get")
    if os.environ.get("SLUICEWAY_NO_INSTALL") or apt is None or os.geteuid() != 0:
        pytest.skip(
            f"there is no Chromium: 'apt-get install {_PACKAGES[0]}' as root, 'playwright install chromium-headless-shell', or "
            "CHROMIUM=/path/to/it gives these tests one"
        )
    with Path(tempfile.gettempdir(), "sluiceway-tests-chromium.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (path := _found()) is not None:  # another process was first
            return path
        began = time.monotonic()
        try:
            said = _apt(apt, began)
        except subprocess.TimeoutExpired as error:
            said = f"'{' '.join(error.cmd)}' took longer than {_INSTALL_SECONDS:.0f} s"
        log.warning("Installing Chromium took %.0f s", time.monotonic() - began)
    if (path := _found()) is None:
        pytest.skip(f"Chromium cannot be installed: {said[-300:]}")
    return path


def _apt(apt: str, began: float) -> str:
    """Install with the existing package lists, or if that fails, with new ones; return apt's error output."""
    install = [apt, "install", "-y", "--no-install-recommends", *_PACKAGES]
    fast = ["-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=10", "-o", "DPkg::Lock::Timeout=30"]
    said = ""
    for command in (install, [apt, "update"], install):
        left = max(1.0, _INSTALL_SECONDS - (time.monotonic() - began))
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        done = subprocess.run(
            [*command, *fast],
            capture_output=True,
            text=True,
            timeout=left,
            check=False,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
        said = done.stderr
        if command is install and done.returncode == 0:
            return ""
    return said
