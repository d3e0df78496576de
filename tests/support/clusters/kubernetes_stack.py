"""Airflow with KubernetesExecutor: tasks are pods, drivers are pods of Spark or run in the pod of their task."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from sluiceway.stack.addresses import Addresses
from sluiceway.stack.airflow import MARKER_VARIABLE
from support.clusters.deployments import small
from support.clusters.helm import AIRFLOW_ACCOUNT, install
from support.clusters.kubernetes import KubernetesCluster
from support.clusters.kubernetes_api import Object
from support.stack import SOON_DEAD, RunningStack

NAMESPACE = "connectors"

#: The Spark connection with which a driver is a process in the pod of its task.
IN_THE_TASK = "in_the_task"

_CONF_DIR = "spark-conf"


class KubernetesStack(RunningStack):
    """A running stack whose tasks run in pods of ``cluster``. The default Spark connection makes a pod of each driver, too.

    Start it with ``kubernetes_stack``.
    """

    def __init__(self, home: Path, cluster: KubernetesCluster, worker: Mapping[str, str]) -> None:
        self.cluster = cluster
        settings = {
            "CORE__EXECUTOR": "KubernetesExecutor",
            "KUBERNETES_EXECUTOR__NAMESPACE": NAMESPACE,
            "KUBERNETES_EXECUTOR__IN_CLUSTER": "False",
            "KUBERNETES_EXECUTOR__CONFIG_FILE": str(cluster.kubeconfig(AIRFLOW_ACCOUNT, NAMESPACE)),
            "KUBERNETES_EXECUTOR__POD_TEMPLATE_FILE": str(home / "task-pod.json"),
            "KUBERNETES_EXECUTOR__WORKER_CONTAINER_REPOSITORY": "airflow",
            "KUBERNETES_EXECUTOR__WORKER_CONTAINER_TAG": "test",
            "SLUICEWAY__PAUSE_LINGER": "0",  # a pause ends tasks that outlive their worker
            **SOON_DEAD,
        }
        super().__init__(home, postgres=True, settings=settings, worker=worker)

    def up(self) -> Addresses:
        """Start all processes that do not run, as systemd would."""
        addresses = super().up()
        (self.home / "task-pod.json").write_text(json.dumps(self._task_pod()))
        return addresses

    def task_pods(self, name: str) -> list[Object]:
        """Return the running pods of the tasks of a DAG."""
        return _running(self.cluster.pods(NAMESPACE, f"dag_id={name}"))

    def spark_pods(self, name: str, role: str) -> list[Object]:
        """Return the running pods of a connector's Spark application: ``role`` is "driver" or "executor"."""
        return _running(self.cluster.pods(NAMESPACE, f"spark-role={role},spark-app-name=sluiceway-{name}"))

    def _task_pod(self) -> Object:
        """Return the template of the pods of tasks, which see the folder of the stack as a volume."""
        inherited = {key: os.environ[key] for key in _environment(self.home)}
        environment = {**inherited, **self.airflow_environment()}
        home: dict[str, Any] = {"name": "home", "hostPath": {"path": str(self.home)}}
        container = {
            "name": "base",
            "image": "airflow:test",
            "env": [{"name": key, "value": value} for key, value in environment.items()],
            "volumeMounts": [{"name": "home", "mountPath": str(self.home)}],
        }
        spec = {"serviceAccountName": AIRFLOW_ACCOUNT, "restartPolicy": "Never", "containers": [container], "volumes": [home]}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "task"}, "spec": spec}


def _running(pods: list[Object]) -> list[Object]:
    return [pod for pod in pods if pod["status"]["phase"] == "Running"]


def _environment(home: Path, cluster: KubernetesCluster | None = None) -> dict[str, str]:
    """Return what every process of Airflow gets beside its settings."""
    pods = {"deploy-mode": "cluster", "namespace": NAMESPACE}
    master = "" if cluster is None else f"k8s://{cluster.url}"
    return {
        "SPARK_CONF_DIR": str(home / _CONF_DIR),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": master, "extra": pods}),
        f"AIRFLOW_CONN_{IN_THE_TASK.upper()}": json.dumps({"conn_type": "spark", "host": "local[2]"}),
    }


@contextmanager
def kubernetes_stack(home: Path, cluster: KubernetesCluster, worker: Mapping[str, str]) -> Iterator[KubernetesStack]:
    """Prepare a namespace with what the chart makes, and run a stack that uses it."""
    conf = home / _CONF_DIR
    conf.mkdir(parents=True)
    cluster.prepare_namespace(NAMESPACE)
    spark = {**small(), f"spark.kubernetes.driverEnv.{MARKER_VARIABLE}": str(home)}
    install(cluster.api, NAMESPACE, home, {"worker": "", "spark": spark}, conf)
    for each in _rights_of_the_executor():
        cluster.api.create(each, NAMESPACE)
    with mock.patch.dict(os.environ, _environment(home, cluster)):
        stack = KubernetesStack(home, cluster, worker)
        try:
            yield stack
        finally:
            stack.close()


def _rights_of_the_executor() -> list[Object]:
    """Return what Airflow's chart would give to the scheduler: its pods of tasks."""
    kinds = [("pods", ["create", "list", "get", "patch", "watch", "delete"]), ("pods/log", ["get"]), ("events", ["list"])]
    group = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": [""], "resources": [kind], "verbs": verbs} for kind, verbs in kinds]
    role = {"kind": "Role", "apiVersion": f"{group}/v1", "metadata": {"name": "pod-launcher"}, "rules": rules}
    bound = {
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "pod-launcher"},
        "subjects": [{"kind": "ServiceAccount", "name": AIRFLOW_ACCOUNT}],
    }
    return [role, {"kind": "RoleBinding", "apiVersion": f"{group}/v1", "metadata": {"name": "pod-launcher"}, **bound}]
