"""A small service with JSON over HTTP, on a SQLite database: the system that the examples and the tests connect.

Replace it by your own system. It runs with Python alone: ``python examples/service.py``.

==========================================  =====================================================================
``GET /``                                   ``{"collections": ["customers", "orders"]}``
``GET /orders?after=0&limit=100``           ``[{"number": 1, "id": "o-1", "document": {...}}]``, the newest change of
                                            each document, in the order of the changes; None for a deleted one
``POST /orders``                            takes ``[{"id": "o-1", "document": {...}}]``, with null to delete, and
                                            answers for each: ``[{"status": 200}]``
==========================================  =====================================================================
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

SAMPLES: dict[str, dict[str, dict[str, Any]]] = {
    "customers": {"c-1": {"name": "Ann"}, "c-2": {"name": "Bob"}},
    "orders": {
        "o-1": {"customer": "c-1", "amount": 10},
        "o-2": {"customer": "c-2", "amount": 20},
        "o-3": {"customer": "c-1", "amount": 30},
    },
}
_TABLE = (
    "create table if not exists changes (number integer primary key autoincrement, "
    "collection text, id text, document text, unique (collection, id))"
)


class Service(ThreadingHTTPServer):
    """Serves a database until ``shutdown``. Any thread may call its methods.

    Args:
        database: the SQLite file; by default a database in memory.
        port: the port on this machine; 0 is a free one.
        token: what a client must send, if anything.
    """

    daemon_threads = True

    def __init__(self, database: Path | str = ":memory:", *, port: int = 0, token: str | None = None) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.token = token
        self.busy = 0  # so many requests are answered with 429
        self._lock = threading.Lock()
        self._database = sqlite3.connect(database, isolation_level=None, check_same_thread=False)
        self._database.execute(_TABLE)

    def add_samples(self) -> None:
        """Write the sample documents unless the database has documents."""
        if not self.collections():
            for collection, documents in SAMPLES.items():
                for name, document in documents.items():
                    self.put(collection, name, document)

    def collections(self) -> list[str]:
        with self._lock:
            rows = self._database.execute("select distinct collection from changes order by collection").fetchall()
        return [name for (name,) in rows]

    def changes(self, collection: str, after: int = 0, limit: int = 1000) -> list[dict[str, Any]]:
        """Return the changes of a collection with a number above ``after``."""
        query = "select number, id, document from changes where collection = ? and number > ? order by number limit ?"
        with self._lock:
            rows = self._database.execute(query, (collection, after, limit)).fetchall()
        return [{"number": number, "id": name, "document": json.loads(document)} for number, name, document in rows]

    def documents(self, collection: str) -> dict[str, Any]:
        """Return the documents of a collection by their ids."""
        found = self.changes(collection, limit=-1)
        return {each["id"]: each["document"] for each in found if each["document"] is not None}

    def put(self, collection: str, name: str, document: object) -> dict[str, Any]:
        """Write a document, or delete it with None, and return the outcome."""
        if not isinstance(document, (dict, type(None))):
            return {"status": 400, "error": "a document must be an object"}
        amount = (document or {}).get("amount", 0)
        if isinstance(amount, (int, float)) and amount < 0:
            return {"status": 400, "error": "the amount must not be negative"}
        row = (collection, name, json.dumps(document))
        with self._lock:
            self._database.execute("insert or replace into changes (collection, id, document) values (?, ?, ?)", row)
        return {"status": 200}

    def server_close(self) -> None:
        super().server_close()
        with self._lock:
            self._database.close()


class _Handler(BaseHTTPRequestHandler):
    server: Service
    protocol_version = "HTTP/1.1"  # keeps connections open

    def do_GET(self) -> None:
        if not self._admitted():
            return
        parts = urlsplit(self.path)
        collection, query = unquote(parts.path[1:]), parse_qs(parts.query)
        if not collection:
            self._answer(200, {"collections": self.server.collections()})
            return
        after, limit = int(query.get("after", ["0"])[0]), int(query.get("limit", ["1000"])[0])
        self._answer(200, self.server.changes(collection, after, limit))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not self._admitted():
            return
        collection = unquote(urlsplit(self.path).path[1:])
        outcomes = [self.server.put(collection, each["id"], each["document"]) for each in json.loads(body)]
        self._answer(200, outcomes)

    def _admitted(self) -> bool:
        if self.server.token and self.headers.get("Authorization") != f"Bearer {self.server.token}":
            self._answer(401, {"error": "a token is needed"})
            return False
        if self.server.busy > 0:
            self.server.busy -= 1
            self._answer(429, {"error": "busy"})
            return False
        return True

    def _answer(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve sample orders as JSON, until Ctrl-C.")
    parser.add_argument("--port", type=int, default=8095, help="port on this machine (default: 8095)")
    default = Path(__file__).with_name("service.db")
    parser.add_argument("--database", type=Path, default=default, help="SQLite file (default: beside this file)")
    parser.add_argument("--token", help="what clients must send (default: nothing)")
    options = parser.parse_args()
    service = Service(options.database, port=options.port, token=options.token)
    service.add_samples()
    print(f"{service.url} has the collections {', '.join(service.collections())}", flush=True)
    with suppress(KeyboardInterrupt):
        service.serve_forever()


if __name__ == "__main__":
    main()
