"""A small client for Connect's REST API: ours, ours under Airflow, or a real Kafka Connect's."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlencode

import httpx

from sluiceway.errors import ConfigError, ConnectError

_REACHED_NOBODY = (httpx.ConnectError, httpx.ConnectTimeout)


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

    ``server`` may be several addresses of one cluster: whichever answers is used. ``headers`` go with each request, for a server
    that wants a token; ``login`` is a user's name and password. ``ca`` is a PEM file of authorities to trust, ``certificate`` the
    PEM files of a certificate and of its key (None: in the same file). ``timeout`` in seconds. A context manager.
    """

    def __init__(
        self,
        server: str | Sequence[str] = "http://localhost:8083",
        *,
        headers: Mapping[str, str] | None = None,
        login: tuple[str, str] | None = None,
        ca: str | None = None,
        certificate: tuple[str, str | None] | None = None,
        timeout: float = 60.0,
    ) -> None:
        self._servers = [each.strip().rstrip("/") for each in ([server] if isinstance(server, str) else server)]
        self._http = httpx.Client(headers=dict(headers or {}), auth=login, timeout=timeout, verify=_verify(ca, certificate))

    @property
    def server(self) -> str:
        """The address in use."""
        return self._servers[0]

    # Connectors.

    def root(self) -> dict[str, Any]:
        return self._call("GET", "/")

    def connectors(self) -> list[str]:
        return self._call("GET", "/connectors")

    def statuses(self) -> dict[str, dict[str, Any]]:
        """Return every connector's status by name, in one request."""
        answers = self._call("GET", "/connectors?expand=status")
        return {name: answer["status"] for name, answer in answers.items()}

    def infos(self) -> dict[str, dict[str, Any]]:
        """Return every connector's name, config, tasks and type by name, in one request."""
        answers = self._call("GET", "/connectors?expand=info")
        return {name: answer["info"] for name, answer in answers.items()}

    def info(self, name: str) -> dict[str, Any]:
        return self._call("GET", _path(name))

    def config(self, name: str) -> dict[str, str]:
        return self._call("GET", _path(name, "config"))

    def status(self, name: str) -> dict[str, Any]:
        return self._call("GET", _path(name, "status"))

    def tasks(self, name: str) -> list[dict[str, Any]]:
        return self._call("GET", _path(name, "tasks"))

    def topics(self, name: str) -> list[str]:
        """Return the topics that a connector has used."""
        return self._call("GET", _path(name, "topics"))[name]["topics"]

    def create(self, name: str, config: Mapping[str, str], initial_state: str | None = None) -> dict[str, Any]:
        """Make a connector; a name that is taken is refused (409). ``initial_state``: RUNNING, PAUSED or STOPPED."""
        body: dict[str, Any] = {"name": name, "config": dict(config)}
        return self._call("POST", "/connectors", body | ({"initial_state": initial_state} if initial_state else {}))

    def put_config(self, name: str, config: Mapping[str, str]) -> bool:
        """Make a connector, or change its config; return whether it is new."""
        return self._request("PUT", _path(name, "config"), dict(config)).status_code == httpx.codes.CREATED

    def patch_config(self, name: str, changes: Mapping[str, str | None]) -> dict[str, Any]:
        """Change some keys of a connector's config, None removing one; return its info."""
        return self._call("PATCH", _path(name, "config"), dict(changes))

    def delete(self, name: str) -> None:
        self._call("DELETE", _path(name))

    def pause(self, name: str) -> None:
        self._call("PUT", _path(name, "pause"))

    def resume(self, name: str) -> None:
        self._call("PUT", _path(name, "resume"))

    def stop(self, name: str) -> None:
        self._call("PUT", _path(name, "stop"))

    def restart(self, name: str, *, tasks: bool = False, only_failed: bool = False) -> None:
        """Restart a connector, its tasks too if asked to, or only those of both that failed."""
        query = urlencode({"includeTasks": str(tasks).lower(), "onlyFailed": str(only_failed).lower()})
        self._call("POST", f"{_path(name, 'restart')}?{query}")

    def restart_task(self, name: str, task: int) -> None:
        self._call("POST", _path(name, "tasks", str(task), "restart"))

    # Offsets.

    def offsets(self, name: str) -> list[dict[str, Any]]:
        """Return a connector's offsets, each with ``partition`` and ``offset``."""
        return self._call("GET", _path(name, "offsets"))["offsets"]

    def alter_offsets(self, name: str, offsets: Sequence[Mapping[str, Any]]) -> str:
        """Set offsets of a stopped connector, an offset of None removing one; return the server's word on it."""
        return self._call("PATCH", _path(name, "offsets"), {"offsets": list(offsets)})["message"]

    def reset_offsets(self, name: str) -> str:
        """Remove all offsets of a stopped connector; return the server's word on it."""
        return self._call("DELETE", _path(name, "offsets"))["message"]

    # Plugins and log levels.

    def plugins(self, *, connectors_only: bool = True) -> list[dict[str, Any]]:
        return self._call("GET", f"/connector-plugins?connectorsOnly={str(connectors_only).lower()}")

    def plugin_config(self, plugin: str) -> list[dict[str, Any]]:
        """Return the keys that a plugin's config may have."""
        return self._call("GET", f"/connector-plugins/{quote(plugin, safe='')}/config")

    def validate(self, plugin: str, config: Mapping[str, str]) -> dict[str, Any]:
        """Return what the server finds in a config, without storing it."""
        return self._call("PUT", f"/connector-plugins/{quote(plugin, safe='')}/config/validate", dict(config))

    def loggers(self) -> dict[str, dict[str, Any]]:
        """Return the loggers that have a level of their own, with it."""
        return self._call("GET", "/admin/loggers")

    def logger(self, name: str) -> dict[str, Any]:
        return self._call("GET", f"/admin/loggers/{quote(name, safe='')}")

    def set_logger(self, name: str, level: str, *, cluster: bool = False) -> list[str]:
        """Set a logger's level on this worker, or on all; return the loggers changed (of all: none are told)."""
        scope = "cluster" if cluster else "worker"
        return self._call("PUT", f"/admin/loggers/{quote(name, safe='')}?scope={scope}", {"level": level}) or []

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
        response = self._answer(method, path, body)
        if response.is_error:
            raise RestError(response.status_code, _message(response))
        # Airflow answers 200 and a web page to a path that nothing is mounted on.
        if response.content and not response.headers.get("content-type", "").startswith("application/json"):
            raise RestError(0, f"{_without_login(self.server)} is not a Kafka Connect REST API: it answered with a web page.")
        return response

    def _answer(self, method: str, path: str, body: object) -> httpx.Response:
        """Ask the addresses in turn until one is there; the one that answered is asked first from then on."""
        for left in reversed(range(len(self._servers))):
            try:
                return self._http.request(method, self.server + path, json=body)
            except _REACHED_NOBODY as error:
                if not left:
                    raise self._unreachable(error) from error
                self._servers.append(self._servers.pop(0))
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise self._unreachable(error) from error
        raise RestError(0, "No REST API was named.")

    def _unreachable(self, error: Exception) -> RestError:
        tried = " or ".join(_without_login(each) for each in self._servers)
        return RestError(0, f"Cannot reach the REST API at {tried}: {error}. Is it running?")


def _verify(ca: str | None, certificate: tuple[str, str | None] | None) -> ssl.SSLContext | bool:
    if ca is None and certificate is None:
        return True
    try:
        context = ssl.create_default_context(cafile=ca)
        if certificate is not None:
            context.load_cert_chain(*certificate)
    except OSError as error:
        raise ConfigError(f"The certificates for the REST API cannot be used: {error}.") from error
    return context


def _without_login(url: str) -> str:
    scheme, mark, rest = url.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"


def _path(name: str, *parts: str) -> str:
    return "/".join(("/connectors", quote(name, safe=""), *parts))


def _message(response: httpx.Response) -> str:
    try:
        return str(response.json()["message"])
    except (ValueError, KeyError, TypeError):
        asked = f"{response.request.method} {_without_login(str(response.request.url))}"
        return f"{asked} answered {response.status_code} {response.reason_phrase}"
