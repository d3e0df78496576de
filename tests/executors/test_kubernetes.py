"""Connectors under KubernetesExecutor while each part of Airflow, of Kubernetes, and of the connectors is killed.

The source's driver and executor are pods of Spark's, for which its task waits in the triggerer; the sink's driver is a process in
the pod of its task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing

import pytest

from support.clusters import kubernetes
from support.clusters.daemons import running
from support.clusters.kubernetes import KubernetesCluster
from support.clusters.kubernetes_api import Object, pod_path
from support.clusters.kubernetes_stack import IN_THE_TASK, KubernetesStack, kubernetes_stack
from support.eventually import eventually
from support.faults import airflow_job
from support.faults.airflow_job import Job
from support.faults.rows import NewRow
from support.pipe import EXACTLY_ONCE, WORKER, Pipe

pytest.importorskip("airflow.providers.cncf.kubernetes.executors.kubernetes_executor", reason="needs pip install '.[kubernetes]'")

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.airflow,
    pytest.mark.kafka,
    pytest.mark.long,
    pytest.mark.timeout(7200),
    pytest.mark.skipif(bool(kubernetes.unavailable()), reason=kubernetes.unavailable() or ""),
]

_DAG = """
from datetime import datetime

from airflow.sdk import DAG
from sluiceway.operators import SinkConnectorOperator

with DAG({name!r}, schedule="@continuous", start_date=datetime(2026, 1, 1), max_active_runs=1, catchup=False):
    SinkConnectorOperator(task_id="run", config={config!r}, conn_id={conn_id!r})
"""

Kill = Callable[[KubernetesStack, Job], None]


class JobOfDagFile(Job):
    """A connector of a hand-written DAG, whose driver runs in the pod of its task."""

    def create(self) -> None:
        text = _DAG.format(name=self.name, config=self.config, conn_id=IN_THE_TASK)
        (self.stack.home / "airflow" / "dags" / f"{self.name}.py").write_text(text)
        eventually(lambda: self.stack.dag(self.name), what=f"the DAG {self.name}")


def driver_pod(stack: KubernetesStack, job: Job) -> Object:
    return eventually(lambda: stack.spark_pods(job.name, "driver"), what=f"a driver's pod of {job.name}")[0]


def executor_pod(stack: KubernetesStack, job: Job) -> Object:
    return eventually(lambda: stack.spark_pods(job.name, "executor"), what=f"an executor's pod of {job.name}")[0]


def task_pod(stack: KubernetesStack, job: Job) -> Object:
    return eventually(lambda: stack.task_pods(job.name), what=f"a task's pod of {job.name}")[0]


def _crash(pod: Callable[[KubernetesStack, Job], Object]) -> Kill:
    return lambda stack, job: stack.cluster.container_of(pod(stack, job)["metadata"]["name"]).kill()


def _evict(pod: Callable[[KubernetesStack, Job], Object]) -> Kill:
    return lambda stack, job: stack.cluster.api.delete(pod_path(pod(stack, job)))


def _node(stack: KubernetesStack, job: Job) -> None:
    doomed = driver_pod(stack, job)["spec"]["nodeName"]
    stack.cluster.add_node(f"{doomed}-next")
    stack.cluster.lose_node(doomed)


def _component(name: str) -> Kill:
    def kill(stack: KubernetesStack, _job: Job) -> None:
        airflow_job.kill(stack, name)
        stack.up()

    return kill


def _api_server(stack: KubernetesStack, _job: Job) -> None:
    stack.cluster.restart_api_server()


#: Functions that kill each part, of which connectors (0: the source, 1: the sink), and whether drivers survive its end.
PARTS: Mapping[str, tuple[Kill, tuple[int, ...], bool]] = {
    "driver's pod": (_crash(driver_pod), (0,), False),
    "driver's pod, evicted": (_evict(driver_pod), (0,), False),
    "executor's pod": (_crash(executor_pod), (0,), True),
    "task's pod with its driver": (_crash(task_pod), (1,), False),
    "task's pod with its driver, evicted": (_evict(task_pod), (1,), False),
    "node": (_node, (0,), False),
    "Kubernetes API server": (_api_server, (0, 1), True),
    "scheduler": (_component("scheduler"), (0, 1), True),
    "DAG processor": (_component("dag-processor"), (0, 1), True),
    "triggerer": (_component("triggerer"), (0, 1), True),
    "API server": (_component("api-server"), (0, 1), True),
}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesStack]:
    with (
        running(KubernetesCluster(tmp_path_factory.mktemp("kubernetes"))) as cluster,
        kubernetes_stack(tmp_path_factory.mktemp("stack"), cluster, WORKER) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def source_and_sink(stack: KubernetesStack) -> Iterator[Pipe]:
    """A source with pods of Spark's, and a sink in its task's pod; they are paused between two tests."""
    with closing(Pipe(stack, "numbers", stack.home / "results", JobOfDagFile)) as made:
        yield made


@pytest.fixture
def pipe(source_and_sink: Pipe) -> Pipe:
    """The same, running."""
    source_and_sink.start()
    return source_and_sink


@pytest.mark.parametrize("part", PARTS)
def test_connectors_recover_from_the_kill_of_any_part(
    stack: KubernetesStack, pipe: Pipe, row: NewRow, kills: int, part: str
) -> None:
    kill, of, outlived = PARTS[part]
    made = row(f"Kubernetes: {part} killed, {kills} times", EXACTLY_ONCE)
    jobs, counted = [pipe.jobs[number] for number in of], part == "executor's pod"
    pipe.survives(made, part, kills, lambda job: kill(stack, job), outlived=outlived, of=jobs, counted=counted)
