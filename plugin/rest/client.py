"""A small client for Connect's REST API: ours, ours under Airflow, or a real Kafka Connect's."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any
from urllib.parse import quote

import httpx
from sluiceway.errors import ConnectError


class RestError(ConnectError):
    """The server refused a request, with this HTTP status and message; status 0: there was no usable answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(status, message)
        self.status = status
        self.message = message

    def __str__(self) -> str:
        return self.message


class ConnectClient:
    """Calls the REST API at ``server``; every method blocks and raises RestError.

    ``headers`` go with each request, for a server that wants a token. ``timeout`` in seconds. A context manager.
    """

    def __init__(self, server: str = "http://localhost:8083", *, headers: Mapping[str, str] | None = None, timeout: float = 60.0):
        self.server = server.rstrip("/")
        self._http = httpx.Client(headers=dict(headers or {}), timeout=timeout)

    def root(self) -> dict[str, Any]:
        return self._call("GET", "/")

    def connectors(self) -> list[str]:
        return self._call("GET", "/connectors")

    def statuses(self) -> dict[str, dict[str, Any]]:
        """Return every connector's status by name, in one request."""
        answers = self._call("GET", "/connectors?expand=status")
        return {name: answer["status"] for name, answer in answers.items()}

    def info(self, name: str) -> dict[str, Any]:
        return self._call("GET", _path(name))

    def config(self, name: str) -> dict[str, str]:
        return self._call("GET", _path(name, "config"))

    def status(self, name: str) -> dict[str, Any]:
        return self._call("GET", _path(name, "status"))

    def tasks(self, name: str) -> list[dict[str, Any]]:
        return self._call("GET", _path(name, "tasks"))

    def create(self, name: str, config: Mapping[str, str], initial_state: str | None = None) -> dict[str, Any]:
        """Make a connector; a name that is taken is refused (409). ``initial_state``: RUNNING, PAUSED or STOPPED."""
        body: dict[str, Any] = {"name": name, "config": dict(config)}
        return self._call("POST", "/connectors", body | ({"initial_state": initial_state} if initial_state else {}))

    def put_config(self, name: str, config: Mapping[str, str]) -> bool:
        """Make a connector, or change its config; return whether it is new."""
        return self._request("PUT", _path(name, "config"), dict(config)).status_code == httpx.codes.CREATED

    def delete(self, name: str) -> None:
        self._call("DELETE", _path(name))

    def pause(self, name: str) -> None:
        self._call("PUT", _path(name, "pause"))

    def resume(self, name: str) -> None:
        self._call("PUT", _path(name, "resume"))

    def stop(self, name: str) -> None:
        self._call("PUT", _path(name, "stop"))

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> ConnectClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _call(self, method: str, path: str, body: object = None) -> Any:
        response = self._request(method, path, body)
        return response.json() if response.content else None

    def _request(self, method: str, path: str, body: object = None) -> httpx.Response:
        try:
            response = self._http.request(method, self.server + path, json=body)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise RestError(0, f"Cannot reach the REST API at {self.server}: {error}. Is it running?") from error
        if response.is_error:
            raise RestError(response.status_code, _message(response))
        # Airflow answers 200 and a web page to a path that nothing is mounted on.
        if response.content and not response.headers.get("content-type", "").startswith("application/json"):
            raise RestError(0, f"{self.server} is not a Kafka Connect REST API: it answered with a web page.")
        return response


def _path(name: str, *parts: str) -> str:
    return "/".join(("/connectors", quote(name, safe=""), *parts))


def _message(response: httpx.Response) -> str:
    try:
        return str(response.json()["message"])
    except (ValueError, KeyError, TypeError):
        return f"{response.request.method} {response.request.url} answered {response.status_code} {response.reason_phrase}"
