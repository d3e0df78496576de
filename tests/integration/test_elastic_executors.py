"""Executors of a real standalone cluster: their number follows the tasks, and decommissioned ones drain."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.clusters.connector import ClusterConnector
from support.clusters.deployments import Deployment, small
from support.clusters.standalone import SparkCluster
from support.eventually import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

IDLE_SECONDS = 4


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    made = SparkCluster(tmp_path_factory.mktemp("spark"), cores=4, workers=2)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def connector(
    cluster: SparkCluster, kafka_bootstrap: str, unique: Callable[[str], str], tmp_path: Path
) -> Iterator[ClusterConnector]:
    settings = small(
        spark_dynamicAllocation_executorIdleTimeout=f"{IDLE_SECONDS}s", spark_driver_host="127.0.0.1", spark_cores_max="6"
    )
    deployment = Deployment("elastic", cluster, "client", settings)
    made = ClusterConnector(deployment, kafka_bootstrap, tmp_path, unique("elastic"), exactly_once=False, tasks=3)
    yield made
    made.close()


def executors(connector: ClusterConnector) -> int:
    return len(connector.executors())


def running_tasks(connector: ClusterConnector) -> list[int]:
    return [each["id"] for each in connector.client.status(connector.name)["tasks"] if each["state"] == "RUNNING"]


def resize(connector: ClusterConnector, tasks: int) -> None:
    connector.client.patch_config(connector.name, {"tasks.max": str(tasks)})


@pytest.mark.long
def test_the_number_of_executors_follows_the_number_of_tasks(connector: ClusterConnector) -> None:
    resize(connector, 1)
    connector.supervisor.start()
    eventually(lambda: running_tasks(connector) == [0], what="a task")
    eventually(lambda: executors(connector) == 1, what="an executor for the task")
    resize(connector, 3)
    connector.await_stable(time.time())
    assert executors(connector) == 3
    resize(connector, 1)
    eventually(lambda: executors(connector) == 1, what="idle executors are given back")
    eventually(lambda: running_tasks(connector) == [0], what="a task")
    resize(connector, 3)
    connector.await_stable(time.time())
    connector.pause()
    assert connector.missing() == 0
    assert connector.doubled() == [0, 0, 0]


@pytest.mark.long
def test_a_task_leaves_an_executor_that_announces_its_end(connector: ClusterConnector) -> None:
    """On Kubernetes, a pod's executor gets this signal before the pod ends."""
    connector.start()
    leaving = connector.executors()[0]
    now = time.time()
    leaving.send_signal(signal.SIGPWR)
    eventually(lambda: not leaving.is_running(), what="the executor's end")
    connector.await_stable(now)
    story = connector.poller.story(now)
    assert "is being decommissioned" in story, story
    connector.pause()
    assert (connector.missing(), connector.doubled()) == (0, [0, 0, 0])


@pytest.mark.long
def test_tasks_leave_a_decommissioned_worker_and_repeat_nothing(connector: ClusterConnector, cluster: SparkCluster) -> None:
    connector.start()
    before = {each.pid for each in connector.executors()}
    leaving = next(number for number in (0, 1) if before & cluster.executors_of_worker(number))
    old = before & cluster.executors_of_worker(leaving)
    now = time.time()
    try:
        cluster.decommission_worker(leaving)
        eventually(lambda: not old & cluster.executors_of_worker(leaving), what="the end of the worker's executors")
        connector.await_stable(now)
        story = connector.poller.story(now)
        assert "is being decommissioned" in story, story
        assert connector.exits() == [], "the driver has ended"
        connector.pause()
        assert connector.missing() == 0
        assert connector.doubled() == [0, 0, 0]
        assert "FAILED" not in story
    finally:
        cluster.workers[leaving].stop(5)
        cluster.start()
