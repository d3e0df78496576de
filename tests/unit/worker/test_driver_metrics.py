"""A driver's metrics: of its process and of its connectors."""

from __future__ import annotations

import httpx
import psutil
import pytest

from sluiceway import __version__
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from sluiceway.storage.model import State, Status, TaskId
from sluiceway.worker.driver_metrics import DriverMetrics


def made(listener: str, host: str = "127.0.0.1") -> DriverMetrics:
    configs, statuses = MemoryConfigBackingStore(), MemoryStatusBackingStore()
    for name in ("lines", "others"):
        configs.put_connector(name, {"name": name, "connector.class": "FileStreamSource", "file": "f", "topic": "t"})
        configs.put_task_configs(name, [{}, {}])
        statuses.put_connector(name, Status(State.RUNNING, "w:1", 1, version="3"))
        statuses.put_tasks({TaskId(name, 0): Status(State.RUNNING, "w:1", 1), TaskId(name, 1): Status(State.FAILED, "w:1", 1)})
    metrics = DriverMetrics(WorkerConfig.of({"sluiceway.metrics.listener": listener}), "w:1", configs, statuses, host)
    metrics.hosted = lambda: ["lines", "deleted"]
    return metrics


def test_a_driver_serves_the_statuses_of_its_connectors() -> None:
    metrics = made("http://127.0.0.1:0")
    try:
        text = httpx.get(f"{metrics.url}/metrics").text
    finally:
        metrics.close()
    assert 'kafka_connect_connector_status{connector="lines",status="running"} 1.0' in text
    assert 'kafka_connect_connector_connector_type{connector="lines",connector_type="source"} 1.0' in text
    assert 'kafka_connect_worker_connector_failed_task_count{connector="lines"} 1.0' in text
    assert "kafka_connect_worker_connector_count 1.0" in text
    assert "kafka_connect_worker_task_count 2.0" in text
    assert "others" not in text
    assert 'kafka_connect_connector_task_status{connector="lines",status="failed",task="1"} 1.0' in text
    assert f'kafka_connect_version_info{{clientid="w:1",version="{__version__}"}} 1.0' in text


@pytest.mark.parametrize(("host", "address"), [("127.0.0.1", "127.0.0.1"), ("10.0.0.7", "0.0.0.0")])  # noqa: S104
def test_in_local_mode_the_default_listens_on_this_machine_only(host: str, address: str) -> None:
    metrics = made("http://:0", host)
    try:
        assert metrics.url is not None
        port = int(metrics.url.rpartition(":")[2])
        listening = [
            each.laddr.ip
            for each in psutil.Process().net_connections("tcp")
            if each.status == "LISTEN" and each.laddr.port == port
        ]
    finally:
        metrics.close()
    assert listening == [address]


def test_without_a_listener_there_is_no_server() -> None:
    metrics = made("")
    assert (metrics.url, metrics.target) == (None, None)
    assert metrics.beans()
    metrics.close()


@pytest.mark.parametrize("listener", ["https://:1", "8083", "http://:port", "http://:70000"])
def test_an_address_that_makes_no_sense_is_refused(listener: str) -> None:
    with pytest.raises(ConfigError, match="Expected http://host:port"):
        made(listener)
