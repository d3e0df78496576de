"""A verifiable source whose driver runs in a pod, submitted by the operators' hook as an Airflow task does."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sluiceway.config.environment import HANDED_OVER
from sluiceway.provider.driver.submission import Submission
from sluiceway.provider.driver.submit_options import SubmitOptions
from sluiceway.provider.hooks.spark_submit import ConnectorSubmitHook
from sluiceway.rest.client import ConnectClient
from sluiceway.stack.ports import free_port, port_is_open
from sluiceway.stack.process import BackgroundProcess
from support.clusters.deployments import small
from support.clusters.helm import install
from support.clusters.kubernetes import KubernetesCluster
from support.clusters.kubernetes_api import Object
from support.clusters.poller import Poller
from support.clusters.records import Records
from support.driver import worker_properties, write_properties
from support.eventually import LIMIT, eventually
from support.faults.cluster import Cluster

WORKER_FILE = Path("/etc/sluiceway/worker.properties")
RATE = 50  # records per second and task
FLUSH_SECONDS = 1.0
RETRY_SECONDS = 1.0  # the operators' retry_delay
_MOST_FAILURES = 4
_DRIVERS, _EXECUTORS = "spark-role=driver", "spark-role=executor"
_CONVERTERS = {
    "key.converter": "JsonConverter",
    "key.converter.schemas.enable": "false",
    "value.converter": "JsonConverter",
    "value.converter.schemas.enable": "false",
    "offset.flush.interval.ms": str(int(FLUSH_SECONDS * 1000)),
    "config.providers": "env",
    "config.providers.env.class": "EnvVarConfigProvider",
}


class _Hook(ConnectorSubmitHook):
    """The hook with a Spark connection that no Airflow has."""

    master, namespace = "", ""

    @classmethod
    def get_connection(cls, conn_id: str) -> Any:
        class Connection:
            conn_type, port, host = "spark", None, cls.master
            extra_dejson: Mapping[str, str] = {"deploy-mode": "cluster", "namespace": cls.namespace}

        return Connection()


class KubernetesConnector:
    """A source with ``tasks`` tasks in a namespace of its own. Its driver is submitted again after a failure.

    The name of its topic is a secret: it comes from a Secret by ``${env:CONNECTOR_TOPIC}``. So is the broker's address,
    from Airflow.

    Args:
        cluster: where it runs.
        bootstrap: the broker's address.
        folder: a folder of its own.
        name: the name of the connector, its worker group and its namespace.
        tasks: the number of tasks.
        conf: more Spark settings.

    With ``detached``, to be set before ``start``, spark-submit ends once the driver's pod exists, and Airflow waits for the pod.
    """

    detached = False

    def __init__(
        self, cluster: KubernetesCluster, bootstrap: str, folder: Path, name: str, tasks: int, conf: Mapping[str, str]
    ) -> None:
        self.cluster, self.name, self.tasks = cluster, name, tasks
        self.topic = f"{name}-secret"
        self.bootstrap = bootstrap
        self.failures: list[Exception] = []
        self.submitted = False
        folder.mkdir(parents=True, exist_ok=True)
        port = free_port()
        properties = worker_properties(bootstrap, name, **{**_CONVERTERS, "listeners": f"http://127.0.0.1:{port}"})
        self.spark_conf = folder / "spark-conf"
        self.spark_conf.mkdir()
        self._prepare(properties, folder)
        worker_file = write_properties(folder / "worker.properties", properties)
        rest = [sys.executable, "-m", "sluiceway.cli.main", "rest", str(worker_file)]
        self._rest = BackgroundProcess("rest", rest, folder)
        self._rest.start()
        self._rest.wait_until(lambda: port_is_open("127.0.0.1", port), 120, what="listening")
        self.client = ConnectClient(f"http://127.0.0.1:{port}")
        Cluster(bootstrap).create(self.topic)
        self.config = {
            "connector.class": "VerifiableSource",
            "topic": "${env:CONNECTOR_TOPIC}",
            "tasks.max": str(tasks),
            "throughput": str(RATE),
            "batch.size": "10",
            "complete.record.data": "true",
        }
        self.client.create(name, self.config)
        self.records = Records(bootstrap, self.topic, tasks, "read_uncommitted")
        self.poller = Poller(lambda: self.client.status(name), self.records)
        self._conf = dict(conf)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"supervisor-{name}", daemon=True)

    def start(self) -> float:
        """Submit the driver and wait until all tasks make records; return the seconds that this took."""
        began = time.time()
        self._thread.start()
        return self.await_stable(began) - began

    def await_stable(self, since: float, within: float = LIMIT) -> float:
        """Wait until all tasks have been RUNNING for two seconds after a time; return when they began to be."""

        def stable() -> float:
            assert len(self.failures) < _MOST_FAILURES, "spark-submit fails again and again"
            start = self.poller.stable_since
            return start if start is not None and start >= since and time.time() - start >= 2 else 0.0

        try:
            return eventually(stable, within=within, what=f"RUNNING tasks of {self.name}")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.poller.story(since)}\n{self.failures}\n{self.driver_log()[-6000:]}") from None

    def await_end(self, within: float = LIMIT) -> None:
        """Wait until Airflow's task would end: after spark-submit, and after the tracking of a detached driver."""
        eventually(lambda: not self._thread.is_alive(), within=within, what=f"the driver's end\n{self.driver_log()[-6000:]}")

    def drivers(self) -> list[Object]:
        """Return the driver pods, the oldest first."""
        return sorted(self.cluster.pods(self.name, _DRIVERS), key=lambda pod: str(pod["metadata"]["creationTimestamp"]))

    def executors(self) -> list[Object]:
        """Return the running executor pods."""
        return [pod for pod in self.cluster.pods(self.name, _EXECUTORS) if pod["status"]["phase"] == "Running"]

    def driver_log(self) -> str:
        return "\n".join(self.cluster.log_of(pod["metadata"]["name"]) for pod in self.drivers()[-1:])

    def missing(self) -> int:
        return sum(each.missing for each in self.records.tasks)

    def doubled(self) -> int:
        return sum(each.doubled for each in self.records.tasks)

    def close(self) -> None:
        self._stopping.set()
        for pod in self.cluster.pods(self.name):
            self.cluster.api.delete(f"/api/v1/namespaces/{self.name}/pods/{pod['metadata']['name']}", grace=0)
        if self._thread.ident is not None:
            self._thread.join(LIMIT)
        self.poller.close()
        self.records.close()
        self.client.close()
        self._rest.stop(5)

    def _prepare(self, properties: Mapping[str, str], folder: Path) -> None:
        """Create the namespace with what the chart makes, and the connector's Secret."""
        self.cluster.prepare_namespace(self.name)
        in_pods = {**properties, "bootstrap.servers": "127.0.0.1:1"}  # the true address comes from Airflow
        text = "".join(f"{key}={value}\n" for key, value in in_pods.items())
        values = {"worker": text, "secrets": ["orders"], "spark": small()}
        secret = {"metadata": {"name": "orders"}, "stringData": {"CONNECTOR_TOPIC": self.topic}}
        self.cluster.api.create({"kind": "Secret", "apiVersion": "v1", **secret}, self.name)
        install(self.cluster.api, self.name, folder, values, self.spark_conf)

    def hook(self) -> ConnectorSubmitHook:
        """Return the hook of an Airflow task that submits the driver."""
        values = {"worker::bootstrap.servers": self.bootstrap}
        kind = type("Hook", (_Hook,), {"master": f"k8s://{self.cluster.url}", "namespace": self.name})
        submission = Submission(self.name, WORKER_FILE, "long-running", self.config)
        options = SubmitOptions(
            env_vars={HANDED_OVER: json.dumps(values)}, name=submission.name, track_driver_via_k8s_api=self.detached
        )
        return kind(submission, conn_id="spark", conf=self._conf, options=options)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                hook = self.hook()
                pod = hook.submit("unused.py")
                if self.detached:
                    self.submitted = True
                    hook.await_end(str(pod))
            except Exception as error:  # noqa: BLE001 (Airflow would retry, whatever the error is)
                self.failures.append(error)
                self._stopping.wait(RETRY_SECONDS)
            else:
                return


@contextmanager
def airflow_environment(connector: KubernetesConnector) -> Iterator[None]:
    """Give this process what Airflow's workers have: access to Kubernetes, and Spark's configuration folder."""
    kubeconfig = str(connector.cluster.kubeconfig("airflow-worker", connector.name))
    wanted = {
        "SPARK_CONF_DIR": str(connector.spark_conf),
        "KUBECONFIG": kubeconfig,
        "AIRFLOW__KUBERNETES_EXECUTOR__IN_CLUSTER": "False",
        "AIRFLOW__KUBERNETES_EXECUTOR__CONFIG_FILE": kubeconfig,
    }
    before = {key: os.environ.get(key) for key in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value
