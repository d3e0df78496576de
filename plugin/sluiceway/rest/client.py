"""Client of Connect's REST API: that of Sluiceway, standalone or under Airflow, or of Kafka Connect."""

from __future__ import annotations

import copy
import ssl
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import httpx

from sluiceway import __version__
from sluiceway.errors import ConfigError, ConnectError

Json = TypeVar("Json", dict[str, Any], list[Any])

_NO_CONNECTION = (httpx.ConnectError, httpx.ConnectTimeout)


class RestError(ConnectError):
    """The server rejected a request with an HTTP status and a message. Status 0: no usable response."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(status, message)
        self.status = status
        self.message = message

    def __str__(self) -> str:
        return self.message


class ConnectClient:
    """Calls the REST API at ``server``. Every method blocks and raises RestError. Use it as a context manager.

    Args:
        server: one address, or several of one cluster; the client uses one that responds. An address may have a login.
        headers: sent with each request, for example a bearer token.
        login: user name and password for basic authentication.
        ca: PEM file of trusted certificate authorities.
        certificate: PEM files of a client certificate and its key; None if both are in one file.
        timeout: seconds for each request.
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
        given = [each.strip().rstrip("/") for each in ([server] if isinstance(server, str) else server)]
        self._servers = [_without_login(each) for each in given]  # httpx logs the address of each request
        self._logins = dict(zip(self._servers, map(_login, given), strict=True))
        agent = {"User-Agent": f"sluiceway/{__version__}"}
        # Reading the system's certificates takes longer than a request that does not need them.
        verify = _verify(ca, certificate) if ca or certificate or any(map(_is_https, self._servers)) else False
        self._http = httpx.Client(headers={**agent, **(headers or {})}, auth=login, verify=verify)
        self._timeout = timeout

    @property
    def server(self) -> str:
        """The address that requests go to."""
        return self._servers[0]

    def at(self, server: str, timeout: float) -> ConnectClient:
        """Return a client of another address of the same cluster, with this one's login and connections. Close this one only."""
        other = copy.copy(self)
        other._servers, other._logins, other._timeout = [server], {server: self._logins[self.server]}, timeout
        return other

    # Connectors.

    def root(self) -> dict[str, Any]:
        return self._call("GET", "/", returns=dict)

    def connectors(self) -> list[str]:
        return self._call("GET", "/connectors", returns=list)

    def statuses(self) -> dict[str, dict[str, Any]]:
        """Return every connector's status by name, in one request."""
        responses = self._call("GET", "/connectors?expand=status", returns=dict)
        return {name: response["status"] for name, response in responses.items()}

    def infos(self) -> dict[str, dict[str, Any]]:
        """Return every connector's name, config, tasks and type by name, in one request."""
        responses = self._call("GET", "/connectors?expand=info", returns=dict)
        return {name: response["info"] for name, response in responses.items()}

    def info(self, name: str) -> dict[str, Any]:
        return self._call("GET", _path(name), returns=dict)

    def config(self, name: str) -> dict[str, str]:
        return self._call("GET", _path(name, "config"), returns=dict)

    def status(self, name: str) -> dict[str, Any]:
        return self._call("GET", _path(name, "status"), returns=dict)

    def task_status(self, name: str, task: int) -> dict[str, Any]:
        return self._call("GET", _path(name, "tasks", str(task), "status"), returns=dict)

    def application(self, name: str) -> dict[str, Any]:
        """Return the Spark application that a connector shares, None for its own, why, and its driver's id, None without one."""
        return self._call("GET", _path(name, "application"), returns=dict)

    def metrics(self, name: str) -> str:
        """Return the metrics of a connector and its tasks as Prometheus text, empty if the server has none."""
        response = self._send("GET", f"/metrics?connector={quote(name, safe='')}", None)
        if response.is_error:
            raise RestError(response.status_code, _message(response))
        return response.text if response.headers.get("content-type", "").startswith("text/plain") else ""

    def tasks(self, name: str) -> list[dict[str, Any]]:
        return self._call("GET", _path(name, "tasks"), returns=list)

    def topics(self, name: str) -> list[str]:
        """Return the topics that a connector uses."""
        found: list[str] = self._call("GET", _path(name, "topics"), returns=dict)[name]["topics"]
        return found

    def create(self, name: str, config: Mapping[str, str], initial_state: str | None = None) -> dict[str, Any]:
        """Create a connector. An existing name is rejected (409). ``initial_state`` is RUNNING, PAUSED or STOPPED."""
        body: dict[str, Any] = {"name": name, "config": dict(config)}
        return self._call("POST", "/connectors", body | ({"initial_state": initial_state} if initial_state else {}), returns=dict)

    def put_config(self, name: str, config: Mapping[str, str]) -> bool:
        """Create a connector or replace its config. Return True if it is new."""
        return self._request("PUT", _path(name, "config"), dict(config)).status_code == httpx.codes.CREATED

    def patch_config(self, name: str, changes: Mapping[str, str | None]) -> dict[str, Any]:
        """Set keys of a connector's config (None removes a key). Return the connector's info."""
        return self._call("PATCH", _path(name, "config"), dict(changes), returns=dict)

    def delete(self, name: str) -> None:
        self._request("DELETE", _path(name))

    def pause(self, name: str, *, moving: bool = False) -> None:
        """Pause a connector. ``moving``: a move of this client starts it so at a Sluiceway, which refuses that to others."""
        self._request("PUT", _path(name, "pause") + "?moving=true" * moving)

    def resume(self, name: str, *, moving: bool = False) -> None:
        """Resume a connector; ``moving`` is as that of ``pause``."""
        self._request("PUT", _path(name, "resume") + "?moving=true" * moving)

    def stop(self, name: str) -> None:
        self._request("PUT", _path(name, "stop"))

    def restart(self, name: str, *, tasks: bool = False, only_failed: bool = False) -> None:
        """Restart a connector, with ``tasks`` also its tasks, with ``only_failed`` only the failed ones among them."""
        query = urlencode({"includeTasks": str(tasks).lower(), "onlyFailed": str(only_failed).lower()})
        self._request("POST", f"{_path(name, 'restart')}?{query}")

    def restart_task(self, name: str, task: int) -> None:
        self._request("POST", _path(name, "tasks", str(task), "restart"))

    def history(self, name: str) -> list[dict[str, Any]]:
        """Return the recorded changes of a connector, oldest first. Kafka Connect has no such request."""
        found: list[dict[str, Any]] = self._call("GET", _path(name, "history"), returns=dict)["history"]
        return found

    def intervals(self, name: str) -> list[dict[str, Any]]:
        """Return the intervals that runs have moved, the latest first. Kafka Connect has no such request."""
        found: list[dict[str, Any]] = self._call("GET", _path(name, "intervals"), returns=dict)["intervals"]
        return found

    def roll_back(self, name: str, version: int) -> dict[str, Any]:
        """Put the config of a version in a connector's history. Return the connector's info."""
        return self._call("POST", _path(name, "rollback"), {"version": version}, returns=dict)

    def send_signal(self, name: str, kind: str, data: Mapping[str, Any], signal_id: str | None = None) -> dict[str, Any]:
        """Send a signal to a connector of change data capture. Return its ``id`` and ``topic``.

        Kafka Connect has no such request.
        """
        return self._call("POST", _path(name, "signals"), {"id": signal_id, "type": kind, "data": dict(data)}, returns=dict)

    # Offsets.

    def offsets(self, name: str) -> list[dict[str, Any]]:
        """Return a connector's offsets, each with ``partition`` and ``offset``."""
        return self.offsets_and_position(name)[0]

    def offsets_and_position(self, name: str) -> tuple[list[dict[str, Any]], str]:
        """Return a connector's offsets, and where its position is, for users, if it is not in them; else an empty text."""
        answer = self._call("GET", _path(name, "offsets"), returns=dict)
        return answer["offsets"], answer.get("position", "")

    def alter_offsets(self, name: str, offsets: Sequence[Mapping[str, Any]]) -> str:
        """Set offsets of a stopped connector (None removes one). Return the server's message."""
        found: str = self._call("PATCH", _path(name, "offsets"), {"offsets": list(offsets)}, returns=dict)["message"]
        return found

    def find_offsets(
        self,
        name: str,
        *,
        to: str | None = None,
        shift_by: int | None = None,
        topics: Sequence[str] = (),
        partitions: Sequence[str] = (),
    ) -> list[dict[str, Any]]:
        """Return the offsets of a target, each with ``partition``, ``before`` and ``offset``. Kafka Connect has no such request.

        ``to`` is "earliest", "latest" or a time; ``shift_by`` is a number of records. ``partitions`` are numbers or JSON objects.
        """
        target = [("to", to)] if shift_by is None else [("shiftBy", str(shift_by))]
        query = urlencode([*target, *(("topic", each) for each in topics), *(("partition", each) for each in partitions)])
        found: list[dict[str, Any]] = self._call("GET", f"{_path(name, 'offsets', 'find')}?{query}", returns=dict)["offsets"]
        return found

    def reset_offsets(self, name: str) -> str:
        """Remove all offsets of a stopped connector. Return the server's message."""
        found: str = self._call("DELETE", _path(name, "offsets"), returns=dict)["message"]
        return found

    # Plugins and log levels.

    def plugins(self, *, connectors_only: bool = True) -> list[dict[str, Any]]:
        return self._call("GET", f"/connector-plugins?connectorsOnly={str(connectors_only).lower()}", returns=list)

    def plugin_config(self, plugin: str) -> list[dict[str, Any]]:
        """Return the config keys of a plugin."""
        return self._call("GET", f"/connector-plugins/{quote(plugin, safe='')}/config", returns=list)

    def plugin_implementation(self, plugin: str, version: str | None = None) -> dict[str, Any]:
        """Return a plugin's class, language, version and location. Kafka Connect has no such request."""
        query = f"?{urlencode({'version': version})}" if version else ""
        return self._call("GET", f"/connector-plugins/{quote(plugin, safe='')}/implementation{query}", returns=dict)

    def validate(self, plugin: str, config: Mapping[str, str]) -> dict[str, Any]:
        """Validate a config without storing it. Return the server's findings."""
        return self._call("PUT", f"/connector-plugins/{quote(plugin, safe='')}/config/validate", dict(config), returns=dict)

    def preview(
        self, plugin: str, config: Mapping[str, str], *, records: int, seconds: float, from_beginning: bool
    ) -> dict[str, Any]:
        """Run a config on some records without writing anything. Kafka Connect has no such request."""
        query = urlencode({"records": records, "seconds": seconds, "fromBeginning": str(from_beginning).lower()})
        path = f"/connector-plugins/{quote(plugin, safe='')}/config/preview?{query}"
        return self._call("POST", path, dict(config), returns=dict)

    def loggers(self) -> dict[str, dict[str, Any]]:
        """Return the loggers with a configured level, by name."""
        return self._call("GET", "/admin/loggers", returns=dict)

    def logger(self, name: str) -> dict[str, Any]:
        return self._call("GET", f"/admin/loggers/{quote(name, safe='')}", returns=dict)

    def set_logger(self, name: str, level: str, *, cluster: bool = False) -> list[str]:
        """Set a logger's level on this worker, or on all workers. Return the changed loggers; none for ``cluster``."""
        scope = "cluster" if cluster else "worker"
        return self._call("PUT", f"/admin/loggers/{quote(name, safe='')}?scope={scope}", {"level": level}, returns=list)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> ConnectClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _call(self, method: str, path: str, body: object = None, *, returns: type[Json]) -> Json:
        """Send a request and return its JSON response; a response "204 No Content" is an empty ``returns``."""
        response = self._request(method, path, body)
        document = response.json() if response.content else returns()
        if not isinstance(document, returns):
            raise RestError(0, f"{self.server} responded to {method} {path} with another form of JSON than expected.")
        return document

    def _request(self, method: str, path: str, body: object = None) -> httpx.Response:
        response = self._send(method, path, body)
        is_json = response.headers.get("content-type", "").startswith("application/json")
        # Kafka Connect's own 404 is JSON, and its 200 has a body. Its server responds otherwise until its resources are there.
        missing = response.status_code == httpx.codes.NOT_FOUND and not is_json
        if missing or (response.status_code == httpx.codes.OK and not response.content):
            raise RestError(
                0,
                f"{self.server} is no Kafka Connect REST API, or Kafka Connect is starting: it responded to {method} {path} "
                f"with {'the web page' if response.content else 'nothing but'} "
                f"'{response.status_code} {response.reason_phrase}'.",
            )
        if response.is_error:
            raise RestError(response.status_code, _message(response))
        if response.content and not is_json:  # Airflow's response for a path that nothing is mounted on
            raise RestError(0, f"{self.server} is not a Kafka Connect REST API: it responded with a web page.")
        return response

    def _send(self, method: str, path: str, body: object) -> httpx.Response:
        """Try the addresses in turn until one accepts the connection. Later requests start with that one."""
        for left in reversed(range(len(self._servers))):
            try:
                login = self._logins[self.server] or httpx.USE_CLIENT_DEFAULT
                return self._http.request(method, self.server + path, json=body, auth=login, timeout=self._timeout)
            except _NO_CONNECTION as error:
                if not left:
                    raise self._unreachable(error) from error
                self._servers.append(self._servers.pop(0))
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise self._unreachable(error) from error
        raise RestError(0, "No REST API address is configured. Name one with --server.")

    def _unreachable(self, error: Exception) -> RestError:
        tried = " or ".join(self._servers)
        return RestError(0, f"Cannot reach the REST API at {tried}: {str(error).rstrip('.')}. {_question(str(error))}")


