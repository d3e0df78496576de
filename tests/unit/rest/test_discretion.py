"""What the REST API shows of a connector to users who may see it and not edit it."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence

import pytest
from fastapi import Depends, Request
from fastapi.testclient import TestClient

from sluiceway.config.worker import WorkerConfig
from sluiceway.herder import Herder
from sluiceway.rest.app import make_app
from sluiceway.rest.guard import AllowAll
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from sluiceway.storage.model import State, Status, TaskId

CONFIG = {"connector.class": "JdbcSource", "connection.url": "jdbc:x://h/d?password=hunter2", "connection.password": "hunter2"}
FAILED = Status(State.FAILED, "w", 1, trace="x.Error: hunter2\n\tat a.b(C.java:1)")
READS = (
    "/connectors?expand=info&expand=status",
    "/connectors/theirs",
    "/connectors/theirs/config",
    "/connectors/theirs/tasks",
    "/connectors/theirs/status",
    "/connectors/theirs/tasks/0/status",
)


class EditsMine(AllowAll):
    """A user who sees all connectors, and may edit one."""

    def editable(self, configs: Mapping[str, Mapping[str, str]]) -> Sequence[str]:
        return [name for name in configs if name == "mine"]


@pytest.fixture
def http() -> TestClient:
    config, status = MemoryConfigBackingStore(), MemoryStatusBackingStore()
    for name in ("mine", "theirs"):
        config.put_connector(name, {**CONFIG, "name": name})
        config.put_task_configs(name, [CONFIG])
        status.put_connector(name, FAILED)
        status.put_task(TaskId(name, 0), FAILED)
    herder = Herder(WorkerConfig.of({}), config, status, clock=lambda: 0.0)

    def guard(request: Request) -> None:
        request.state.guard = EditsMine()

    return TestClient(make_app(lambda: herder, dependencies=[Depends(guard)], gzips=True))


@pytest.mark.parametrize("path", READS)
def test_others_see_no_secret_and_no_message(http: TestClient, path: str) -> None:
    answer = http.get(path, headers={"accept-encoding": "identity"})
    assert answer.status_code == 200
    own = http.get(path.replace("theirs", "mine"), headers={"accept-encoding": "identity"})
    assert "hunter2" in own.text
    if path == READS[0]:
        found = answer.json()
        assert "hunter2" in str(found["mine"])
        assert "hunter2" not in str(found["theirs"])
        assert list(found) == ["mine", "theirs"]
    else:
        assert "hunter2" not in answer.text
        assert "[hidden]" in answer.text or "x.Error" in answer.text


def test_the_compressed_list_is_the_same(http: TestClient) -> None:
    plain = http.get(READS[0], headers={"accept-encoding": "identity"})
    with http.stream("GET", READS[0], headers={"accept-encoding": "gzip"}) as answer:
        assert gzip.decompress(b"".join(answer.iter_raw())) == plain.content
