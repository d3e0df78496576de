"""Calls a search server over HTTP: the sinks' part, which is the bulk API, indexes, and data streams, and what sources share."""

from __future__ import annotations

import gzip
import logging
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import quote

import httpx
import orjson

from sluiceway import __version__
from sluiceway.connectors.errors import UnreachableError
from sluiceway.connectors.https import lasting_failure, tls_context
from sluiceway.connectors.search.connection import URL, Server
from sluiceway.errors import ConfigError, ConnectError, DataError, shortened

_TOO_MANY, _SERVER_ERROR, _NOT_READY = 429, 500, frozenset((502, 503, 504))
UNAUTHORIZED, FORBIDDEN = 401, 403

_FILTER = "filter_path=error,items.*.status,items.*.error.type,items.*.error.reason,items.*.error.caused_by"
_MOST_TEXT = 500
_SEARCH_FAILED = "search_phase_execution_exception"

logging.getLogger("httpx").setLevel(logging.WARNING)  # it would log each request


def is_busy(status: int) -> bool:
    """Return whether a status is the server's own trouble, as while it is full, starts, or shuts down."""
    return status == _TOO_MANY or status >= _SERVER_ERROR


class RefusedError(ConnectError):
    """The server refused a request as a whole. ``status`` is that of HTTP, ``kind`` the type of its error."""

    def __init__(self, status: int, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind

    def __reduce__(self) -> tuple[Any, ...]:
        return RefusedError, (self.status, str(self), self.kind)


class SearchClient:
    """A client of the servers of one cluster; it stays with one that answers. Not thread-safe. Runs on executors."""

    rights: ClassVar[str] = "the right to write to, and to create, the indexes"
    """The rights that a user needs whose request is refused."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._urls = list(server.urls)
        timeout = httpx.Timeout(server.read_timeout, connect=server.connect_timeout)
        login = None if server.user is None or server.password is None else (server.user, server.password)
        secure = any(url.startswith("https:") for url in self._urls)
        try:
            self._http = httpx.Client(
                auth=login,
                timeout=timeout,
                proxy=server.proxy,
                trust_env=False,
                verify=tls_context(server.tls) if secure else False,
                headers={"User-Agent": f"sluiceway/{__version__}"},
            )
        except (httpx.InvalidURL, UnicodeError):
            raise ConfigError(f"{URL}, the login, or the proxy has characters that HTTP cannot send.") from None

    def close(self) -> None:
        self._http.close()

    def about(self) -> dict[str, Any]:
        """Return the server's description of itself."""
        return self._json("GET", "/")

    def bulk(self, lines: Sequence[bytes]) -> list[tuple[int, str, str]]:
        """Send actions; return the status of each, and the type and the reason of its error.

        Raises UnreachableError, and RefusedError if the server takes none of them.
        """
        body = b"".join(lines)
        headers = {"Content-Type": "application/x-ndjson"}
        if self._server.compressed:
            body = gzip.compress(body, 1)
            headers["Content-Encoding"] = "gzip"
        answer = self._call("POST", f"/_bulk?{_FILTER}", content=body, headers=headers)
        found = _parsed(answer, self._urls[0])
        try:
            return [_item(next(iter(each.values()))) for each in found["items"]]
        except (AttributeError, KeyError, StopIteration, TypeError) as error:
            text = f"{self._urls[0]} gave no answer of the bulk API: {shortened(answer.text, _MOST_TEXT)}"
            raise RefusedError(answer.status_code, text) from error

    def mapping_of(self, index: str) -> dict[str, Any] | None:
        """Return the fields that an index, or the indexes of an alias, define; None if there is no such index."""
        try:
            found = self._json("GET", f"/{_path(index)}/_mapping")
        except RefusedError as error:
            if error.status == httpx.codes.NOT_FOUND:
                return None
            raise
        fields: dict[str, Any] = {}
        try:
            for each in found.values():
                fields.update(each.get("mappings", {}).get("properties", {}))
        except (AttributeError, TypeError) as error:
            raise RefusedError(httpx.codes.OK, f"{self._urls[0]} gave no mappings of {index}.") from error
        return fields

    def create_index(self, index: str, mappings: dict[str, Any] | None) -> None:
        """Create an index; that it exists meanwhile is no error."""
        self._unless_there("PUT", f"/{_path(index)}", {} if mappings is None else {"mappings": mappings})

    def add_fields(self, index: str, mappings: dict[str, Any]) -> None:
        """Define fields of an index."""
        self._json("PUT", f"/{_path(index)}/_mapping", mappings)

    def has(self, kind: str, name: str) -> bool:
        """Return whether there is a ``_data_stream`` or an ``_index_template`` with this name."""
        try:
            self._json("GET", f"/{kind}/{_path(name)}")
        except RefusedError as error:
            if error.status == httpx.codes.NOT_FOUND:
                return False
            raise
        return True

    def create_stream(self, name: str) -> None:
        """Create a data stream; that it exists meanwhile is no error. Its index template must exist."""
        self._unless_there("PUT", f"/_data_stream/{_path(name)}", None)

    def create_template(self, name: str, pattern: str) -> None:
        """Create the index template of a data stream. Its pattern must match nothing else, which could not be an index then."""
        template = {"index_patterns": [pattern], "data_stream": {}, "priority": 200}
        fields = {"properties": {"@timestamp": {"type": "date"}}}
        self._json("PUT", f"/_index_template/{_path(name)}", {**template, "template": {"mappings": fields}})

    def _unless_there(self, method: str, path: str, body: dict[str, Any] | None) -> None:
        try:
            self._json(method, path, body)
        except RefusedError as error:
            if "resource_already_exists_exception" not in str(error) and "already exists" not in str(error):
                raise

    def _json(self, method: str, path: str, body: Mapping[str, Any] | None = None, **request: Any) -> dict[str, Any]:
        content = None if body is None else orjson.dumps(body)
        answer = self._call(method, path, content=content, headers={"Content-Type": "application/json"}, **request)
        return _parsed(answer, self._urls[0])

    def _call(self, method: str, path: str, **request: Any) -> httpx.Response:
        """Return the answer of a server that answers. Raises UnreachableError, and RefusedError."""
        problem = ""
        for _ in range(len(self._urls)):
            try:
                answer = self._http.request(method, self._urls[0] + path, **request)
            except (httpx.InvalidURL, UnicodeError) as error:
                raise RefusedError(0, f"{self._urls[0]} is no address: {error}") from error
            except httpx.RequestError as error:
                lasting = lasting_failure(error, f"{self._server.tls.prefix}ssl.truststore.location", URL)
                if lasting is not None:
                    raise RefusedError(0, f"{self._urls[0]} cannot be used: {error}. {lasting}") from error
                problem = self._told(error)
            else:
                kind, text = _error_of(answer)
                if answer.status_code not in _NOT_READY and not kind.endswith("_block_exception"):
                    if answer.is_error or answer.is_redirect:
                        raise RefusedError(answer.status_code, self._refusal(answer, kind, text), kind)
                    return answer
                problem = f"{self._urls[0]} is not ready: HTTP {answer.status_code} {text}"
            self._urls.append(self._urls.pop(0))
        raise UnreachableError(problem if len(self._urls) == 1 else f"No answer from {', '.join(sorted(self._urls))}: {problem}")

    def _told(self, error: httpx.RequestError) -> str:
        """Return what to say of a server that did not answer."""
        text = f"{self._urls[0]} does not answer: {type(error).__name__}: {error}"
        if isinstance(error, httpx.ReadTimeout):
            return f"{text}. Raise read.timeout.ms if the server needs longer for a request."
        return text if self._server.proxy is None else f"{text}. It was asked by the proxy of proxy.host."

    def _refusal(self, answer: httpx.Response, kind: str, text: str) -> str:
        told = f"{self._urls[0]} answered with HTTP {answer.status_code}: {text}"
        if answer.is_redirect:
            return f"{told} It points to {answer.headers.get('location')}. Name the servers themselves in {URL}."
        if answer.status_code == UNAUTHORIZED:
            return f"{told}. Check connection.username and connection.password."
        if answer.status_code == FORBIDDEN and kind in ("", "security_exception"):
            return f"{told}. The user of connection.username needs {self.rights}."
        return told


def _item(result: dict[str, Any]) -> tuple[int, str, str]:
    """Return status, type, and reason of a document's answer. Raises KeyError and TypeError for one that is none."""
    status, error = result["status"], result.get("error") or {}
    if not isinstance(status, int):
        raise TypeError("no status")
    if not isinstance(error, dict):
        return status, "", shortened(str(error), _MOST_TEXT)
    reason, cause = str(error.get("reason", "")), error.get("caused_by") or {}
    if isinstance(cause, dict) and cause.get("reason"):
        reason = f"{reason}: {cause['reason']}"
    return status, str(error.get("type", "")), shortened(reason, _MOST_TEXT)


def _parsed(answer: httpx.Response, url: str) -> dict[str, Any]:
    try:
        found = orjson.loads(answer.content)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise RefusedError(
            answer.status_code, f"{url} is no search server: {shortened(' '.join(answer.text.split()), _MOST_TEXT)}"
        )
    return found


def _error_of(answer: httpx.Response) -> tuple[str, str]:
    """Return the type of the error that an answer tells, empty if it has none, and its text, cut."""
    if answer.is_success:
        return "", ""
    try:
        error = orjson.loads(answer.content)["error"]
        kind, text = ("", error) if isinstance(error, str) else _cause_of(error)
    except (orjson.JSONDecodeError, KeyError, TypeError):
        kind, text = "", " ".join(answer.text.split())
    return kind, shortened(text, _MOST_TEXT)


def _cause_of(error: dict[str, Any]) -> tuple[str, str]:
    """Return the type of an error and its text with that of its cause. If all shards failed, the error is that of one of them."""
    if error["type"] == _SEARCH_FAILED and error.get("root_cause"):
        error = {**error, **error["root_cause"][0]}
    text, cause = f"{error['type']}: {error['reason']}", error.get("caused_by")
    while isinstance(cause, dict):
        if (reason := str(cause.get("reason"))) not in text:
            text = f"{text}: {reason}"
        cause = cause.get("caused_by")
    return str(error["type"]), text


def _path(name: str) -> str:
    """Return a name as a step of a path. Raises DataError for one that would be another path."""
    if not name or name in (".", ".."):
        raise DataError(f"{name!r} cannot be the name of an index.")
    return quote(name, safe="")
