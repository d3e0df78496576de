"""Sends requests with credentials, and tells which failures may pass. Runs on executors."""

from __future__ import annotations

import base64
import logging
import threading
import time
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urljoin

import httpx
import orjson

from sluiceway import __version__
from sluiceway.connectors.errors import LoginError, UnreachableError
from sluiceway.connectors.http.connection import (
    CLIENT_SECRET,
    PROXY,
    SECRET_HEADERS,
    TIMEOUT,
    TOKEN_URL,
    TRUST,
    OAuth2,
    Server,
    origin_of,
    shown_url,
)
from sluiceway.connectors.https import lasting_failure, retry_after_seconds, tls_context
from sluiceway.errors import ConfigError, ConnectError, shortened

_UNAUTHORIZED, _FORBIDDEN, _PROXY_LOGIN, _SERVER_ERROR = 401, 403, 407, 500
_LATER = frozenset({408, 425, 429})
_NEVER = frozenset({501, 505})
_MOST_TEXT = 500
_MOST_ERROR_BYTES = 64 * 1024
_MOST_REDIRECTS = 5
_EARLY = 0.1
"""The part of a token's life that is left when it is renewed."""
_DEFAULT_LIFE = 300.0

logging.getLogger("httpx").setLevel(logging.WARNING)  # it would log each request


