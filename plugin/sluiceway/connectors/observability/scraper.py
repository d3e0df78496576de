"""Scrapes the targets of one task at the same time, on one thread. Runs on executors."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import httpx

from sluiceway import __version__
from sluiceway.connectors.https import tls_context
from sluiceway.connectors.observability.prometheus_config import BODY_LIMIT, Login, PrometheusOptions
from sluiceway.connectors.observability.targets import Discovery, Target
from sluiceway.errors import ConnectError

log = logging.getLogger(__name__)

OPENMETRICS_TYPE = "application/openmetrics-text"
_TEXT = "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
_ACCEPT = {True: f"{OPENMETRICS_TYPE};version=1.0.0,{_TEXT}", False: _TEXT}

_FAILURES = (OSError, httpx.HTTPError, httpx.InvalidURL, UnicodeError, ConnectError, asyncio.TimeoutError)
"""The errors of a request; UnicodeError for a token or a host that HTTP cannot send."""

logging.getLogger("httpx").setLevel(logging.WARNING)  # it would log each request


@dataclass(frozen=True, slots=True)
class Scrape:
    """A scrape that has ended. ``at`` is when it began, in milliseconds since the epoch; ``duration`` is in seconds."""

    target: Target
    at: int
    duration: float
    body: bytes = b""
    openmetrics: bool = False
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Gone:
    """A target that discovery has no more, or that has other labels now."""

    target: Target
    at: int


Event = Scrape | Gone


def slot(at: int, interval: int, phase: int) -> int:
    """Return the number of the interval in which a scrape begins. All are in milliseconds."""
    return (at - phase) // interval


class Scraper:
    """Scrapes each target once in an interval, and calls ``deliver`` with what it has found, on its own thread.

    A target is not scraped again before ``done`` is called, so that slow consumers cost scrapes and not memory.
    """

    def __init__(self, options: PrometheusOptions, deliver: Callable[[Event], None]) -> None:
        self._options = options
        self._deliver = deliver
        self._discovery = Discovery(options)
        self._context = tls_context(options.tls)
        self._running: dict[Target, asyncio.Task[None]] = {}
        self._undone: set[str] = set()
        self._stopping = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="prometheus-scraper", daemon=True)
        self.skipped = 0
        """Scrapes that were left out because the one before was still unread."""
        self.failure: BaseException | None = None
        """The error that has ended the thread."""
        self.problem: str | None = None
        """The targets that cannot be found, and the reason."""

    @property
    def targets(self) -> int:
        return len(self._running)

    def start(self) -> None:
        self._thread.start()

    def done(self, target: Target) -> None:
        """Allow the target's next scrape."""
        self._undone.discard(target.url)

    def stop(self) -> None:
        self._stopping.set()
        loop = self._loop
        if loop is not None:
            try:
                loop.call_soon_threadsafe(self._cancel)
            except RuntimeError:  # the loop has ended by itself
                log.debug("The scraper has ended already")
        if self._thread.is_alive():
            self._thread.join(self._options.timeout + 5)

    def _cancel(self) -> None:
        for task in asyncio.all_tasks():
            task.cancel()

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except asyncio.CancelledError:
            log.debug("The scraper has been stopped")
        except Exception as error:  # the thread's outermost call: poll raises it
            log.exception("The scraping has ended")
            self.failure = error

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        options = self._options
        rediscovers = bool(options.files or options.sd_url)
        async with self._client() as client:
            while not self._stopping.is_set():
                await self._discover(client)
                self.problem = self._discovery.problem
                self._change(client, self._discovery.targets())
                ended = [each for each in self._running.values() if each.done()]
                for each in ended:
                    each.result()  # raises what ended it
                await asyncio.sleep(options.sd_interval if rediscovers else 1.0)

    def _client(self) -> httpx.AsyncClient:
        # More than 100 scrapes at the same time wait for a connection. One is kept from a scrape to the next.
        kept = 2 * self._options.interval / 1000
        return httpx.AsyncClient(
            limits=httpx.Limits(max_connections=100, max_keepalive_connections=100, keepalive_expiry=kept),
            verify=self._context,
            trust_env=False,
            timeout=httpx.Timeout(self._options.timeout),
            headers={"User-Agent": f"sluiceway/{__version__}"},
        )

    async def _discover(self, client: httpx.AsyncClient) -> None:
        if self._options.files:
            self._discovery.read_files()
        url = self._options.sd_url
        if url is not None:
            try:
                body, _kind = await self._get(client, url, self._options.sd_login, {"Accept": "application/json"})
            except _FAILURES as error:
                self._discovery.take_answer(_told(error))
            else:
                self._discovery.take_answer(body)

    def _change(self, client: httpx.AsyncClient, wanted: dict[str, Target]) -> None:
        """Start and end the scraping of targets that are new or gone."""
        keep = {target.url: target for target in self._running}
        for url, target in keep.items():
            if wanted.get(url) != target:
                self._running.pop(target).cancel()
                self._undone.discard(url)  # a scrape that was cancelled is never done
                self._deliver(Gone(target, _now()))
                log.info("%s is scraped no more", url)
        for url, target in wanted.items():
            if keep.get(url) != target:
                self._running[target] = asyncio.get_running_loop().create_task(self._follow(client, target))

    async def _follow(self, client: httpx.AsyncClient, target: Target) -> None:
        interval = self._options.interval
        phase = target.phase(interval)
        while True:
            due = (slot(_now(), interval, phase) + 1) * interval + phase
            while (left := due - _now()) > 0:  # a sleep may end a little early
                await asyncio.sleep(left / 1000)
            if target.url in self._undone:
                self.skipped += 1
                continue
            self._undone.add(target.url)
            self._deliver(await self._scrape(client, target))

    async def _scrape(self, client: httpx.AsyncClient, target: Target) -> Scrape:
        at, began = _now(), time.perf_counter()
        headers = {
            "Accept": _ACCEPT[self._options.openmetrics],
            "X-Prometheus-Scrape-Timeout-Seconds": f"{self._options.timeout:g}",
        }
        try:
            body, kind = await self._get(client, target.url, self._options.login, headers)
        except _FAILURES as error:
            return Scrape(target, at, time.perf_counter() - began, error=_told(error))
        return Scrape(target, at, time.perf_counter() - began, body, kind.strip().lower().startswith(OPENMETRICS_TYPE))

    async def _get(self, client: httpx.AsyncClient, url: str, login: Login, headers: dict[str, str]) -> tuple[bytes, str]:
        """Return a body and its type. Raises ConnectError for an answer that is none, and for one that is too large."""
        auth = None if login.user is None or login.password is None else httpx.BasicAuth(login.user, login.password)
        if login.token is not None:
            headers = {**headers, "Authorization": f"Bearer {login.token}"}
        return await asyncio.wait_for(self._read_again(client, url, auth, headers), self._options.timeout)

    async def _read_again(
        self, client: httpx.AsyncClient, url: str, auth: httpx.BasicAuth | None, headers: dict[str, str]
    ) -> tuple[bytes, str]:
        """Read, and once more if the target has closed the connection of the last scrape meanwhile."""
        try:
            return await self._read(client, url, auth, headers)
        except httpx.RemoteProtocolError:
            return await self._read(client, url, auth, headers)

    async def _read(
        self, client: httpx.AsyncClient, url: str, auth: httpx.BasicAuth | None, headers: dict[str, str]
    ) -> tuple[bytes, str]:
        parts, size = [], 0
        async with client.stream("GET", url, auth=auth, headers=headers) as answer:
            if answer.status_code != httpx.codes.OK:
                raise ConnectError(f"HTTP {answer.status_code}")
            async for part in answer.aiter_bytes():
                size += len(part)
                if size > self._options.body_limit:
                    raise ConnectError(f"the answer has more than {self._options.body_limit} bytes ({BODY_LIMIT})")
                parts.append(part)
            return b"".join(parts), answer.headers.get("content-type", "")


def _now() -> int:
    return int(time.time() * 1000)


def _told(error: BaseException) -> str:
    if isinstance(error, asyncio.TimeoutError):
        return "no answer within scrape.timeout.ms"
    return str(error) if isinstance(error, ConnectError) else f"{type(error).__name__}: {error}"
