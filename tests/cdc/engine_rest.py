"""A REST API of Kafka Connect in front of tasks in threads, so that scenarios run without Spark.

It has what the conformance kit calls: create, config, stop, resume, restart, delete, status, and offsets. Restarts and offsets
are in memory. Run as a program, it serves until its input ends: ``python -m cdc.engine_rest BOOTSTRAP PORT``.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from sluiceway.discovery import plugin_named
from sluiceway.errors import InvalidConfigError
from sluiceway.storage.model import State
from support.engine import Offsets, RunningTask

_JSON = "org.apache.kafka.connect.json.JsonConverter"


class Connectors:
    """The connectors of one server."""

    def __init__(self, bootstrap: str) -> None:
        self._worker = {
            "bootstrap.servers": bootstrap,
            "key.converter": _JSON,
            "value.converter": _JSON,
            "offset.flush.interval.ms": "1000",
            "group.id": "cdc-engine",
            "config.storage.topic": "cdc-engine-configs",
            "offset.storage.topic": "cdc-engine-offsets",
            "status.storage.topic": "cdc-engine-status",
        }
        self._configs: dict[str, dict[str, str]] = {}
        self._offsets: dict[str, Offsets] = {}
        self._tasks: dict[str, RunningTask] = {}

    def create(self, name: str, config: Mapping[str, str]) -> tuple[int, Any]:
        """Validate and start a connector."""
        connector: Any = plugin_named("sluiceway.connectors", config["connector.class"])
        errors = [error for value in connector.validate(config).values() for error in value.errors]
        if errors:
            return 400, {"error_code": 400, "message": str(InvalidConfigError(errors))}
        self._configs[name] = {**config, "name": name, "task.class": connector.java_task_class}
        self._offsets.setdefault(name, Offsets())
        self.start(name)
        return 201, {"name": name}

    def start(self, name: str) -> None:
        if name not in self._tasks:
            self._tasks[name] = RunningTask(self._configs[name], self._worker, offsets=self._offsets[name]).__enter__()

    def stop(self, name: str) -> None:
        task = self._tasks.pop(name, None)
        if task is not None:
            task.__exit__()

    def delete(self, name: str) -> None:
        self.stop(name)
        self._configs.pop(name, None)

    def put_config(self, name: str, config: Mapping[str, str]) -> tuple[int, Any]:
        self.stop(name)
        return self.create(name, config)

    def status(self, name: str) -> Any:
        task = self._tasks.get(name)
        if task is None:
            return {"connector": {"state": "STOPPED"}, "tasks": []}
        states = task.reports.states[-1:] or [State.UNASSIGNED]
        return {
            "connector": {"state": "RUNNING"},
            "tasks": [{"id": 0, "state": states[0].value, "trace": task.reports.trace or ""}],
        }

    def offsets(self, name: str) -> Any:
        found = self._offsets[name].all(name)
        return {"offsets": [{"partition": partition, "offset": offset} for partition, offset in found]}

    def reset_offsets(self, name: str) -> None:
        self._offsets[name] = Offsets()

    def exists(self, name: str) -> bool:
        return name in self._configs


class _Handler(BaseHTTPRequestHandler):
    connectors: Connectors

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        document = json.loads(body) if body else {}
        status, answer = self._handle(self.path.partition("?")[0].strip("/").split("/"), document)
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 (named by the base class)

    def _handle(self, parts: list[str], document: Any) -> tuple[int, Any]:
        all_, method = self.connectors, self.command
        if len(parts) == 1:
            return all_.create(document["name"], document["config"]) if method == "POST" else (200, [])
        name, action = parts[1], "/".join(parts[2:])
        if not all_.exists(name):
            return 404, {"error_code": 404, "message": f"Connector {name} not found"}
        if (method, action) == ("PUT", "config"):
            return all_.put_config(name, document)
        if (method, action) == ("GET", "status"):
            return 200, all_.status(name)
        if (method, action) == ("GET", "offsets"):
            return 200, all_.offsets(name)
        if action == "stop":
            all_.stop(name)
        elif action == "resume":
            all_.start(name)
        elif action == "restart":
            all_.stop(name)
            all_.start(name)
        elif action == "offsets":
            all_.reset_offsets(name)
        elif method == "DELETE":
            all_.delete(name)
        return 200, {}

    def log_message(self, *_: object) -> None: ...


def serve(bootstrap: str, port: int = 0) -> ThreadingHTTPServer:
    """Return a server whose thread runs; ``server_address`` tells its port."""
    handler = type("Handler", (_Handler,), {"connectors": Connectors(bootstrap)})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


if __name__ == "__main__":
    running = serve(sys.argv[1], int(sys.argv[2]))
    sys.stdin.read()
    running.shutdown()
