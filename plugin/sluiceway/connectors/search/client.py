"""Calls a search server over HTTP: the bulk API, indexes, and data streams."""

from __future__ import annotations

import gzip
import logging
import ssl
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import orjson

from sluiceway import __version__
from sluiceway.connectors.search.options import URL, Server, Tls
from sluiceway.errors import ConfigError, ConnectError, DataError
from sluiceway.java.keystores import private_identity, read_store, store_type, trusted_certificates

_TOO_MANY, _SERVER_ERROR = 429, 500
LOGIN = frozenset((401, 403))
"""The statuses of a login that is wrong, or that has no right."""

_FILTER = "filter_path=items.*.status,items.*.error.type,items.*.error.reason,items.*.error.caused_by"
_MOST_TEXT = 500

logging.getLogger("httpx").setLevel(logging.WARNING)  # it would log each request


def is_busy(status: int) -> bool:
    """Return whether a status is the server's own trouble, as while it is full, starts, or shuts down."""
    return status == _TOO_MANY or status >= _SERVER_ERROR


class UnreachableError(OSError):
    """No server answered, or the one that did is not ready."""


class RefusedError(ConnectError):
    """The server refused a request as a whole. ``status`` is that of HTTP."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status

    def __reduce__(self) -> tuple[Any, ...]:
        return RefusedError, (self.status, str(self))


class SearchClient:
    """A client of the servers of one cluster; it stays with one that answers. Not thread-safe. Runs on executors."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._urls = list(server.urls)
        timeout = httpx.Timeout(server.read_timeout, connect=server.connect_timeout)
        login = None if server.user is None or server.password is None else (server.user, server.password)
        secure = any(url.startswith("https:") for url in self._urls)
        self._http = httpx.Client(
            auth=login,
            timeout=timeout,
            proxy=server.proxy,
            trust_env=False,
            verify=tls_context(server.tls) if secure else False,
            headers={"User-Agent": f"sluiceway/{__version__}"},
        )

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
        items = _parsed(answer).get("items", [])
        return [_item(next(iter(each.values()))) for each in items]

    def mapping_of(self, index: str) -> dict[str, Any] | None:
        """Return the fields that an index, or the indexes of an alias, define; None if there is no such index."""
        try:
            found = self._json("GET", f"/{_path(index)}/_mapping")
        except RefusedError as error:
            if error.status == httpx.codes.NOT_FOUND:
                return None
            raise
        fields: dict[str, Any] = {}
        for each in found.values():
            fields.update(each.get("mappings", {}).get("properties", {}))
        return fields

    def create_index(self, index: str, mappings: dict[str, Any] | None) -> None:
        """Create an index; that it exists meanwhile is no error."""
        self._unless_there("PUT", f"/{_path(index)}", {} if mappings is None else {"mappings": mappings})

    def add_fields(self, index: str, mappings: dict[str, Any]) -> None:
        """Define fields of an index."""
        self._json("PUT", f"/{_path(index)}/_mapping", mappings)

    def has(self, path: str) -> bool:
        """Return whether something stands at a path, such as ``/_data_stream/logs-a-b``."""
        try:
            self._json("GET", path)
        except RefusedError as error:
            if error.status == httpx.codes.NOT_FOUND:
                return False
            raise
        return True

    def create_stream(self, name: str) -> None:
        """Create a data stream; that it exists meanwhile is no error. Its index template must exist."""
        self._unless_there("PUT", f"/_data_stream/{_path(name)}", None)

    def create_template(self, name: str, pattern: str) -> None:
        """Create the index template of data streams."""
        template = {"index_patterns": [pattern], "data_stream": {}, "priority": 100}
        fields = {"properties": {"@timestamp": {"type": "date"}}}
        self._json("PUT", f"/_index_template/{_path(name)}", {**template, "template": {"mappings": fields}})

    def _unless_there(self, method: str, path: str, body: dict[str, Any] | None) -> None:
        try:
            self._json(method, path, body)
        except RefusedError as error:
            if "resource_already_exists_exception" not in str(error) and "already exists" not in str(error):
                raise

    def _json(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        content = None if body is None else orjson.dumps(body)
        return _parsed(self._call(method, path, content=content, headers={"Content-Type": "application/json"}))

    def _call(self, method: str, path: str, **request: Any) -> httpx.Response:
        """Return the answer of a server that answers. Raises UnreachableError, and RefusedError."""
        problem = ""
        for _ in range(len(self._urls)):
            try:
                answer = self._http.request(method, self._urls[0] + path, **request)
            except httpx.TransportError as error:
                if _is_untrusted(error):
                    raise RefusedError(0, f"{self._urls[0]} cannot be trusted: {error}. {self._trust_advice}") from error
                problem = f"{type(error).__name__}: {error}"
                self._urls.append(self._urls.pop(0))
                continue
            if is_busy(answer.status_code):
                raise UnreachableError(f"{self._urls[0]} is not ready: HTTP {answer.status_code} {_text_of(answer)}")
            if answer.is_error or answer.is_redirect:
                raise RefusedError(answer.status_code, self._refusal(answer))
            return answer
        raise UnreachableError(f"No answer from {', '.join(sorted(self._urls))}: {problem}")

    @property
    def _trust_advice(self) -> str:
        location = f"{self._server.tls.prefix}ssl.truststore.location"
        return f"Name its authority's certificates with {location}, and a host in {URL} that its certificate has."

    def _refusal(self, answer: httpx.Response) -> str:
        text = f"{self._urls[0]} answered with HTTP {answer.status_code}: {_text_of(answer)}"
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            return f"{text}. Check connection.username and connection.password."
        if answer.status_code == httpx.codes.FORBIDDEN:
            return f"{text}. The user of connection.username needs the right to write to, and to create, the indexes."
        return text


def tls_context(tls: Tls) -> ssl.SSLContext:
    """Return the context of https connections; trust and key stores may be PEM, JKS, or PKCS12. Raises ConfigError."""
    keys = {name: value for name, value in tls.keys.items() if value}
    context = ssl.create_default_context()
    trusted = keys.get("ssl.truststore.location")
    if trusted:
        content = read_store(trusted, f"{tls.prefix}ssl.truststore.location")
        is_pem = store_type(content) == "PEM"
        pem = content.decode("ascii", "replace") if is_pem else trusted_certificates(content, keys.get(_TRUST), trusted)
        try:
            context = ssl.create_default_context(cadata=pem)
        except ssl.SSLError as error:
            raise ConfigError(f"{tls.prefix}ssl.truststore.location", trusted, f"No certificate can be read: {error}") from error
    if tls.trust_all:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    elif (tls.keys.get("ssl.endpoint.identification.algorithm", "https") or "").lower() != "https":
        context.check_hostname = False
    if location := keys.get("ssl.keystore.location"):
        _load_identity(context, location, keys, tls.prefix)
    return context


_TRUST, _KEYSTORE = "ssl.truststore.password", "ssl.keystore.password"  # names of keys


def _load_identity(context: ssl.SSLContext, location: str, keys: dict[str, str], prefix: str) -> None:
    """Load the client's key and certificate, from memory by a file that only this user can read."""
    content, password = read_store(location, f"{prefix}ssl.keystore.location"), keys.get("ssl.key.password")
    if store_type(content) == "PEM":
        pem = content
    else:
        identity = private_identity(content, keys.get(_KEYSTORE), password, location)
        pem, password = f"{identity.key}{identity.chain}".encode(), None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "identity.pem")
        file.touch(0o600)
        file.write_bytes(pem)
        try:
            context.load_cert_chain(file, password=password or "")
        except (ssl.SSLError, ValueError) as error:
            raise ConfigError(f"{prefix}ssl.keystore.location", location, f"The key cannot be used: {error}") from error


