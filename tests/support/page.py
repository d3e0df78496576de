"""Serves the connectors page without Airflow, and opens it in a browser."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import uvicorn
from fastapi import Depends, Request
from playwright.sync_api import Browser, Locator, Page

from sluiceway.config.worker import WorkerConfig
from sluiceway.herder import Herder
from sluiceway.provider.ui import routes
from sluiceway.provider.ui.dashboard import Dashboard
from sluiceway.rest.app import make_app
from sluiceway.rest.guard import AllowAll
from support.browser import context
from support.eventually import LIMIT, eventually


class EveryRight(AllowAll):
    """The guard of a user who may do everything."""

    def editable(self, configs: Mapping[str, Mapping[str, str]]) -> Sequence[str]:
        return list(configs)

    def may_create(self) -> bool:
        return True


def _allow(request: Request) -> None:
    request.state.guard = EveryRight()


class PageServer:
    """Serves the REST API and the page on a port of this machine."""

    def __init__(self, herder: Herder, dashboard: Dashboard) -> None:
        app = make_app(lambda: herder, dependencies=[Depends(_allow)])
        routes.install(app, lambda: dashboard)
        self._server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning"))
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        eventually(lambda: self._server.started, what="the page's server")
        self.url = f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}"

    def __enter__(self) -> PageServer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=LIMIT)


@dataclass
class Ui:
    """A browser on the page."""

    page: Page
    url: str
    errors: list[str] = field(default_factory=list)

    def go(self, hash_: str) -> None:
        self.page.goto(f"{self.url}/ui/index.html{hash_}")

    def field(self, key: str) -> Locator:
        """The element of a key in the form."""
        return self.page.locator(f'[data-field="{key}"]')

    def control(self, key: str) -> Locator:
        return self.field(key).locator(".control :is(input, select, textarea)")

    def fill(self, config: Mapping[str, str]) -> None:
        """Set keys in the form, in this order; opens sections and adds keys as a user would."""
        for key, value in config.items():
            self.set(key, value)

    def set(self, key: str, value: str) -> None:
        control = self.control(key)
        if not control.count():
            self.page.get_by_label("Add a key").fill(key)
            self.page.get_by_role("button", name="Add", exact=True).click()
        elif not control.is_visible():
            self.page.locator("details", has=control).locator("summary").click()
        if control.evaluate("element => element.tagName") != "SELECT":
            control.fill(value)
        elif control.locator(f"option[value={value!r}]").count():
            control.select_option(value)
        else:
            control.select_option(label="Other value…")
            control.fill(value)

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def evaluated(self, module: str, expression: str, argument: Any = None) -> Any:
        """Return the result of a JavaScript function of the page's ``module``."""
        return self.page.evaluate(
            f"async (argument) => {{ const m = await import('./{module}.js'); return ({expression})(m, argument); }}", argument
        )


@dataclass
class Cluster:
    """A Connect cluster without drivers, and its page."""

    worker: WorkerConfig
    herder: Herder
    url: str

    def config(self, name: str) -> dict[str, str]:
        return dict(self.herder.info(name).config)


@contextmanager
def opened(browser: Browser, url: str, hash_: str = "", *, dark: bool = False, width: int = 1440) -> Iterator[Ui]:
    """Open the page; fail at the end if the browser reported an error."""
    session = context(browser, dark=dark, width=width)
    page = session.new_page()
    ui = Ui(page, url)
    page.on("pageerror", lambda error: ui.errors.append(str(error)))
    page.on("console", lambda line: ui.errors.append(line.text) if "Security Policy" in line.text else None)
    page.on("request", lambda asked: None if asked.url.startswith((url, "data:", "blob:")) else ui.errors.append(asked.url))
    try:
        ui.go(hash_)
        yield ui
    finally:
        session.close()
    assert not ui.errors
