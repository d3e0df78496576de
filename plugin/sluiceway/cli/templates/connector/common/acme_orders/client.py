"""Calls the service over HTTP. Change this module first when you connect another system."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import httpx
from sluiceway.config.definition import ValidatedValue
from sluiceway.errors import ConnectError

from acme_orders.config import TOKEN, URL, Connection

log = logging.getLogger(__name__)
logging.getLogger("httpx").setLevel(logging.WARNING)  # it would log each request

_TOO_MANY, _SERVER_ERROR = 429, 500
_MOST_TEXT = 500


class UnreachableError(OSError):
    """The service does not answer, or is busy. The same call may succeed later."""


class RefusedError(ConnectError):
    """The service refuses a request, and would refuse it again."""


class LoginError(RefusedError):
    """The service does not accept the token."""


class Client:
    """A client of the service. Not thread-safe: each task has its own."""

    def __init__(self, connection: Connection) -> None:
        self._url = connection.url
        headers = {"Content-Type": "application/json"}
        if connection.token is not None:
            headers["Authorization"] = f"Bearer {connection.token.value}"
        # Without trust_env=False, logins of ~/.netrc and proxies of the machine's environment would be used.
        self._http = httpx.Client(headers=headers, timeout=connection.timeout, trust_env=False)

    def close(self) -> None:
        self._http.close()

    def call(self, method: str, path: str, **request: Any) -> Any:
        """Return the JSON of an answer. Raises UnreachableError, LoginError, and RefusedError."""
        where = f"{method} {self._url}{path}"
        try:
            answer = self._http.request(method, self._url + path, **request)
        except httpx.RequestError as error:
            raise UnreachableError(f"{where} has no answer: {type(error).__name__}: {error}") from error
        status = f"{where} was answered with HTTP {answer.status_code}: {answer.text[:_MOST_TEXT]}"
        if answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            raise LoginError(f"{status}. Check {TOKEN}.")
        if answer.status_code == _TOO_MANY or answer.status_code >= _SERVER_ERROR:
            raise UnreachableError(status)
        if not answer.is_success:
            raise RefusedError(status)
        try:
            return answer.json()
        except ValueError as error:
            raise RefusedError(f"{where} did not answer with JSON. Check {URL}.") from error

    def collections(self) -> list[str]:
        """Return the names of the service's collections."""
        found: list[str] = self.call("GET", "/")["collections"]
        return found


def try_connection(found: Mapping[str, ValidatedValue], connection: Connection) -> list[str] | None:
    """Add what the service refuses to the results of a validation. Return its collections, or None without an answer.

    A service that does not answer is no error, because tasks wait for it.
    """
    client = Client(connection)
    try:
        return client.collections()
    except UnreachableError as error:
        log.warning("%s", error)
    except LoginError as error:
        found[TOKEN].errors.append(str(error))
    except (RefusedError, KeyError, TypeError) as error:
        found[URL].errors.append(f"This is not the URL of the service: {error}")
    finally:
        client.close()
    return None
