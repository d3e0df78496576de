"""The kept JSON of connectors is the same as JSON that is rendered anew, after every kind of change."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

from sluiceway import discovery
from sluiceway.config.worker import WorkerConfig
from sluiceway.herder import Herder
from sluiceway.herder.overview import Overview
from sluiceway.herder.states import Clock
from sluiceway.rest import bodies
from sluiceway.rest.app import make_app
from sluiceway.rest.connector_details import ConnectorDetails
from sluiceway.storage import codec
from sluiceway.storage.codec import KeyValue
from sluiceway.storage.config_state import ConfigState
from sluiceway.storage.heartbeats import Heartbeat, decode_heartbeat, encode_heartbeat
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from sluiceway.storage.model import State, Status, TargetState, TaskId
from sluiceway.storage.status_state import StatusState

TIMEOUT = 15_000
START = 1_700_000_000_000
EXPANDS = ((), ("info",), ("status",), ("status", "info"), ("other",))

names = st.sampled_from(["a", 'b"ü'])
tasks = st.builds(TaskId, names, st.integers(0, 2))
configs = st.sampled_from(
    [
        {"connector.class": "FileStreamSource", "topic": "t"},
        {"connector.class": "FileStreamSink", "topics": "t"},
        {"connector.class": "not.installed.Class"},
    ]
)
statuses = st.builds(
    Status, st.sampled_from(State), st.sampled_from(["w:1", "w:2"]), st.integers(1, 3), st.sampled_from([None, "boom"])
)
config_records = st.one_of(
    st.builds(codec.encode_connector, names, st.none() | configs),
    st.builds(codec.encode_target_state, names, st.none() | st.sampled_from(TargetState)),
    st.builds(codec.encode_task, tasks, st.sampled_from([{"x": "1"}, {"x": "2"}])),
    st.builds(codec.encode_commit, names, st.integers(0, 2)),
    st.builds(codec.encode_task_count, names, st.integers(0, 2)),
)
status_records = st.one_of(
    st.builds(codec.encode_connector_status, names, st.none() | statuses),
    st.builds(codec.encode_task_status, tasks, st.none() | statuses),
)
heartbeats = st.builds(
    Heartbeat,
    st.sampled_from(["w:1", "w:2"]),
    st.dictionaries(names, st.integers(1, 3)),
    st.dictionaries(tasks, st.integers(1, 3)),
)
steps = st.one_of(
    st.tuples(st.just("config"), config_records, st.just(0)),
    st.tuples(st.just("status"), status_records, st.integers(0, TIMEOUT + 2)),
    st.tuples(st.just("heartbeat"), st.builds(encode_heartbeat, st.just("d"), heartbeats), st.integers(0, TIMEOUT + 2)),
    st.tuples(st.just("time"), st.none(), st.sampled_from([1, 5000, TIMEOUT, TIMEOUT + 1, -TIMEOUT])),
)


class Topics:
    """The states of the config and status topics, and the time."""

    def __init__(self) -> None:
        self.config, self.status = ConfigState(), StatusState()
        self.offset, self.now = 0, START

    def take(self, kind: str, record: KeyValue | None, milliseconds: int) -> None:
        """Apply a record (one of the status topic is ``milliseconds`` old), or let that time pass."""
        if record is None:
            self.now += milliseconds
        elif kind == "config":
            self.config.apply(self.offset, *record)
            self.offset += 1
        elif kind == "heartbeat":
            self.status.renew(decode_heartbeat(record[1] or b""), self.now - milliseconds)
        else:
            self.status.apply(codec.decode_status_record(*record, self.now - milliseconds))

    def overview(self) -> Overview:
        return Overview(self.config.snapshot(), self.status.snapshot(), Clock(self.now, TIMEOUT), "w:0")


def rendered(overview: Overview, expand: Sequence[str]) -> bytes:
    """Return the JSON of all connectors, without keeping anything."""
    makes: dict[str, Any] = {
        "info": lambda name: bodies.info_json(overview.info(name)),
        "status": lambda name: bodies.connector_status_json(overview.status(name)),
    }
    chosen = {key: make for key, make in makes.items() if key in expand}
    return orjson.dumps({name: {key: make(name) for key, make in chosen.items()} for name in overview.configs()})


@settings(max_examples=60)
@given(st.lists(steps, max_size=25))
def test_kept_json_is_that_of_the_records(changes: list[tuple[str, KeyValue | None, int]]) -> None:
    details, followed = ConnectorDetails(), Topics()
    for number, change in enumerate(changes):
        followed.take(*change)
        replayed = Topics()  # its snapshots are made at once, without earlier ones
        for each in changes[: number + 1]:
            replayed.take(*each)
        overview = replayed.overview()
        for expand in EXPANDS:
            wanted = rendered(overview, expand)
            assert details.listed(followed.overview(), list(overview.configs()), expand) == wanted
            assert gzip.decompress(details.gzipped(followed.overview(), list(overview.configs()), expand)) == wanted


def test_a_connector_is_rendered_again_only_after_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    topics, details, calls = Topics(), ConnectorDetails(), list[str]()
    make = bodies.connector_status_json
    monkeypatch.setattr(bodies, "connector_status_json", lambda status: calls.append(status.name) or make(status))
    for name in ("a", "b"):
        topics.take("config", codec.encode_connector(name, {"connector.class": "FileStreamSource"}), 0)
        topics.take("status", codec.encode_connector_status(name, Status(State.RUNNING, "w:1", 1)), 0)

    def listed() -> list[str]:
        calls.clear()
        details.listed(topics.overview(), ["a", "b"], ["status"])
        return calls

    assert listed() == ["a", "b"]
    assert listed() == []
    topics.take("status", codec.encode_task_status(TaskId("b", 0), Status(State.RUNNING, "w:1", 1)), 0)
    assert listed() == ["b"]
    topics.now += TIMEOUT
    topics.take("heartbeat", encode_heartbeat("d", Heartbeat("w:1", {"a": 1, "b": 1}, {TaskId("b", 0): 1})), 0)
    assert listed() == [], "a heartbeat changes nothing that is shown"
    topics.now += TIMEOUT
    assert listed() == []
    topics.now += 1
    assert listed() == ["a", "b"], "their heartbeats are stale now"
    assert listed() == []


def test_a_class_that_is_installed_later_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    topics, details = Topics(), ConnectorDetails()
    topics.take("config", codec.encode_connector("a", {"connector.class": "Later"}), 0)
    assert b'"type":"unknown"' in details.listed(topics.overview(), ["a"], ["info"])
    source = discovery.connector_class("FileStreamSource")
    monkeypatch.setattr("sluiceway.herder.overview.connector_class", lambda _name: source)
    assert b'"type":"source"' in details.listed(topics.overview(), ["a"], ["info"])


def test_deleted_and_invisible_connectors_are_left_out() -> None:
    topics, details = Topics(), ConnectorDetails()
    for name in ("a", "b"):
        topics.take("config", codec.encode_connector(name, {"connector.class": "FileStreamSource"}), 0)
    assert details.listed(topics.overview(), ["b", "gone"], ()) == b'{"b":{}}'
    assert details.listed(topics.overview(), [], ["info"]) == b"{}"
    topics.take("config", codec.encode_connector("b", None), 0)
    assert details.listed(topics.overview(), ["a", "b"], ()) == b'{"a":{}}'
    assert set(details._rendered._kept) == {"a"}, "what was deleted is not kept"


@pytest.mark.parametrize("gzips", [True, False])
def test_the_list_is_compressed_for_clients_that_accept_it_if_the_app_does_so(gzips: bool) -> None:
    config = MemoryConfigBackingStore()
    config.put_connector("a", {"connector.class": "FileStreamSource", "name": "a"})
    herder = Herder(WorkerConfig.of({}), config, MemoryStatusBackingStore())
    http = TestClient(make_app(lambda: herder, gzips=gzips))
    plain = http.get("/connectors?expand=info&expand=status", headers={"accept-encoding": "identity"})
    zipped = http.get("/connectors?expand=info&expand=status", headers={"accept-encoding": "deflate, gzip"})
    assert (
        plain.json()
        == zipped.json()
        == {"a": {"info": http.get("/connectors/a").json(), "status": http.get("/connectors/a/status").json()}}
    )
    assert zipped.headers.get("content-encoding") == ("gzip" if gzips else None)
    assert "content-encoding" not in plain.headers
