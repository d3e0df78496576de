"""Iceberg's REST catalog server, the one of its compatibility kit, with its tables in a SQLite database."""

from __future__ import annotations

import http.client
import http.server
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pyspark

from sluiceway.java_runtime import find_java
from sluiceway.stack import maven
from sluiceway.stack.ports import free_port
from support.eventually import eventually

if TYPE_CHECKING:
    from typing_extensions import Self

ICEBERG_VERSION = "1.10.0"
_SERVER = (
    f"org.apache.iceberg:iceberg-open-api:{ICEBERG_VERSION}:test-fixtures",
    f"org.apache.iceberg:iceberg-core:{ICEBERG_VERSION}",
    "org.eclipse.jetty:jetty-servlet:11.0.25",
    "org.xerial:sqlite-jdbc:3.50.3.0",
)
_SERVLET = (f"org.apache.iceberg:iceberg-core:{ICEBERG_VERSION}:tests",)  # Ivy takes one file of a module only


class RestCatalog:
    """The server, whose catalog and tables are in a folder. A context manager: leaving it stops the server."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.uri = f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        environment = {
            "CATALOG_REST_PORT": str(self._port),
            "CATALOG_URI": f"jdbc:sqlite:{self._folder}/rest-catalog.db",
            "CATALOG_CLIENTS": "1",  # connections: SQLite refuses a commit beside another
            "CATALOG_WAREHOUSE": self._folder.as_uri(),
        }
        command = [str(find_java().executable), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", _classpath()]
        with (self._folder / "rest-catalog.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "org.apache.iceberg.rest.RESTCatalogServer"], env={**os.environ, **environment}, stdout=log, stderr=log
            )
        eventually(self._answers, what="the REST catalog")

    def stop(self) -> None:
        """Kill the server."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _answers(self) -> bool:
        try:
            with urlopen(f"{self.uri}/v1/config", timeout=5):  # noqa: S310 (our own server)
                return True
        except OSError:
            return False


def _classpath() -> str:
    hadoop = Path(pyspark.__file__).parent / "jars"
    jars = [*maven.resolve(_SERVLET)[:1], *maven.resolve(_SERVER, title="Iceberg's REST catalog server")]
    return maven.classpath([*jars, *hadoop.glob("hadoop-client-*.jar"), *hadoop.glob("commons-logging-*.jar")])


@contextmanager
def only_with_token(uri: str, token: str) -> Iterator[str]:
    """Serve a catalog, which has no login of its own, under another URI to clients with a bearer token."""
    host = uri.removeprefix("http://")

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.headers.get("Authorization") != f"Bearer {token}":
                body = b'{"error": {"message": "wrong token", "type": "NotAuthorizedException", "code": 401}}'
                return self._answer(401, body)
            size = int(self.headers.get("Content-Length") or 0)
            upstream = http.client.HTTPConnection(host, timeout=30)
            upstream.request(self.command, self.path, self.rfile.read(size), {"Content-Type": "application/json"})
            found = upstream.getresponse()
            self._answer(found.status, found.read())
            return upstream.close()

        do_POST = do_DELETE = do_HEAD = do_GET  # noqa: N815 (the base class's names)

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
