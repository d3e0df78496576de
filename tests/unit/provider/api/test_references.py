"""No request to Airflow's API server resolves a reference there, or connects with the rights of a connector.

Each route of the REST API and the page is asked about connectors that refer to a provider which notes what it is asked. What
needs a value gets it in the isolated process. The same requests to a REST API outside of Airflow are the control.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from fastapi import Depends, FastAPI, Request
from fastapi.testclient import TestClient
from starlette.routing import Mount

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import KafkaClientError
from sluiceway.herder import Herder, dead_letters, signals
from sluiceway.herder.isolated import Isolated, here
from sluiceway.kafka import dead_letter_topic
from sluiceway.kafka.dead_letter_headers import ConsumedDeadLetter
from sluiceway.preview import service
from sluiceway.preview.request import PreviewRequest
from sluiceway.provider.ui import routes as ui_routes
from sluiceway.provider.ui.dashboard import Dashboard
from sluiceway.rest import plugin_routes
from sluiceway.rest.app import make_app
from sluiceway.rest.guard import AllowAll
from sluiceway.storage.history import Origin
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from sluiceway.storage.model import State, Status, TargetState, TaskId
from support import canary_provider
from support.dashboard import WORKER, StaticAirflow, StaticProbe
from support.rest_replay import MemoryGroups, MemoryOffsets

PROVIDERS = {"config.providers": "canary", "config.providers.canary.class": "support.canary_provider.CanaryProvider"}
SHARED = {
    "value.converter": "${canary:shared:ByteArrayConverter}",
    "value.converter.schema.registry.url": "http://${canary:shared:registry}",
    "transforms": "t",
    "transforms.t.type": "InsertHeader",
    "transforms.t.header": "h",
    "transforms.t.value.literal": "${canary:shared:literal}",
    "spark.hadoop.fs.s3a.secret.key": "${canary:shared:spark}",
}
SINK = {
    "topics": "${canary:sink:topics}",
    "consumer.override.group.id": "${canary:sink:group}",
    "consumer.override.sasl.jaas.config": "${canary:sink:jaas}",
    "admin.override.sasl.password": "${canary:sink:password}",
    "errors.deadletterqueue.topic.name": "dead",
    "errors.tolerance": "all",
}
SOURCE = {
    "offsets.storage.topic": "${canary:source:offsets}",
    "producer.override.sasl.password": "${canary:source:password}",
}
CONNECTORS = {
    "file sink": {"connector.class": "FileStreamSink", "file": "${canary:file:file}", **SINK, **SHARED},
    "jdbc sink": {"connector.class": "JdbcSink", "connection.url": "${canary:jdbc:url}", **SINK, **SHARED},
    "file source": {"connector.class": "FileStreamSource", "topic": "t", "file": "${canary:file:file}", **SOURCE, **SHARED},
    "jdbc source": {
        "connector.class": "JdbcSource",
        "topic.prefix": "p",
        "mode": "bulk",
        "connection.url": "${canary:jdbc:url}",
        "connection.password": "${canary:jdbc:password}",
        **SOURCE,
        **SHARED,
    },
    "capture": {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "topic.prefix": "${canary:capture:prefix}",
        "database.hostname": "${canary:capture:host}",
        "database.user": "u",
        "database.dbname": "d",
        "database.password": "${canary:capture:password}",
        "signal.enabled.channels": "source,kafka",
        "signal.kafka.bootstrap.servers": "${canary:capture:kafka}",
        "signal.consumer.sasl.jaas.config": "${canary:capture:jaas}",
        **SOURCE,
        **SHARED,
    },
}
SOURCE_EDIT = {"partition": {"filename": "f"}, "offset": {"position": 0}}
SINK_EDIT = {"partition": {"kafka_topic": "t", "kafka_partition": 0}, "offset": {"kafka_offset": 3}}
BODIES: dict[tuple[str, str], Callable[[dict[str, str]], Any]] = {
    ("POST", "/connectors"): lambda config: {"name": "new", "config": config},
    ("PUT", "/config"): dict,
    ("PATCH", "/config"): lambda config: {"tasks.max": "2"},
    ("POST", "/rollback"): lambda config: {"version": 1},
    ("PATCH", "/offsets"): lambda config: {"offsets": [SINK_EDIT if "Sink" in config["connector.class"] else SOURCE_EDIT]},
    ("POST", "/dead-letters/replay"): lambda config: {"records": [{"partition": 0, "offset": 1}]},
    ("POST", "/signals"): lambda config: {"type": "log", "data": {"message": "m"}},
    ("PUT", "/validate"): lambda config: {**config, "name": "c"},
    ("POST", "/preview"): lambda config: {**config, "name": "c"},
    ("PUT", "/{logger:segment}"): lambda config: {"level": "INFO"},
}
SIGNAL = ("POST", "/connectors/{name:segment}/signals")
READ_ELSEWHERE = {  # routes that need the values, by the control
    SIGNAL,
    *(("POST", f"/connectors{path}") for path in ("", "/{name:segment}/rollback")),
    *((method, "/connectors/{name:segment}/config") for method in ("PUT", "PATCH")),
    *((method, "/connectors/{name:segment}/offsets") for method in ("GET", "PATCH", "DELETE")),
    ("GET", "/connectors/{name:segment}/offsets/find"),
    ("GET", "/connectors/{name:segment}/dead-letters"),
    ("PUT", "/connector-plugins/{plugin}/config/validate"),
    ("POST", "/connector-plugins/{plugin}/config/preview"),
}


class Topic:
    """Replaces ``DeadLetterTopic``: a record that is no text."""

    def __init__(self, *_: object) -> None: ...

    def count(self) -> int:
        return 1

    def newest(self, count: int) -> list[ConsumedDeadLetter]:
        return [ConsumedDeadLetter("dead", 0, 1, None, b"\xff", b"\xff", [])]

    def replay_chosen(self, *_: object, to: str | None) -> Any:
        raise KafkaClientError("There is no Kafka.")


class EveryRight(AllowAll):
    def may_create(self) -> bool:
        return True


def _allow(request: Request) -> None:
    request.state.guard = EveryRight()


class Server:
    """The REST API and the page over connectors in memory. ``called`` are the functions for the isolated process."""

    def __init__(self, *, in_airflow: bool) -> None:
        self.called: list[str] = []
        self.admins: list[Mapping[str, str]] = []
        self._call: Isolated = self._isolated if in_airflow else here
        self.herder, self.dashboard = self._renewed({})
        self.app = make_app(lambda: self.herder, dependencies=[Depends(_allow)])
        ui_routes.install(self.app, lambda: self.dashboard)
        self.http = TestClient(self.app, raise_server_exceptions=False)

    def _isolated(self, function: Any, config: Mapping[str, str], worker: WorkerConfig, *arguments: Any) -> Any:
        self.called.append(function.__name__)
        answers = {"_read": [], "_find": [], "_alter": "done", "_reset": "done", "_send": "t", "_decode": [None] * 2}
        return answers[function.__name__]

    def _groups(self, worker: WorkerConfig, admin: Mapping[str, str]) -> MemoryGroups:
        self.admins.append(admin)
        return MemoryGroups()

    def _renewed(self, config: Mapping[str, str], *, stopped: bool = False) -> tuple[Herder, Dashboard]:
        """Return a herder with a connector "c", and its page."""
        worker = WorkerConfig.of({**WORKER, **PROVIDERS})
        store, status = MemoryConfigBackingStore(), MemoryStatusBackingStore()
        if config:
            target = TargetState.STOPPED if stopped else None
            store.put_connector("c", {**config, "name": "c"}, target, origin=Origin(user="u"))
            status.put_connector("c", Status(State.STOPPED if stopped else State.RUNNING, "w:1", 1))
            if not stopped:
                store.put_task_configs("c", [dict(config)])
                status.put_task(TaskId("c", 0), Status(State.RUNNING, "w:1", 1))
        herder = Herder(worker, store, status, MemoryOffsets(), open_groups=self._groups, isolated=self._call)
        return herder, Dashboard(worker, herder, store, StaticProbe(), StaticAirflow())

    def ask(self, method: str, path: str, config: dict[str, str]) -> str:
        """Send a request about a connector with this config, and return the answer."""
        self.herder, self.dashboard = self._renewed(config, stopped=path.endswith("/offsets"))
        if path.startswith("/ui"):
            self.dashboard.sampler.sample()
        ends = (each for (given, end), each in BODIES.items() if given == method and path.endswith(end))
        body = next(ends, lambda _: None)(config)
        for parameter, value in (("name:segment", "c"), ("task", "0"), ("logger:segment", "a.b")):
            path = path.replace(f"{{{parameter}}}", value)
        path = path.replace("{plugin}", config["connector.class"])
        query = {"to": "earliest"} if path.endswith("/find") else {}
        return self.http.request(method, path, json=body, params=query).text


@pytest.fixture(autouse=True)
def _without_kafka(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    canary_provider.READ.clear()
    monkeypatch.setattr(dead_letters, "DeadLetterTopic", Topic)
    monkeypatch.setattr(dead_letter_topic, "DeadLetterTopic", Topic)
    monkeypatch.setattr(service, "partition_count", lambda *_: 1)
    monkeypatch.setattr(service, "admin_client", lambda *_: None)

    def run(request: PreviewRequest, answer: Any) -> None:
        answer.add({"event": "end"})

    monkeypatch.setattr(plugin_routes, "preview", functools.partial(service.preview, run=run))
    monkeypatch.setattr(signals, "send_signal", lambda *_: None)
    yield
    canary_provider.READ.clear()


def _routes(app: FastAPI) -> list[tuple[str, str]]:
    found = []
    for route in app.routes:
        methods = getattr(route, "methods", None) or ()
        found += [(method, str(getattr(route, "path", ""))) for method in methods if not isinstance(route, Mount)]
    return [(method, path) for method, path in sorted(found) if method != "HEAD" and not path.startswith(("/docs", "/openapi"))]


def _reading(server: Server, *connectors: str) -> set[tuple[str, str]]:
    """Return the routes that read a reference's value for one of the connectors."""
    reading = set()
    for method, path in _routes(server.app):
        for name in connectors:
            canary_provider.READ.clear()
            text = server.ask(method, path, CONNECTORS[name])
            assert "HTTP 4" not in text, f"{method} {path} was not answered: {text}"
            assert "The request is invalid" not in text, (method, path)
            if canary_provider.READ:
                reading.add((method, path))
    return reading


