"""Serves a test schema registry with the API of Apicurio Registry 2, as far as its converters use it."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from support.schema_registry import Registry

_CREATE = re.compile(r"/apis/registry/v2/groups/[^/]+/artifacts(\?.*)?")
_GET = re.compile(r"/apis/registry/v2/ids/(?:globalIds|contentIds)/(\d+)(/references)?(\?.*)?")


@contextmanager
def apicurio_api(registry: Registry) -> Iterator[str]:
    """Serve the registry and return the URL for ``apicurio.registry.url``. An artifact is the subject of its name."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            schema = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            if not _CREATE.fullmatch(self.path):
                return self._answer(404, {"message": f"POST {self.path} is not served", "error_code": 404})
            artifact = self.headers["X-Registry-ArtifactId"]
            number = registry.register(artifact, schema)
            meta = {"id": artifact, "groupId": "default", "type": "AVRO", "version": "1", "globalId": number, "contentId": number}
            return self._answer(200, {**meta, "state": "ENABLED", "references": []})

        def do_GET(self) -> None:
            found = _GET.fullmatch(self.path)
            if found is None:
                return self._answer(404, {"message": f"GET {self.path} is not served", "error_code": 404})
            shown = registry.handle("GET", f"/schemas/ids/{found[1]}", {})
            return self._answer(200, [] if found[2] else json.loads(shown["schema"]))

        def _answer(self, status: int, body: object) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/apis/registry/v2"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
