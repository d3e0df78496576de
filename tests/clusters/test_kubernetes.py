"""Connectors on Kubernetes: a real API server, spark-submit and Spark; pods' commands are processes of a test kubelet."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.airflow_home import isolate_airflow
from support.clusters import kubernetes
from support.clusters.daemons import running
from support.clusters.helm import rendered
from support.clusters.kubernetes import KubernetesCluster
from support.clusters.kubernetes_api import KubernetesApi, pod_path
from support.eventually import eventually

isolate_airflow()
pytest.importorskip("airflow.providers.cncf.kubernetes.kube_client", reason="needs pip install '.[kubernetes]'")

from support.clusters.kubernetes_connector import FLUSH_SECONDS, RATE, KubernetesConnector, airflow_environment  # noqa: E402

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.skipif(bool(kubernetes.unavailable()), reason=kubernetes.unavailable() or ""),
]

Start = Callable[..., KubernetesConnector]
#: The maximum of records that one loss of a task may repeat: one flush interval's, and those of a slow commit.
MOST_DOUBLED = RATE * (FLUSH_SECONDS + 2.5)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesCluster]:
    with running(KubernetesCluster(tmp_path_factory.mktemp("kubernetes"))) as made:
        yield made


@pytest.fixture
def start(cluster: KubernetesCluster, kafka_bootstrap: str, unique: Callable[[str], str], tmp_path: Path) -> Iterator[Start]:
    """Create a connector in a namespace of its own, and wait until its tasks run."""
    with ExitStack() as stack:

        def run(tasks: int = 2, *, detached: bool = False, **conf: str) -> KubernetesConnector:
            settings = {key.replace("_", "."): value for key, value in conf.items()}
            made = KubernetesConnector(cluster, kafka_bootstrap, tmp_path, unique("k8s"), tasks, settings)
            stack.callback(made.close)
            made.detached = detached
            stack.enter_context(airflow_environment(made))
            print(f"{made.name}: RUNNING after {made.start():.1f} s")
            return made

        yield run


def test_a_connector_runs_in_pods_without_a_secret_in_their_description_and_ends_after_a_pause(
    cluster: KubernetesCluster, start: Start
) -> None:
    connector = start()
    assert len(connector.executors()) == 2
    described = ""
    for kind in ("pods", "configmaps", "services"):
        described += json.dumps(cluster.api.get(f"/api/v1/namespaces/{connector.name}/{kind}"))
    assert connector.topic not in described, "the secret's value is in a pod or ConfigMap"
    assert connector.bootstrap not in described, "the value from Airflow is in a pod or ConfigMap"
    (driver,) = connector.drivers()
    secret = f"{driver['metadata']['name']}-airflow"
    owner = cluster.api.get(f"/api/v1/namespaces/{connector.name}/secrets/{secret}")["metadata"]["ownerReferences"][0]
    assert owner["uid"] == driver["metadata"]["uid"]

    connector.client.pause(connector.name)
    connector.await_end()
    assert [pod["status"]["phase"] for pod in connector.drivers()] == ["Succeeded"]
    assert not connector.failures
    eventually(lambda: not connector.executors(), what="no executor pods")
    assert connector.missing() == connector.doubled() == 0
    cluster.api.delete(pod_path(driver))
    eventually(lambda: cluster.api.find(f"/api/v1/namespaces/{connector.name}/secrets/{secret}") is None, what="no Secret")


def test_tasks_of_a_deleted_pod_and_of_a_lost_node_continue_elsewhere(cluster: KubernetesCluster, start: Start) -> None:
    connector = start()
    began = time.time()
    cluster.api.delete(pod_path(connector.executors()[0]))
    print(f"pod deleted: RUNNING again after {connector.await_stable(began) - began:.1f} s\n{connector.poller.story(began)}")

    driver_node = connector.drivers()[0]["spec"]["nodeName"]
    lost = next(name for name, kubelet in cluster.kubelets.items() if kubelet.alive and name != driver_node)
    assert any(pod["spec"]["nodeName"] == lost for pod in connector.executors())
    cluster.add_node(f"{lost}-spare")
    began = time.time()
    cluster.lose_node(lost)
    print(f"node lost: RUNNING again after {connector.await_stable(began) - began:.1f} s\n{connector.poller.story(began)}")
    assert connector.missing() == 0
    assert connector.doubled() <= 2 * MOST_DOUBLED
    assert connector.poller.false_running <= 25


def test_a_deleted_driver_pod_drains_and_is_submitted_again(cluster: KubernetesCluster, start: Start) -> None:
    connector = start()
    (driver,) = connector.drivers()
    began = time.time()
    cluster.api.delete(pod_path(driver))
    print(f"driver deleted: RUNNING again after {connector.await_stable(began) - began:.1f} s\n{connector.poller.story(began)}")
    assert "Stopping: Spark's JVM is shutting down" in cluster.log_of(driver["metadata"]["name"])
    assert len(connector.failures) == 1, "Airflow's task must fail, so that its retry submits another driver"
    assert connector.missing() == connector.doubled() == 0, "the tasks have not committed before their end"
    assert connector.drivers()[-1]["metadata"]["uid"] != driver["metadata"]["uid"]


def test_a_detached_driver_is_tracked_by_its_pod_and_an_evicted_executor_drains_first(
    cluster: KubernetesCluster, start: Start
) -> None:
    connector = start(detached=True)
    assert connector.submitted, "spark-submit has not ended, although the driver runs"
    (victim, *_) = connector.executors()
    began = time.time()
    cluster.api.delete(pod_path(victim))
    print(f"executor evicted: RUNNING again after {connector.await_stable(began) - began:.1f} s\n{connector.poller.story(began)}")
    assert connector.missing() == connector.doubled() == 0, "the task has not committed before its end"

    connector.client.pause(connector.name)
    connector.await_end()
    assert not connector.failures
    assert not connector.drivers(), "Airflow deletes a pod that it has tracked to its success"


def test_the_accounts_have_no_more_rights_than_the_chart_gives(
    cluster: KubernetesCluster, unique: Callable[[str], str], tmp_path: Path
) -> None:
    namespace = unique("rights")
    cluster.prepare_namespace(namespace)
    for each in rendered(tmp_path, namespace, {}):
        cluster.api.create(each, namespace, dry_run=True)
        cluster.api.create(each, namespace)
    path = f"/api/v1/namespaces/{namespace}"
    driver = KubernetesApi(cluster.url, cluster.api.token_of("spark", namespace), cluster.api.ca)
    assert driver.items(f"{path}/pods") == []
    for forbidden in (f"{path}/secrets", "/api/v1/namespaces/default/pods"):
        with pytest.raises(AssertionError, match="403"):
            driver.get(forbidden)
    driver.close()