class Answer(NamedTuple):
    """An answer. ``url`` is that of the last request, after redirects."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        """The beginning of the body, in one line, which says what an error is."""
        return shortened(" ".join(self.body[:_MOST_ERROR_BYTES].decode("utf-8", "replace").split()), _MOST_TEXT)


class HttpClient:
    """A client of one server. Thread-safe."""

    def __init__(self, server: Server) -> None:
        """Prepare a client, which connects at the first request. Raises ConfigError."""
        self._server = server
        self._token = None if server.oauth2 is None else _Token(server.oauth2, self._request)
        try:
            self._http = httpx.Client(
                headers={"User-Agent": f"sluiceway/{__version__}"},
                timeout=server.timeout,
                trust_env=False,
                proxy=server.proxy,
                verify=tls_context(server.tls),
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=None),
            )
        except (httpx.InvalidURL, UnicodeError, ValueError):
            raise ConfigError(PROXY, None, "cannot be used") from None

    def close(self) -> None:
        self._http.close()

    def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        most: int | None = None,
        follows: bool = False,
    ) -> Answer:
        """Return the answer to a request with the credentials.

        Args:
            most: the most bytes of the answer to a request that succeeds. Without it, only the beginning of the body is kept.
            follows: whether redirects within the server are followed. None is to another one: the credentials are for this one.

        Raises UnreachableError, also for an answer that asks to try again later; LoginError; and ConnectError for others that do
        not depend on what is sent. All other statuses are returned.
        """
        first = url
        for _ in range(_MOST_REDIRECTS + 1):
            answer = self._authorized(method, url, headers, body, most)
            if answer.status not in (301, 302, 303, 307, 308):
                return answer
            target = urljoin(url, answer.headers.get("location", ""))
            told = f"{shown_url(first)} points to {shown_url(target)} (HTTP {answer.status})"
            if not follows or origin_of(target) != origin_of(first):
                raise ConnectError(f"{told}. Name the server itself in {self._server.url_key}: its credentials go nowhere else.")
            url = target
        raise ConnectError(f"{told}, and so on: a redirect without an end. Check {self._server.url_key}.")

    def _authorized(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, most: int | None) -> Answer:
        own, token = {**headers, **dict(self._server.headers)}, self._token
        given = None if token is None else token.current()
        answer = self._request(method, url, _with_token(own, given), body, most)
        if answer.status == _UNAUTHORIZED and token is not None:
            token.forget(given)
            answer = self._request(method, url, _with_token(own, token.current()), body, most)
        _check(answer, self._server)
        return answer

    def _request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None, most: int | None = None
    ) -> Answer:
        try:
            with self._http.stream(method, url, headers=dict(headers), content=body) as answer:
                limit = most if most is not None and answer.is_success else None
                return Answer(answer.status_code, answer.headers, _read(answer, limit), url)
        except (httpx.InvalidURL, UnicodeError, httpx.UnsupportedProtocol, httpx.LocalProtocolError) as error:
            text = f"{shown_url(url)} cannot be asked: its URL or a header has characters that HTTP cannot send"
            raise ConnectError(f"{text}. Check {self._server.url_key} and {SECRET_HEADERS}.") from error
        except httpx.RequestError as error:
            lasting = lasting_failure(error, TRUST, self._server.url_key)
            if lasting is not None:
                raise ConnectError(f"{shown_url(url)} cannot be used: {error}. {lasting}") from error
            told = f"{shown_url(url)} does not answer: {type(error).__name__}: {error}"
            if isinstance(error, httpx.ReadTimeout):
                told = f"{told}. Raise {TIMEOUT} if it needs longer for a request."
            raise UnreachableError(told) from error


def _read(answer: httpx.Response, most: int | None) -> bytes:
    parts: list[bytes] = []
    size = 0
    for part in answer.iter_bytes():
        parts.append(part)
        size += len(part)
        if most is not None and size > most:
            raise ConnectError(f"{shown_url(str(answer.url))} answers with more than {most} bytes. Ask for smaller pages.")
        if most is None and size > _MOST_ERROR_BYTES:
            break
    return b"".join(parts)


def _with_token(headers: dict[str, str], token: str | None) -> dict[str, str]:
    return headers if token is None else {**headers, "Authorization": f"Bearer {token}"}


def _check(answer: Answer, server: Server) -> None:
    """Raise what an answer means if that does not depend on what was sent."""
    status, told = answer.status, f"{shown_url(answer.url)} answered with HTTP {answer.status}: {answer.text}"
    if status in _LATER or (status >= _SERVER_ERROR and status not in _NEVER):
        raise UnreachableError(told, retry_after_seconds(answer.headers))
    if status == _UNAUTHORIZED:
        raise LoginError(f"{told} Check {server.login_key}.", server.login_key)
    if status == _FORBIDDEN:
        raise LoginError(f"{told} What {server.login_key} logs in as may not do that.", server.login_key)
    if status == _PROXY_LOGIN:
        raise LoginError(f"{told} Check {PROXY}.", PROXY)
    if status in _NEVER:
        raise ConnectError(f"{told} Check {server.url_key}.")


class _Token:
    """A token of OAuth 2 (RFC 6749, section 4.4), which is asked for when it is needed. Thread-safe."""

    def __init__(self, oauth2: OAuth2, request: Any) -> None:
        self._oauth2 = oauth2
        self._request = request
        self._lock = threading.Lock()
        self._token: str | None = None
        self._until = 0.0

    def current(self) -> str:
        """Return a token that is valid for a while. Raises UnreachableError, LoginError, and ConnectError."""
        with self._lock:
            if self._token is None or time.monotonic() >= self._until:
                self._token, life = self._fetched()
                self._until = time.monotonic() + life * (1 - _EARLY)
            return self._token

    def forget(self, token: str | None) -> None:
        """Ask for another token, because this one was refused. Another thread may have done so already."""
        with self._lock:
            if self._token == token:
                self._token = None

    def _fetched(self) -> tuple[str, float]:
        own = self._oauth2
        form = {"grant_type": "client_credentials", **({} if own.scope is None else {"scope": own.scope})}
        headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
        if own.in_header:
            login = base64.b64encode(f"{own.client_id}:{own.client_secret}".encode()).decode()
            headers["Authorization"] = f"Basic {login}"
        else:
            form |= {"client_id": own.client_id, "client_secret": own.client_secret}
        answer: Answer = self._request("POST", own.url, headers, str(httpx.QueryParams(form)).encode())
        where = shown_url(own.url)
        if answer.status in _LATER or answer.status >= _SERVER_ERROR:
            raise UnreachableError(f"{where} gives no token: HTTP {answer.status}", retry_after_seconds(answer.headers))
        if not answer.is_success:
            text = f"{where} refuses a token with HTTP {answer.status}: {answer.text}"
            raise LoginError(f"{text} Check {CLIENT_SECRET}, and {TOKEN_URL}.", CLIENT_SECRET)
        try:
            found = orjson.loads(answer.body)
            token, life = found[own.token_property], float(found.get("expires_in") or _DEFAULT_LIFE)
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError):
            token, life = None, 0.0
        if not isinstance(token, str) or not token.isprintable():
            raise ConnectError(f"{where} gives no token in the field {own.token_property} of its answer. Check {TOKEN_URL}.")
        return token, life
