"""A real Airflow whose operators submit drivers to a YARN of the tests."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import orjson
import psutil

from sluiceway.stack.airflow import airflow_process
from support.clusters.daemons import HOST, MARKER
from support.clusters.deployments import Deployment
from support.clusters.deployments import yarn as deployment
from support.clusters.hadoop import Yarn
from support.eventually import eventually
from support.faults.cluster import Cluster
from support.stack import RunningStack

_RUN_SECONDS = 300
_DAG = """
import pendulum
from airflow.sdk import DAG
from sluiceway.operators import SourceConnectorOperator

with DAG({name!r}, schedule=None, start_date=pendulum.datetime(2024, 1, 1, tz="UTC"), catchup=False,
         is_paused_upon_creation=False):
    SourceConnectorOperator(task_id="run", **{arguments!r})
"""


class AirflowOnYarn:
    """Airflow, its REST API and Kafka, and DAGs with one connector operator each."""

    def __init__(self, stack: RunningStack) -> None:
        self.stack = stack

    @staticmethod
    def connection(mode: str) -> str:
        """Return the id of the Spark connection for client or cluster mode; deferred tasks run in cluster mode."""
        return "yarn_client" if mode == "client" else "yarn_cluster"

    def start(self, name: str, **arguments: Any) -> None:
        """Add a DAG with an operator, whose arguments are the keyword arguments, and start a run of it."""
        dag = _DAG.format(name=name, arguments=arguments)
        (self.stack.home / "airflow" / "dags" / f"{name}.py").write_text(dag)
        eventually(lambda: self.stack.dag(name), what=f"the DAG {name}")
        self.stack.airflow.post(f"/dags/{name}/dagRuns", json={"logical_date": None}).raise_for_status()

    def run(self, name: str, config: dict[str, str], **arguments: Any) -> None:
        """Run a connector to the end of its DAG run, which must succeed without a second try."""
        self.start(name, config=config, retries=0, **arguments)
        ended = eventually(lambda: self._ended(name), within=_RUN_SECONDS, what=f"the end of {name}")
        assert ended == "success", self.log(name)

    def _ended(self, name: str) -> str | None:
        runs = self.stack.airflow.get(f"/dags/{name}/dagRuns").json().get("dag_runs", ())
        states = [str(each["state"]) for each in runs]
        return states[0] if states and states[0] in ("success", "failed") else None

    def log(self, name: str) -> str:
        """Return the logs of a DAG's task."""
        files = sorted((self.stack.home / "airflow" / "logs").glob(f"dag_id={name}/**/*.log"))
        return "\n".join(file.read_text(errors="replace")[-20_000:] for file in files)

    def tries(self, name: str) -> int:
        """Return the number of the task's current try."""
        answer = self.stack.airflow.get(f"/dags/{name}/dagRuns/~/taskInstances").json()
        return max((int(each["try_number"]) for each in answer.get("task_instances", ())), default=0)

    def scheduler(self) -> psutil.Process:
        """Return the scheduler, whose child processes run the tasks."""
        pid = airflow_process("scheduler", self.stack.home).status().pid
        assert pid is not None
        return psutil.Process(pid)

    def submitter(self, deployment: Deployment, name: str, worker: Path, config: Mapping[str, str]) -> AirflowTask:
        """See ``SubmitterOf``."""
        return AirflowTask(self, deployment, name, worker)

    def values(self, topic: str) -> list[Any]:
        """Return the values in a topic, without their schemas."""
        found = [orjson.loads(each.value or b"null") for each in Cluster(self.stack.addresses.bootstrap).messages(topic)]
        return [each["payload"] if isinstance(each, dict) and each.keys() == {"schema", "payload"} else each for each in found]


class AirflowTask:
    """A task that runs an existing connector's driver and is retried after each failure. See ``Submitter``."""

    def __init__(self, airflow: AirflowOnYarn, deployment: Deployment, name: str, worker: Path) -> None:
        self._airflow, self._deployment, self._name, self._worker = airflow, deployment, name, worker

    def start(self) -> None:
        self._airflow.start(
            self._name,
            connector=self._name,
            worker_properties=str(self._worker),
            conn_id=self._airflow.connection(self._deployment.deploy_mode),
            conf=dict(self._deployment.settings),
            mode="long-running",
            retries=10_000,
            retry_exponential_backoff=0,
        )

    def is_running(self) -> bool:
        return bool(self._deployment.drivers(self._name))

    @property
    def jvm(self) -> psutil.Process | None:
        drivers = self._deployment.drivers(self._name)
        return drivers[0].parent() if drivers and self._deployment.deploy_mode == "client" else None

    def exit_codes(self) -> list[int]:
        return []

    def log_tail(self) -> str:
        return self._airflow.log(self._name)[-5000:]

    def stop(self) -> None:
        (self._airflow.stack.home / "airflow" / "dags" / f"{self._name}.py").unlink(missing_ok=True)
        self._airflow.stack.set_paused(self._name, True)
        eventually(lambda: not self.is_running(), what=f"the end of the driver of {self._name}")


@contextlib.contextmanager
def airflow_on_yarn(yarn: Yarn, home: Path) -> Iterator[AirflowOnYarn]:
    """Yield a running Airflow with the connections ``yarn_client`` and ``yarn_cluster``."""
    conf = home / "spark"
    conf.mkdir(parents=True)
    settings = deployment(yarn, "client").settings
    given = {key: value for key, value in settings.items() if key != "spark.executor.instances"}
    (conf / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in given.items()))
    extra = {"yarn_resourcemanager_webapp_address": yarn.web.partition("/ws/")[0]}
    environment = {
        **yarn.environment(),
        "SPARK_CONF_DIR": str(conf),
        "SPARK_LOCAL_IP": HOST,
        MARKER: str(yarn.folder),
        **{
            f"AIRFLOW_CONN_YARN_{mode.upper()}": json.dumps(
                {"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": mode, **extra}}
            )
            for mode in ("client", "cluster")
        },
    }
    with mock.patch.dict(os.environ, environment):
        stack = RunningStack(home)
        try:
            yield AirflowOnYarn(stack)
        finally:
            stack.close()
