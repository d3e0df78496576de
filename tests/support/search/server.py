"""Starts, stops and kills one node of OpenSearch, whose bulk API is Elasticsearch's, with its data in a temporary folder."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from sluiceway.java_runtime import find_java
from sluiceway.stack import maven
from sluiceway.stack.ports import free_port
from sluiceway.stack.process import BackgroundProcess
from support.database_server import LocalServer
from support.eventually import LIMIT, eventually

COORDINATES = (
    "org.opensearch:opensearch:2.19.6",
    "org.opensearch.plugin:transport-netty4-client:2.19.6",
    "org.apache.logging.log4j:log4j-core:2.25.4",
)
_HOST = "127.0.0.1"
_SETTINGS = {
    "cluster.name": "test",
    "node.name": "node",
    "network.host": _HOST,
    "discovery.type": "single-node",
    "http.type": "netty4",
    "transport.type": "netty4",
    "cluster.routing.allocation.disk.threshold_enabled": "false",
    "node.store.allow_mmap": "false",
}
_PROGRAM = Path(__file__).with_name("SearchNode.java")


class SearchServer(LocalServer):
    """A node, with settings besides those that tests need."""

    name = "search"

    def __init__(self, port: int | None = None, /, **settings: str) -> None:
        super().__init__()
        self.url = f"http://{_HOST}:{(port := port or free_port(_HOST))}"
        pairs = {**_SETTINGS, "http.port": str(port), "transport.port": str(free_port(_HOST)), **settings}
        options = ["-Xms512m", "-Xmx512m", "-XX:+UseSerialGC", "--add-opens=java.base/java.nio=ALL-UNNAMED"]
        (self.folder / "config").mkdir()
        jars = maven.classpath(maven.resolve(COORDINATES, title="OpenSearch"))
        command: list[str | Path] = [find_java().executable, *options, "-cp", jars, _PROGRAM, self.folder]
        command += [f"{name}={value}" for name, value in pairs.items()]
        self._process = BackgroundProcess(self.name, command, self.folder)

    def start(self) -> None:
        self._process.start()
        self._process.wait_until(self._answers, LIMIT)

    def kill(self) -> None:
        """End the node at once; ``start`` starts it again with its data."""
        pid = self._process.status().pid
        assert pid is not None, "OpenSearch does not run"
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not self._process.is_running(), what="the end of OpenSearch")

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Return the answer to a request, also to one that the server refuses."""
        return self.send(path, None if body is None else json.dumps(body).encode(), method)

    def send(self, path: str, content: bytes | None, method: str = "POST") -> Any:
        """Return the answer to a request with this body."""
        request = Request(self.url + path, content, {"Content-Type": "application/json"}, method=method)  # noqa: S310 (http)
        try:
            with urlopen(request, timeout=LIMIT) as answer:  # noqa: S310
                return json.load(answer)
        except HTTPError as error:
            return json.load(error)

    def documents(self, index: str) -> dict[str, Any]:
        """Return all documents of an index by their ids."""
        self.call("POST", f"/{index}/_refresh")
        found: dict[str, Any] = {}
        after: list[str] = []
        while True:
            body: dict[str, Any] = {"size": 10_000, "sort": [{"_id": "asc"}]}
            hits = self.call("POST", f"/{index}/_search", {**body, "search_after": after} if after else body)["hits"]["hits"]
            if not hits:
                return found
            found.update({each["_id"]: each["_source"] for each in hits})
            after = hits[-1]["sort"]

    def _answers(self) -> bool:
        try:
            return bool(self.call("GET", "/_cluster/health?wait_for_status=yellow&timeout=1s")["status"] in ("yellow", "green"))
        except (OSError, ValueError, KeyError):
            return False