def test_no_route_of_the_api_server_reads_a_value() -> None:
    server = Server(in_airflow=True)
    assert len(_routes(server.app)) > 40
    assert _reading(server, *CONNECTORS) == set()
    assert set(server.called) == {"_read", "_find", "_alter", "_reset", "_send", "_decode"}
    assert server.admins == [], "these sinks have own settings of admin clients"


def test_outside_of_airflow_routes_read_values() -> None:
    server = Server(in_airflow=False)
    found = _reading(server, "file sink", "file source")  # the others would connect
    canary_provider.READ.clear()
    server.ask(*SIGNAL, CONNECTORS["capture"])
    assert "capture:kafka" in canary_provider.READ
    assert {*found, SIGNAL} >= READ_ELSEWHERE


@pytest.mark.parametrize(
    ("more", "apart"),
    [
        ({}, False),
        ({"consumer.override.group.id": "own"}, False),
        ({"file": "${canary:file:file}"}, False),
        ({"consumer.override.group.id": "${canary:a:b}"}, True),
        ({"topics": "${canary:a:b}"}, True),
        ({"admin.override.bootstrap.servers": "elsewhere:9092"}, True),
        ({"admin.override.ssl.keystore.location": "/etc/passwd"}, True),
    ],
)
def test_offsets_that_the_workers_rights_reach_are_read_here(more: dict[str, str], apart: bool) -> None:
    config = {"connector.class": "FileStreamSink", "topics": "t", "file": "/f", **more}
    for path in ("/connectors/{name:segment}/offsets", "/connectors/{name:segment}/offsets/find"):
        server = Server(in_airflow=True)
        server.ask("GET", path, config)
        assert (bool(server.called), server.admins) == (apart, [] if apart else [{}])
    server.ask("DELETE", "/connectors/{name:segment}/offsets", config)
    assert "_reset" in server.called, "the connector's code checks it"
