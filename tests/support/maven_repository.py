"""Serves a Maven repository, and any other files, on this machine."""

from __future__ import annotations

import hashlib
import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

EMPTY_ZIP = b"PK\x05\x06" + bytes(18)

_HEAD = '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'


def module_files(
    artifact: str, dependency: str = "", *, version: str = "1.0", group: str = "org.example", jar: bytes = EMPTY_ZIP
) -> dict[str, bytes]:
    """Return the files of a module by their paths. ``dependency`` is ``artifact`` or ``group:artifact:version``."""
    base = f"/{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}"
    names = _coordinates(group, artifact, version)
    needed = dependency.split(":") if ":" in dependency else [group, dependency, "1.0"]
    dependencies = f"<dependencies><dependency>{_coordinates(*needed)}</dependency></dependencies>" if dependency else ""
    return {f"{base}.pom": f"{_HEAD}{names}{dependencies}</project>".encode(), f"{base}.jar": jar}


def metadata(artifact: str, *versions: str, group: str = "org.example") -> dict[str, bytes]:
    """Return the file that lists the versions of a module."""
    listed = "".join(f"<version>{each}</version>" for each in versions)
    text = f"<versioning><release>{versions[-1]}</release><versions>{listed}</versions></versioning>"
    names = f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
    return {f"/{group.replace('.', '/')}/{artifact}/maven-metadata.xml": f"<metadata>{names}{text}</metadata>".encode()}


def with_checksums(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return files with their SHA-1 beside them."""
    return files | {f"{path}.sha1": hashlib.sha1(content).hexdigest().encode() for path, content in files.items()}  # noqa: S324


def _coordinates(group: str, artifact: str, version: str) -> str:
    return f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"


class Repository(ThreadingHTTPServer):
    """Files by their paths. It resets the connection of the first requests for a path."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.files = dict(files)
        self.resets: Counter[str] = Counter()
        """Paths, and how many requests for each are still reset."""
        self.requests: list[str] = []
        """The paths of all requests for files that are there."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def reset(self, suffix: str, times: int) -> None:
        self.resets.update({path: times for path in self.files if path.endswith(suffix)})


class _Answers(BaseHTTPRequestHandler):
    server: Repository

    def do_GET(self) -> None:
        if self.server.resets[self.path] > 0:
            self.server.resets[self.path] -= 1
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            return
        body = self.server.files.get(self.path.partition("?")[0])
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        if body is not None:
            self.server.requests.append(self.path)
        if body and self.command == "GET":
            self.wfile.write(body)

    def do_HEAD(self) -> None:
        self.do_GET()

    def finish(self) -> None:
        if self.connection.fileno() >= 0:
            super().finish()

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def serving(files: dict[str, bytes]) -> Iterator[Repository]:
    """Serve files until the end of the block."""
    with Repository(files) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
