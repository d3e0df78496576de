"""A REST API for tests of DltSource: pages, cursors, events by time, nested data, and answers 429."""

from __future__ import annotations

import json
import threading
import time
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
PAGE = 100


def item(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "name": f"item-{number}",
        "updated_at": (START + timedelta(seconds=number // 3)).isoformat().replace("+00:00", "Z"),
        "address": {"city": f"city-{number % 10}"},
        "lines": [{"sku": f"s{number}-{line}"} for line in range(number % 3)],
    }


class RestApi:
    """The API with a number of rows. Every so many requests, one is answered by 429 and the seconds to wait."""

    def __init__(self, rows: int, *, limited_every: int = 0, wait: int = 1, delay: float = 0.0) -> None:
        self.rows, self.limited_every, self.wait, self.delay = rows, limited_every, wait, delay
        self.requests = self.limited = 0
        self.headers: list[dict[str, str]] = []
        self._lock = threading.Lock()
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None: ...

            def do_GET(self) -> None:
                api.answer(self)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        url = urlsplit(request.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        with self._lock:
            self.requests += 1
            limited = bool(self.limited_every) and self.requests % self.limited_every == 0
            self.limited += limited
            self.headers.append(dict(request.headers))
        time.sleep(self.delay)
        status, body = (429, {"error": "slow down"}) if limited else (200, self._body(url.path, query))
        data = json.dumps(body).encode()
        request.send_response(status)
        for name, value in (("Content-Type", "application/json"), ("Content-Length", str(len(data)))):
            request.send_header(name, value)
        if limited:
            request.send_header("Retry-After", str(self.wait))
        request.end_headers()
        request.wfile.write(data)

    def _body(self, path: str, query: dict[str, str]) -> dict[str, Any]:
        if path == "/items":
            number = int(query.get("page", 1))
            return {"data": self._items((number - 1) * PAGE), "total_pages": -(-self.rows // PAGE)}
        if path == "/cursor":
            first = int(query.get("cursor") or 0)
            return {"data": self._items(first), "next": str(first + PAGE) if first + PAGE < self.rows else None}
        if path == "/events":
            since = datetime.fromisoformat(query.get("since", START.isoformat()).replace("Z", "+00:00").replace(" ", "+"))
            low = max(0, int((since - START).total_seconds()) * 3)
            return {"data": self._items(low + int(query.get("offset", 0)))}
        # As the package dlt-community-sources reads Dialpad.
        first, since_ms = int(query.get("cursor") or 0), int(query.get("started_after", 0))
        if path.endswith("/call"):
            calls = [self._call(number) for number in range(self.rows - 1 - first, max(self.rows - 1 - first - PAGE, -1), -1)]
            rows = [each for each in calls if int(each["date_started"]) >= since_ms]
        else:
            rows = self._items(first) if path.endswith("/users") else []
        return {"items": rows, "cursor": str(first + PAGE) if rows and first + PAGE < self.rows else None}

    def _items(self, first: int) -> list[dict[str, Any]]:
        return [item(number) for number in range(first, min(first + PAGE, self.rows))]

    @staticmethod
    def _call(number: int) -> dict[str, Any]:
        return {"call_id": number, "date_started": str(int((START + timedelta(seconds=number)).timestamp() * 1000))}
