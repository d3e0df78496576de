"""A Schema Registry with HTTP API for tests, in memory.

Supports subjects, versions, global ids, references, lookup, deletion, compatibility of Avro schemas (BACKWARD, FORWARD, FULL,
NONE), basic authentication, and Confluent's error codes. ``requests`` lists the requests; ``fail`` makes the next ones fail.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

LEVELS = ("NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")


class RegistryError(Exception):
    """A response other than 200."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


@dataclass(frozen=True)
class Entry:
    """A registered schema; equal ones share an id."""

    kind: str
    canonical: str
    text: str = field(compare=False)
    references: tuple[tuple[str, str, int], ...] = ()

    def body(self) -> dict[str, Any]:
        """Return the API's representation, which omits the type AVRO."""
        shown: dict[str, Any] = {"schema": self.text}
        if self.kind != "AVRO":
            shown["schemaType"] = self.kind
        if self.references:
            shown["references"] = [dict(zip(("name", "subject", "version"), part, strict=True)) for part in self.references]
        return shown


@dataclass
class Registry:
    """The registry's contents and behavior, without HTTP."""

    user_info: str | None = None
    ids: dict[Entry, int] = field(default_factory=dict)
    subjects: dict[str, dict[int, Entry]] = field(default_factory=dict)
    deleted: dict[str, dict[int, Entry]] = field(default_factory=dict)
    levels: dict[str, str] = field(default_factory=lambda: {"": "BACKWARD"})
    requests: list[tuple[str, str]] = field(default_factory=list)
    failures: list[tuple[int, int]] = field(default_factory=list)
    url: str = ""

    def fail(self, status: int, times: int = 1, code: int | None = None) -> None:
        """Respond to the next requests with an error."""
        self.failures += [(status, code or status)] * times

    def register(self, subject: str, schema: str | dict[str, Any], kind: str = "AVRO") -> int:
        """Register a schema as a client would and return its id."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        return int(self.handle("POST", f"/subjects/{subject}/versions", {"schema": text, "schemaType": kind})["id"])

    def handle(self, method: str, path: str, body: dict[str, Any]) -> Any:
        """Handle one request; raises RegistryError."""
        parts = [unquote(part) for part in path.strip("/").split("/")]
        match (method, *parts):
            case ("GET", "subjects"):
                return sorted(self.subjects)
            case ("GET", "subjects", subject, "versions"):
                return list(self._versions(subject))
            case ("GET", "subjects", subject, "versions", version):
                return self._shown(subject, self._number(subject, version))
            case ("POST", "subjects", subject, "versions"):
                return self._register(subject, self._entry(body))
            case ("POST", "subjects", subject):
                return self._look_up(subject, self._entry(body))
            case ("DELETE", "subjects", subject):
                versions = self._versions(subject)
                self.deleted.setdefault(subject, {}).update(self.subjects.pop(subject))
                return list(versions)
            case ("GET", "schemas", "ids", number):
                return self._by_id(int(number)).body()
            case ("GET", "schemas", "types"):
                return ["AVRO", "JSON", "PROTOBUF"]
            case ("POST", "compatibility", "subjects", subject, "versions", version):
                old = self._versions(subject)[self._number(subject, version)]
                return {"is_compatible": compatible(self._entry(body), old, self._level(subject))}
            case ("GET", "config", *rest):
                return {"compatibilityLevel": self._level(rest[0] if rest else "")}
            case ("PUT", "config", *rest):
                return self._set_level(rest[0] if rest else "", str(body.get("compatibility")))
        raise RegistryError(404, 404, "HTTP 404 Not Found")

    def _versions(self, subject: str) -> dict[int, Entry]:
        if subject not in self.subjects:
            raise RegistryError(404, 40401, f"Subject '{subject}' not found.")
        return self.subjects[subject]

    def _number(self, subject: str, version: str) -> int:
        versions = self._versions(subject)
        if version in ("latest", "-1"):
            return max(versions)
        if not version.isdecimal() or int(version) < 1:
            raise RegistryError(422, 42202, f"The specified version '{version}' is not a valid version id.")
        if int(version) not in versions:
            raise RegistryError(404, 40402, f"Version {version} not found.")
        return int(version)

    def _shown(self, subject: str, version: int) -> dict[str, Any]:
        entry = self.subjects[subject][version]
        return {"subject": subject, "version": version, "id": self.ids[entry], **entry.body()}

    def _entry(self, body: dict[str, Any]) -> Entry:
        kind, text = body.get("schemaType") or "AVRO", str(body.get("schema", ""))
        references = tuple((part["name"], part["subject"], part["version"]) for part in body.get("references") or ())
        for _name, subject, version in references:
            self._number(subject, str(version))
        try:
            return Entry(kind, canonical(kind, text, bool(references)), text, references)
        except Exception as error:
            raise RegistryError(422, 42201, f"Invalid schema: {type(error).__name__}") from error

    def _register(self, subject: str, entry: Entry) -> dict[str, Any]:
        versions = self.subjects.setdefault(subject, {})
        known = next((version for version, old in versions.items() if old == entry), None)
        if known is None:
            latest = versions.get(max(versions, default=0))
            if latest is not None and not compatible(entry, latest, self._level(subject)):
                raise RegistryError(
                    409, 409, f'Schema being registered is incompatible with an earlier schema for subject "{subject}"'
                )
            known = max([*versions, *self.deleted.get(subject, {})], default=0) + 1
            versions[known] = entry
            self.ids.setdefault(entry, len(self.ids) + 1)
        return self._shown(subject, known)

    def _look_up(self, subject: str, entry: Entry) -> dict[str, Any]:
        for version, old in self._versions(subject).items():
            if old == entry:
                return self._shown(subject, version)
        raise RegistryError(404, 40403, "Schema not found")

    def _by_id(self, number: int) -> Entry:
        for entry, known in self.ids.items():
            if known == number:
                return entry
        raise RegistryError(404, 40403, f"Schema {number} not found")

    def _level(self, subject: str) -> str:
        return self.levels.get(subject, self.levels[""])

    def _set_level(self, subject: str, level: str) -> dict[str, Any]:
        if level not in LEVELS:
            raise RegistryError(422, 42203, f"Invalid compatibility level. Valid values are {', '.join(LEVELS)}")
        self.levels[subject] = level
        return {"compatibility": level}


def canonical(kind: str, text: str, has_references: bool) -> str:
    """Return a canonical form, in which equal schemas are equal; raises for an invalid schema."""
    if kind == "PROTOBUF":
        from google.protobuf.descriptor_pb2 import FileDescriptorProto

        file = FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
        file.name = ""
        return file.SerializeToString().hex()
    if kind not in ("AVRO", "JSON"):
        raise ValueError(kind)
    document = json.loads(text)
    if kind == "AVRO" and not has_references:
        import fastavro

        fastavro.parse_schema(document)
    if isinstance(document, dict) and document.keys() == {"type"} and kind == "AVRO":
        document = document["type"]
    return json.dumps(document, sort_keys=True)


def compatible(new: Entry, old: Entry, level: str) -> bool:
    """Return True if the new schema is compatible with the old one; types other than Avro always are."""
    if new.kind != old.kind:
        return False
    if level == "NONE" or new.kind != "AVRO" or new.references or old.references:
        return True
    pair = json.loads(new.text), json.loads(old.text)
    backward = can_read(*pair)
    forward = can_read(*reversed(pair))
    if level.startswith("BACKWARD"):
        return backward
    return forward if level.startswith("FORWARD") else backward and forward


_PROMOTIONS = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "string": ("bytes",),
    "bytes": ("string",),
}


def can_read(reader: Any, writer: Any) -> bool:
    """Return True if Avro's schema resolution succeeds, for schemas without named references."""
    if isinstance(writer, list):
        return all(can_read(reader, branch) for branch in writer)
    if isinstance(reader, list):
        return any(can_read(branch, writer) for branch in reader)
    wanted, given = _kind(reader), _kind(writer)
    if wanted != given:
        return given in _PROMOTIONS.get(wanted, ())
    if wanted == "record":
        fields = {part["name"]: part["type"] for part in writer["fields"]}
        return all(
            can_read(part["type"], fields[part["name"]]) if part["name"] in fields else "default" in part
            for part in reader["fields"]
        )
    if wanted in ("array", "map"):
        inner = "items" if wanted == "array" else "values"
        return can_read(reader[inner], writer[inner])
    return wanted != "enum" or set(writer["symbols"]) <= set(reader["symbols"]) or "default" in reader


