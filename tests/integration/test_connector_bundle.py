"""Tests of the connector DAG bundle on a real Kafka."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from sluiceway.provider.dag_bundle.bundle import ConnectorDagBundle

pytestmark = pytest.mark.kafka


@pytest.fixture
def no_collections() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.long
@pytest.mark.usefixtures("no_collections")
@pytest.mark.parametrize("reached", [True, False])
def test_a_refresh_leaves_no_kafka_client_to_forked_processes(
    kafka_bootstrap: str, unique: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reached: bool
) -> None:
    monkeypatch.setattr("sluiceway.provider.dag_bundle.bundle._REFRESH_TIMEOUT_SECONDS", 10.0 if reached else 0.5)
    worker = tmp_path / "worker.properties"
    worker.write_text(
        f"bootstrap.servers={kafka_bootstrap if reached else '127.0.0.1:1'}\ngroup.id={unique('group')}\n"
        f"config.storage.topic={unique('config')}\nconfig.storage.replication.factor=1\n"
    )
    bundle = ConnectorDagBundle(name="connectors", refresh_interval=30, worker_properties=str(worker))
    bundle.base_dir = tmp_path / "bundle"
    before = _clients()
    bundle.refresh()
    assert (bundle.base_dir / "refreshed").exists() is reached
    assert _clients() - before == set()


def _clients() -> set[int]:
    return {id(each) for each in gc.get_objects() if isinstance(each, AdminClient | Consumer | Producer)}
