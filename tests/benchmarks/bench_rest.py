"""Measures the REST API with many connectors on a real broker: median and 95th percentile of each kind of request.

Three servers, each a process of its own: ``sluiceway rest``, Airflow's API server with the plugin, and a real Kafka Connect 4.3.0
worker. The connectors are written to the config and status topics directly; 100 of them run (their heartbeats are written every
10 s), the others are paused. Kafka Connect really starts them, which takes minutes and gigabytes with 1,000.

Run: python tests/benchmarks/bench_rest.py [--connectors 1 10 100 1000] [--servers rest airflow connect] [--requests 50]

Limits, for ``rest``: a median of 5 ms for each GET but that of offsets (which asks the broker), 300 MB.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sluiceway.config.worker import WorkerConfig
from sluiceway.stack.broker import EmbeddedBroker
from sluiceway.stack.ports import free_port
from support.eventually import eventually
from support.many_connectors import ManyConnectors, worker_properties
from support.peer import FILE_SOURCE, PeerDistributed, rest_answers, write_properties
from support.toggles import table

LIMIT_MS, LIMIT_MB = 5.0, 300.0
GZIP = {"accept-encoding": "gzip"}

AIRFLOW = """
import sys
from support.airflow_home import isolate_airflow
isolate_airflow()
import uvicorn
from airflow.api_fastapi.app import create_app, get_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.utils.db import initdb
initdb()
app = create_app()
print("TOKEN", get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="admin", role="admin")), flush=True)
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
"""


class Request(NamedTuple):
    """A request to measure; ``limited`` if the limit applies."""

    method: str
    path: str
    body: Any = None
    limited: bool = True
    headers: Mapping[str, str] = {}


def requests(config: Mapping[str, str], last: str) -> dict[str, Request]:
    """Return the requests by name. ``config`` is that of ``last``, the connector that is read and written."""
    one = f"/connectors/{last}"
    return {
        "root": Request("GET", "/"),
        "list": Request("GET", "/connectors"),
        "list, status": Request("GET", "/connectors?expand=status"),
        "list, info": Request("GET", "/connectors?expand=info"),
        "list, info and status": Request("GET", "/connectors?expand=status&expand=info"),
        "the same, gzip": Request("GET", "/connectors?expand=status&expand=info", headers=GZIP),
        "one": Request("GET", one),
        "its config": Request("GET", f"{one}/config"),
        "its status": Request("GET", f"{one}/status"),
        "its tasks": Request("GET", f"{one}/tasks"),
        "a task's status": Request("GET", f"{one}/tasks/0/status"),
        "its topics": Request("GET", f"{one}/topics"),
        "its offsets": Request("GET", f"{one}/offsets", limited=False),
        "plugins": Request("GET", "/connector-plugins?connectorsOnly=false"),
        "a plugin's options": Request("GET", "/connector-plugins/FileStreamSource/config"),
        "loggers": Request("GET", "/admin/loggers"),
        "validate": Request("PUT", f"/connector-plugins/{FILE_SOURCE}/config/validate", VALID, limited=False),
        "put": Request("PUT", f"{one}/config", dict(config), limited=False),
        "patch": Request("PATCH", f"{one}/config", {"some.further.option.1": "y"}, limited=False),
    }


VALID = {"name": "new", "connector.class": FILE_SOURCE, "topic": "t", "file": "/tmp/none"}  # noqa: S108 (never read)
PAGE = {
    "page, list": Request("GET", "/ui/api/overview"),
    "page, list, gzip": Request("GET", "/ui/api/overview", headers=GZIP),
    "page, flow": Request("GET", "/ui/api/flow"),
    "page, one": Request("GET", "/ui/api/connectors/c0"),
    "page, last hour of 25": Request("GET", "/ui/api/history?" + "&".join(f"name=c{each}" for each in range(25))),
}


@dataclass(frozen=True)
class Server:
    """A server that is ready, the process that it is, and the headers that it requires."""

    address: str
    pid: int
    headers: Mapping[str, str]


@contextmanager
def _process(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, **environment})
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def rest_server(properties: Mapping[str, str], folder: Path) -> Iterator[Server]:
    """Run ``sluiceway rest``."""
    file = folder / "worker.properties"
    write_properties(file, properties)
    command = [sys.executable, "-c", "from sluiceway.cli.main import main; main()", "rest", str(file)]
    with _process(command, {}, folder / "rest.log") as process:
        eventually(lambda: rest_answers(properties["listeners"]), within=60, what="the REST server")
        yield Server(properties["listeners"], process.pid, {})


@contextmanager
def airflow_server(properties: Mapping[str, str], folder: Path) -> Iterator[Server]:
    """Run Airflow's API server with the plugin."""
    file, log, port = folder / "worker.properties", folder / "airflow.log", free_port()
    write_properties(file, properties)
    path = os.pathsep.join((str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")))
    environment = {"AIRFLOW__SLUICEWAY__WORKER_PROPERTIES": str(file), "PYTHONPATH": path}
    with _process([sys.executable, "-c", AIRFLOW, str(port)], environment, log) as process:
        token = eventually(lambda: _token(log), within=120, what=f"Airflow's API server, see {log}")
        server = Server(f"http://127.0.0.1:{port}/sluiceway", process.pid, {"authorization": f"Bearer {token}"})
        eventually(lambda: _answers(server), within=60, what="the plugin")
        yield server


def _token(log: Path) -> str | None:
    return next((line[6:].strip() for line in log.read_text().splitlines() if line.startswith("TOKEN ")), None)


def _answers(server: Server) -> bool:
    try:
        return httpx.get(f"{server.address}/connectors", headers=dict(server.headers), timeout=5).is_success
    except httpx.HTTPError:
        return False


@contextmanager
def connect_worker(properties: Mapping[str, str], folder: Path) -> Iterator[Server]:
    """Run a real Kafka Connect worker, and wait until it reports every connector's status."""
    topics = tuple(properties[f"{store}.storage.topic"] for store in ("config", "offset", "status"))
    peer = PeerDistributed(properties["bootstrap.servers"], properties["group.id"], folder / "connect", topics)  # type: ignore[arg-type]
    peer.start(timeout=300)
    try:
        eventually(lambda: _all_have_a_status(peer.rest), within=600, what="Kafka Connect's connectors")
        pid = peer.pid
        assert pid is not None
        yield Server(peer.rest, pid, {})
    finally:
        peer.stop()


def _all_have_a_status(rest: str) -> bool:
    names = httpx.get(f"{rest}/connectors", timeout=60).json()
    shown = httpx.get(f"{rest}/connectors?expand=status", timeout=60).json()
    return len(shown) == len(names) and all(each["status"]["tasks"] for each in shown.values())


SERVERS: dict[str, Callable[[Mapping[str, str], Path], AbstractContextManager[Server]]] = {
    "rest": rest_server,
    "airflow": airflow_server,
    "connect": connect_worker,
}
Figures = dict[str, tuple[float, float]]


def measure(bootstrap: str, kind: str, count: int, times: int, folder: Path) -> tuple[Figures, float]:
    """Return median and 95th percentile of each request in ms, and the server's resident memory in MB."""
    group = f"{kind}-{count}"
    properties = worker_properties(bootstrap, group, f"http://127.0.0.1:{free_port()}")
    cluster = ManyConnectors(WorkerConfig.of(properties), count, min(count, 100), folder)
    cluster.create(statuses=kind != "connect")
    with ExitStack() as stack:
        server = stack.enter_context(SERVERS[kind](properties, folder))
        if kind != "connect":
            stack.enter_context(cluster.heartbeats())
        http = stack.enter_context(httpx.Client(timeout=120, headers={"accept-encoding": "identity", **server.headers}))
        last = f"c{count - 1}"
        asked = requests(cluster.configs[last], last) | (PAGE if kind == "airflow" else {})
        figures = {what: _times(http, server.address, request, times) for what, request in asked.items()}
        return figures, psutil.Process(server.pid).memory_info().rss / 1e6


def _times(http: httpx.Client, address: str, request: Request, times: int) -> tuple[float, float]:
    _time(http, address, request)
    found = sorted(_time(http, address, request) for _ in range(times))
    return statistics.median(found), found[int(len(found) * 0.95)]


def _time(http: httpx.Client, address: str, request: Request) -> float:
    while True:
        began = time.perf_counter()
        response = http.request(request.method, address + request.path, json=request.body, headers=dict(request.headers))
        took = (time.perf_counter() - began) * 1000
        if response.status_code != httpx.codes.CONFLICT:  # Kafka Connect rebalances after each write
            response.raise_for_status()
            return took
        time.sleep(0.05)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connectors", type=int, nargs="+", default=[1, 10, 100, 1000])
    parser.add_argument("--servers", nargs="+", choices=SERVERS, default=["rest", "airflow"])
    parser.add_argument("--requests", type=int, default=50)
    options = parser.parse_args(arguments)
    well = True
    with tempfile.TemporaryDirectory(prefix="sluiceway-bench-rest-") as name:
        broker = EmbeddedBroker(Path(name) / "broker")
        try:
            bootstrap = broker.start(progress=print)
            for kind in options.servers:
                found = {each: measure(bootstrap, kind, each, options.requests, Path(name)) for each in options.connectors}
                print(_report(kind, found, options.requests), flush=True)
                well &= kind != "rest" or _within_limits(found)
        finally:
            broker.stop()
    return 0 if well else 1


def _report(kind: str, found: Mapping[int, tuple[Figures, float]], times: int) -> str:
    head = (kind, *(f"{count} connectors" for count in found))
    first = next(iter(found.values()))[0]
    rows = [(what, *(f"{figures[what][0]:.1f} / {figures[what][1]:.1f}" for figures, _ in found.values())) for what in first]
    memory = ("resident memory, MB", *(f"{memory:.0f}" for _, memory in found.values()))
    return f"\n{kind}: median / 95th percentile of {times} requests, in ms\n" + table(head, [*rows, memory])


def _within_limits(found: Mapping[int, tuple[Figures, float]]) -> bool:
    limited = {what for what, request in requests({}, "c").items() if request.limited}
    return all(memory < LIMIT_MB and all(figures[what][0] <= LIMIT_MS for what in limited) for figures, memory in found.values())


if __name__ == "__main__":
    sys.exit(main())