def _is_untrusted(error: BaseException) -> bool:
    """Return whether a connection failed because of the server's certificate, which waiting does not change."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__cause__ or cause.__context__
    return cause is not None


def _item(result: dict[str, Any]) -> tuple[int, str, str]:
    error = result.get("error") or {}
    if not isinstance(error, dict):
        return result["status"], "", str(error)
    reason, cause = str(error.get("reason", "")), error.get("caused_by") or {}
    if isinstance(cause, dict) and cause.get("reason"):
        reason = f"{reason}: {cause['reason']}"
    return result["status"], str(error.get("type", "")), reason[:_MOST_TEXT]


def _parsed(answer: httpx.Response) -> dict[str, Any]:
    try:
        found = orjson.loads(answer.content)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise RefusedError(answer.status_code, f"{answer.url.copy_with(userinfo=b'')} is no search server: {_text_of(answer)}")
    return found


def _text_of(answer: httpx.Response) -> str:
    """Return the reason that an answer tells, cut."""
    try:
        error = orjson.loads(answer.content)["error"]
        text = error if isinstance(error, str) else f"{error['type']}: {error['reason']}"
    except (orjson.JSONDecodeError, KeyError, TypeError):
        text = " ".join(answer.text.split())
    return text[:_MOST_TEXT]


def _path(name: str) -> str:
    """Return a name as a step of a path. Raises DataError for one that would be another path."""
    from urllib.parse import quote

    if not name or name in (".", ".."):
        raise DataError(f"{name!r} cannot be the name of an index.")
    return quote(name, safe="")
