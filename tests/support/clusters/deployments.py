"""The ways to run a driver: on this machine, standalone in client mode, YARN in client and in cluster mode."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from sluiceway.spark import class_archive
from sluiceway.spark.session import local_conf
from support.clusters.daemons import command_of, python_drivers
from support.clusters.hadoop import Yarn
from support.clusters.local import LocalSpark
from support.clusters.standalone import SparkCluster


@dataclass(frozen=True)
class Deployment:
    """A cluster and a deploy mode.

    ``settings`` are Spark settings for small executors with one slot each, at least one more than the connector has tasks.
    """

    name: str
    cluster: LocalSpark | SparkCluster | Yarn
    deploy_mode: str
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def master(self) -> str:
        return "yarn" if isinstance(self.cluster, Yarn) else self.cluster.url

    @property
    def folder(self) -> Path:
        return self.cluster.folder

    def environment(self) -> dict[str, str]:
        """Return the environment variables of spark-submit."""
        return self.cluster.environment() if isinstance(self.cluster, Yarn) else {}

    def application(self, connector: str) -> str:
        """Return the id of a connector's running application, empty if there is none."""
        if isinstance(self.cluster, Yarn):
            return self.cluster.application(f"sluiceway-{connector}")
        if isinstance(self.cluster, LocalSpark):
            return ""
        found = [each for each in self.cluster.state().get("activeapps", ()) if each["name"] == f"sluiceway-{connector}"]
        return str(found[0]["id"]) if found else ""

    def executors(self, connector: str) -> list[psutil.Process]:
        """Return the JVMs of a connector's executors."""
        application = self.application(connector)
        return self.cluster.executors(application) if application and not isinstance(self.cluster, LocalSpark) else []

    def drivers(self, name: str) -> list[psutil.Process]:
        """Return the Python drivers of a connector, or of an application that connectors share."""
        wanted = (f"--connector {name} ", f"--application {name} ")
        return [each for each in python_drivers(self.folder) if any(text in f"{command_of(each)} " for text in wanted)]


def small(**more: str) -> dict[str, str]:
    """Return settings for executors with little memory and one slot each; keyword arguments have underscores for dots."""
    return {
        "spark.executor.cores": "1",
        "spark.executor.memory": "512m",
        "spark.driver.memory": "512m",
        "spark.ui.enabled": "false",
        **{key.replace("_", "."): value for key, value in more.items()},
    }


def archived() -> dict[str, str]:
    """Return settings of a cluster whose hosts have a class archive; the first call on a machine makes it."""
    return class_archive.container_conf(class_archive.make(containers=True))


def local(folder: Path) -> Deployment:
    """Return a driver on this machine, whose JVM is the executor too."""
    settings = {**local_conf(), "spark.driver.memory": "1g", "spark.log.level": "WARN"}
    return Deployment("local", LocalSpark(folder), "client", settings)


def standalone(cluster: SparkCluster, slots: int = 4) -> Deployment:
    settings = {
        **archived(),
        **small(
            spark_cores_max=str(slots),
            spark_dynamicAllocation_minExecutors=str(slots),
            spark_driver_host="127.0.0.1",
            spark_pyspark_python=sys.executable,
        ),
    }
    return Deployment("standalone", cluster, "client", settings)


def yarn(cluster: Yarn, deploy_mode: str, slots: int = 3) -> Deployment:
    size = {"spark.executor.instances": str(slots), "spark.dynamicAllocation.minExecutors": str(slots)}
    settings = {
        **archived(),
        **small(),
        **size,
        **cluster.settings(),
        # The application master asks for containers this often, and reports with the same interval.
        "spark.yarn.scheduler.heartbeat.interval-ms": "1000",
        "spark.yarn.submit.waitAppCompletion": "true",
        "spark.yarn.report.interval": "1s",
    }
    return Deployment(f"YARN {deploy_mode} mode", cluster, deploy_mode, settings)


def sharing_standalone(cluster: SparkCluster) -> Deployment:
    """Return two executors of five slots each, for a shared application with at most ten tasks."""
    settings = {
        **standalone(cluster, slots=10).settings,
        "spark.executor.cores": "5",
        "spark.dynamicAllocation.minExecutors": "2",
    }
    return Deployment("standalone, 2 hosts", cluster, "client", settings)


def sharing_yarn(cluster: Yarn, deploy_mode: str) -> Deployment:
    """Return two executors of four slots each, YARN's limit for a container; one host has memory for both."""
    settings = {
        **yarn(cluster, deploy_mode, slots=2).settings,
        "spark.executor.cores": "4",
        "spark.executor.memoryOverhead": "2g",
    }
    return Deployment(f"YARN {deploy_mode}, HDFS", cluster, deploy_mode, settings)