def _verify(ca: str | None, certificate: tuple[str, str | None] | None) -> ssl.SSLContext | bool:
    if ca is None and certificate is None:
        return True
    try:
        context = ssl.create_default_context(cafile=ca)
        if certificate is not None:
            context.load_cert_chain(*certificate)
    except OSError as error:
        raise ConfigError(f"Cannot use the certificates for the REST API: {error}. Check their paths and format.") from error
    return context


def _is_https(address: str) -> bool:
    return address.lower().startswith("https:")


def _question(error: str) -> str:
    """Return what to look at when a server cannot be reached: which side speaks TLS, its certificate, or whether it runs."""
    if "CERTIFICATE_VERIFY_FAILED" in error:
        return "Name the authority of its certificate: 'sluiceway contexts set NAME --server URL --ca FILE'."
    if "WRONG_VERSION_NUMBER" in error:
        return "Is it a server without TLS, whose address begins with http://?"
    if "disconnected without sending a response" in error:
        return "Is it a server with TLS, whose address begins with https://?"
    return "Is it running?"


def _without_login(url: str) -> str:
    scheme, mark, rest = url.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"


def _login(url: str) -> tuple[str, str] | None:
    try:
        found = httpx.URL(url)
    except httpx.InvalidURL:  # a request says so
        return None
    return (found.username, found.password) if found.userinfo else None


def _path(name: str, *parts: str) -> str:
    return "/".join(("/connectors", quote(name, safe=""), *parts))


def _message(response: httpx.Response) -> str:
    try:
        return str(response.json()["message"])
    except (ValueError, KeyError, TypeError):
        request = f"{response.request.method} {response.request.url}"
        return f"{request}: response {response.status_code} {response.reason_phrase}"
