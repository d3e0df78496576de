"""Tests of the control operators with a real herder on in-memory stores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.herder import Herder
from sluiceway.operators import (
    CreateConnectorOperator,
    DeleteConnectorOperator,
    PauseConnectorOperator,
    RestartConnectorOperator,
    ResumeConnectorOperator,
    SetConnectorOffsetsOperator,
    StopConnectorOperator,
)
from sluiceway.operators.control import ConnectorControlOperator
from sluiceway.provider.compat import AirflowException
from sluiceway.storage.file_offset_backing_store import FileOffsetBackingStore
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from sluiceway.storage.model import TargetState

CONFIG = {"name": "c", "connector.class": "FileStreamSource", "topic": "t", "file": "f"}


class Cluster:
    def __init__(self, folder: Path) -> None:
        self.config = MemoryConfigBackingStore()
        offsets = FileOffsetBackingStore(folder / "offsets")
        offsets.start()
        worker = WorkerConfig.of({"bootstrap.servers": "nowhere:1", "group.id": "g", "config.storage.topic": "c"})
        self.herder = Herder(worker, self.config, MemoryStatusBackingStore(), offsets)

    def run(self, operator: type[ConnectorControlOperator], **kwargs: Any) -> Any:
        cluster = self

        class Staged(operator):  # type: ignore[valid-type]
            @contextmanager
            def _herder(self) -> Iterator[Herder]:
                yield cluster.herder

        return Staged(task_id="t", **kwargs).execute({})

    def target(self) -> TargetState:
        entry = self.config.snapshot().entry("c")
        assert entry is not None
        return entry.target_state


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    made = Cluster(tmp_path)
    made.run(CreateConnectorOperator, config=CONFIG)
    return made


def test_create_creates_or_changes_a_connector_and_is_idempotent(cluster: Cluster) -> None:
    assert cluster.run(CreateConnectorOperator, config=CONFIG) == "unchanged"
    assert cluster.run(CreateConnectorOperator, config={**CONFIG, "topic": "u"}) == "changed"
    assert cluster.herder.overview().configs()["c"]["topic"] == "u"
    assert cluster.run(CreateConnectorOperator, config={**CONFIG, "name": "d"}, initial_state="STOPPED") == "created"
    assert cluster.config.snapshot().connectors["d"].target_state is TargetState.STOPPED


def test_pause_resume_and_stop_set_the_target_state(cluster: Cluster) -> None:
    for operator, state in (
        (PauseConnectorOperator, TargetState.PAUSED),
        (ResumeConnectorOperator, TargetState.STARTED),
        (StopConnectorOperator, TargetState.STOPPED),
    ):
        cluster.run(operator, connector="c")
        assert cluster.target() is state


def test_restart_requests_a_restart_including_tasks(cluster: Cluster) -> None:
    cluster.run(RestartConnectorOperator, connector="c", only_failed=True)
    [request] = cluster.config.take_restart_requests()
    assert (request.connector, request.include_tasks, request.only_failed) == ("c", True, True)


def test_offsets_of_a_stopped_connector_are_altered_and_reset(cluster: Cluster) -> None:
    offsets = [{"partition": {"filename": "f"}, "offset": {"position": 7}}]
    with pytest.raises(AirflowException, match=r"Connector c: .*STOPPED state"):
        cluster.run(SetConnectorOffsetsOperator, connector="c", offsets=offsets)
    cluster.run(StopConnectorOperator, connector="c")
    cluster.run(SetConnectorOffsetsOperator, connector="c", offsets=offsets)
    assert cluster.herder.offsets("c") == [({"filename": "f"}, {"position": 7})]
    cluster.run(SetConnectorOffsetsOperator, connector="c", offsets=None)
    assert cluster.herder.offsets("c") == []


def test_deleting_a_missing_connector_fails_only_without_missing_ok(cluster: Cluster) -> None:
    cluster.run(DeleteConnectorOperator, connector="c")
    assert cluster.herder.connectors() == []
    cluster.run(DeleteConnectorOperator, connector="c")
    with pytest.raises(AirflowException, match="Connector c"):
        cluster.run(DeleteConnectorOperator, connector="c", missing_ok=False)


def test_a_rejected_request_fails_with_the_reason(cluster: Cluster) -> None:
    with pytest.raises(AirflowException, match='Missing required configuration "topic"'):
        cluster.run(CreateConnectorOperator, config={"name": "d", "connector.class": "FileStreamSource"})
    with pytest.raises(AirflowException, match="Connector none"):
        cluster.run(PauseConnectorOperator, connector="none")
    with pytest.raises(ValueError, match="initial_state must be one of RUNNING"):
        cluster.run(CreateConnectorOperator, config=CONFIG, initial_state="STARTED")