def _kind(schema: Any) -> str:
    return str(schema["type"] if isinstance(schema, dict) else schema)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    registry: Registry
    lock: threading.Lock

    def _answer(self) -> None:
        path = urlsplit(self.path)
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with self.lock:
            self.registry.requests.append((self.command, path.path))
            try:
                self._check()
                body = json.loads(raw) if raw else {}
                status, answer = 200, self.registry.handle(self.command, path.path, body)
            except RegistryError as error:
                status, answer = error.status, {"error_code": error.code, "message": str(error)}
        if parse_qs(path.query).get("format") == ["serialized"] and status == 200 and "schema" in answer:
            assert answer.get("schemaType") == "PROTOBUF", "only Protobuf has a serialized form"
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _check(self) -> None:
        if self.registry.failures:
            status, code = self.registry.failures.pop(0)
            raise RegistryError(status, code, "told to fail")
        if self.registry.user_info is not None:
            expected = "Basic " + base64.b64encode(self.registry.user_info.encode()).decode()
            if self.headers.get("Authorization") != expected:
                raise RegistryError(401, 401, "Unauthorized")

    do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 (http.server's names)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (http.server's name)
        pass


@contextmanager
def schema_registry(user_info: str | None = None, pem: Path | None = None) -> Iterator[Registry]:
    """Run a registry on a free port of this machine, with TLS if ``pem`` (certificate and key) is given."""
    registry = Registry(user_info=user_info)
    handler = type("Handler", (_Handler,), {"registry": registry, "lock": threading.Lock()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    registry.url = f"http{'s' if pem else ''}://127.0.0.1:{server.server_address[1]}"
    if pem is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
