"""HDFS and YARN with the daemons of Apache Hadoop: one NameNode, one ResourceManager, and DataNodes and NodeManagers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import psutil

from sluiceway.stack import maven
from sluiceway.stack.ports import free_port
from support.clusters.daemons import HOST, MARKER, Daemon, application_masters, end_all, executors, kill, members
from support.clusters.standalone import spark_home
from support.eventually import LIMIT, eventually
from support.guard import Guard

#: The version of the client in PySpark 4.0.
HADOOP_VERSION = "3.4.1"
_ARTIFACTS = (
    "hadoop-common",
    "hadoop-hdfs",
    "hadoop-hdfs-client",
    "hadoop-yarn-server-resourcemanager",
    "hadoop-yarn-server-nodemanager",
    "hadoop-yarn-server-timelineservice",
    "hadoop-yarn-client",
)
COORDINATES = (
    *(f"org.apache.hadoop:{artifact}:{HADOOP_VERSION}" for artifact in _ARTIFACTS),
    "com.fasterxml.jackson.core:jackson-core:2.12.7",  # an older one, which the others lead to, lacks a class of the web server
)

_LOG4J = """\
log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c: %m%n
"""


def classpath(conf: Path) -> str:
    """Return the class path of Hadoop's daemons with a configuration folder; the first call on a machine downloads 90 MB."""
    jars = maven.resolve(COORDINATES, title=f"Apache Hadoop {HADOOP_VERSION} (about 90 MB)", progress=_say)
    return os.pathsep.join((str(conf), maven.classpath(jars)))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def write_conf(folder: Path, **files: Mapping[str, object]) -> Path:
    """Write Hadoop's configuration files into a folder; keyword arguments are their names, with underscores for dashes."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "log4j.properties").write_text(_LOG4J)
    for name, properties in files.items():
        lines = [
            f"<property><name>{escape(key)}</name><value>{escape(str(value))}</value></property>"
            for key, value in properties.items()
        ]
        text = "\n".join(("<configuration>", *lines, "</configuration>", ""))
        (folder / f"{name.replace('_', '-')}.xml").write_text(text)
    return folder


def get_json(url: str) -> dict[str, Any]:
    """Return a JSON document from a daemon's web server, empty if it does not answer."""
    try:
        with urllib.request.urlopen(url, timeout=10) as response:  # noqa: S310 (our own server)
            found: dict[str, Any] = json.load(response)
            return found
    except (OSError, ValueError):
        return {}


class Hdfs:
    """A NameNode and DataNodes.

    Args:
        folder: holds the data, logs and configuration.
        nodes: the number of DataNodes.
        core: settings for core-site.xml that override those here.
        site: settings for hdfs-site.xml that override those here.
        options: more options of the JVMs.
        env: more environment variables of the JVMs.
    """

    def __init__(
        self,
        folder: Path,
        nodes: int = 2,
        *,
        core: Mapping[str, object] | None = None,
        site: Mapping[str, object] | None = None,
        options: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self._options = options
        self._env = {"HADOOP_LOG_DIR": str(folder), **(env or {})}
        rpc, web = free_port(), free_port()
        self.web = f"http://{HOST}:{web}"
        self.url = f"hdfs://{HOST}:{rpc}"
        self.core = {"fs.defaultFS": self.url, "hadoop.tmp.dir": folder / "tmp", **(core or {})}
        self.site = {
            "dfs.replication": 1,
            "dfs.namenode.name.dir": f"file://{folder}/name",
            "dfs.namenode.rpc-address": f"{HOST}:{rpc}",
            "dfs.namenode.http-address": f"{HOST}:{web}",
            "dfs.namenode.datanode.registration.ip-hostname-check": "false",
            "dfs.namenode.safemode.extension": 0,
            "dfs.heartbeat.interval": 1,
            "dfs.permissions.enabled": "false",
            **(site or {}),
        }
        self.conf = write_conf(folder / "conf-hdfs", core_site=self.core, hdfs_site=self.site)
        for webapp in ("hdfs", "datanode"):  # the daemons require the folders of web pages, which the jars do not have
            (self.conf / "webapps" / webapp).mkdir(parents=True, exist_ok=True)
        self.name_node = self._daemon("namenode", "namenode.NameNode", [])
        self.data_nodes = [self._data_node(number) for number in range(nodes)]

    def _daemon(self, name: str, main: str, arguments: list[str]) -> Daemon:
        main = f"org.apache.hadoop.hdfs.server.{main}"
        return Daemon(name, classpath(self.conf), main, arguments, self.folder, options=self._options, env=self._env)

    def _data_node(self, number: int) -> Daemon:
        settings = {
            "dfs.datanode.data.dir": f"file://{self.folder}/data-{number}",
            "dfs.datanode.hostname": HOST,
            **{f"dfs.datanode.{kind}address": f"{HOST}:{free_port()}" for kind in ("", "http.", "ipc.")},
        }
        arguments = [part for key, value in settings.items() for part in ("-D", f"{key}={value}")]
        return self._daemon(f"datanode-{number}", "datanode.DataNode", arguments)

    def start(self) -> None:
        """Start the daemons that do not run; return once all DataNodes have registered."""
        if not (self.folder / "name" / "current").exists():
            self._format()
        for daemon in (self.name_node, *self.data_nodes):
            daemon.start()

    def await_ready(self) -> None:
        bean = "Hadoop:service=NameNode,name=FSNamesystemState"

        def ready() -> bool:
            beans = get_json(f"{self.web}/jmx?qry={bean}").get("beans")
            state = beans[0] if beans else {}
            return state.get("NumLiveDataNodes") == len(self.data_nodes) and state.get("FSState") == "Operational"

        self.name_node.wait_until(ready, LIMIT)

    def _format(self) -> None:
        self.run(self.name_node, "-format", "-nonInteractive")

    def admin(self, tool: str, *arguments: str) -> str:
        """Run an administrator's tool, such as ``DFSAdmin``, and return its output."""
        command = Daemon(
            tool, classpath(self.conf), f"org.apache.hadoop.hdfs.tools.{tool}", (), self.folder, options=self._options
        )
        return self.run(command, *arguments)

    def run(self, daemon: Daemon, *arguments: str) -> str:
        """Run a daemon's command with arguments, wait for its end, and return its output."""
        env = {**os.environ, **daemon.env}
        done = subprocess.run([*daemon.command, *arguments], capture_output=True, text=True, timeout=300, env=env, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    def stop(self) -> None:
        for daemon in (*self.data_nodes, self.name_node):
            daemon.stop(5)


class Yarn:
    """A ResourceManager that keeps its state in files, and NodeManagers, over an HDFS.

    A NodeManager is the host of its containers: ``kill_host`` ends both. After ``expiry_seconds`` without a NodeManager's
    heartbeat the ResourceManager takes its containers for lost.
    """

    def __init__(self, folder: Path, *, nodes: int = 2, memory: int = 6144, cores: int = 8, expiry_seconds: int = 10) -> None:
        self.folder = folder
        self.hdfs = Hdfs(folder)
        self._web = free_port()
        self.web = f"http://{HOST}:{self._web}/ws/v1/cluster"
        services = ("", "scheduler.", "resource-tracker.", "admin.")
        addresses = {f"yarn.resourcemanager.{each}address": f"{HOST}:{free_port()}" for each in services}
        self._site: dict[str, object] = {
            "yarn.resourcemanager.hostname": HOST,
            **addresses,
            "yarn.resourcemanager.webapp.address": f"{HOST}:{self._web}",
            "yarn.resourcemanager.recovery.enabled": "true",
            "yarn.resourcemanager.work-preserving-recovery.enabled": "true",
            "yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms": 1000,
            "yarn.resourcemanager.store.class": "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore",
            "yarn.resourcemanager.fs.state-store.uri": f"file://{folder}/rm-state",
            "yarn.resourcemanager.am.max-attempts": 2,
            "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": 200,
            "yarn.nm.liveness-monitor.expiry-interval-ms": expiry_seconds * 1000,
            "yarn.am.liveness-monitor.expiry-interval-ms": 60_000,
            "yarn.resourcemanager.connect.retry-interval.ms": 1000,
            "yarn.client.nodemanager-connect.max-wait-ms": 10_000,
            "yarn.client.nodemanager-connect.retry-interval-ms": 1000,
            "yarn.scheduler.minimum-allocation-mb": 128,
            "yarn.scheduler.maximum-allocation-mb": memory,
            "yarn.nodemanager.resource.memory-mb": memory,
            "yarn.nodemanager.resource.cpu-vcores": cores,
            "yarn.nodemanager.vmem-check-enabled": "false",
            "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": 99,
            "yarn.nodemanager.delete.debug-delay-sec": 3600,  # keep the logs of containers for failed tests
            "yarn.nodemanager.env-whitelist": f"JAVA_HOME,HADOOP_CONF_DIR,LANG,TZ,{MARKER}",
            "yarn.nodemanager.recovery.enabled": "true",
            # Spark brings Hadoop's client itself.
            "yarn.application.classpath": folder / "conf",
        }
        scheduler = {
            "yarn.scheduler.capacity.root.queues": "default",
            "yarn.scheduler.capacity.root.default.capacity": 100,
            "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
        }
        self._files = {"core_site": self.hdfs.core, "hdfs_site": self.hdfs.site, "capacity_scheduler": scheduler}
        self.conf = write_conf(folder / "conf", yarn_site=self._site, **self._files)
        self.resource_manager = self._daemon("resourcemanager", self.conf, "resourcemanager.ResourceManager")
        self.node_managers = [self._node_manager(number) for number in range(nodes)]
        self._guard = Guard(end_all, folder)

    def _daemon(self, name: str, conf: Path, main: str) -> Daemon:
        options = [f"-Dyarn.log.dir={self.folder}", f"-Dhadoop.log.dir={self.folder}"]
        main = f"org.apache.hadoop.yarn.server.{main}"
        env = {"HADOOP_CONF_DIR": str(self.conf), "HADOOP_LOG_DIR": str(self.folder)}
        return Daemon(name, classpath(conf), main, [], self.folder, heap="384m", options=options, env=env)

    def _node_manager(self, number: int) -> Daemon:
        own = {
            **self._site,
            "yarn.nodemanager.hostname": HOST,
            "yarn.nodemanager.address": f"{HOST}:{free_port()}",  # recovery requires a fixed port
            **{
                f"yarn.nodemanager.{each}.address": f"{HOST}:{free_port()}"
                for each in ("localizer", "webapp", "collector-service")
            },
            "yarn.nodemanager.local-dirs": self.folder / f"node-{number}/local",
            "yarn.nodemanager.log-dirs": self.folder / f"node-{number}/logs",
            "yarn.nodemanager.recovery.dir": self.folder / f"node-{number}/recovery",
        }
        conf = write_conf(self.folder / f"conf-node-{number}", yarn_site=own, **self._files)
        return self._daemon(f"nodemanager-{number}", conf, "nodemanager.NodeManager")

    def start(self) -> None:
        """Start all daemons that do not run, and wait until all nodes have registered."""
        self.hdfs.start()
        for daemon in (self.resource_manager, *self.node_managers):
            daemon.start()
        self.hdfs.await_ready()
        eventually(lambda: self.active_nodes() == len(self.node_managers), what=self._problem())

    def _problem(self) -> str:
        return f"registered NodeManagers; see the logs in {self.folder}"

    def stop(self) -> None:
        """End all processes."""
        end_all(str(self.folder))  # at once: the data is not needed any more
        for daemon in (*self.node_managers, self.resource_manager):
            daemon.stop(5)
        self.hdfs.stop()
        self._guard.close()

    def environment(self) -> dict[str, str]:
        """Return the environment variables with which spark-submit finds this cluster."""
        found = {"HADOOP_CONF_DIR": str(self.conf), "YARN_CONF_DIR": str(self.conf), "SPARK_LOCAL_IP": HOST}
        # Every node has PySpark installed, so spark-submit need not upload its zips.
        return {**found, "PYSPARK_ARCHIVES_PATH": f"local:{spark_home().parent}"}

    @staticmethod
    def settings() -> dict[str, str]:
        """Return Spark settings for small applications: nothing is uploaded, and containers run this Python."""
        return {
            "spark.yarn.jars": f"local:{spark_home()}/jars/*",
            "spark.pyspark.python": sys.executable,
            "spark.yarn.appMasterEnv.PYSPARK_PYTHON": sys.executable,
            "spark.yarn.am.memory": "512m",
            "spark.driver.memory": "512m",
            "spark.executor.memory": "512m",
        }

    # Nodes.

    def active_nodes(self) -> int:
        return int(get_json(f"{self.web}/metrics").get("clusterMetrics", {}).get("activeNodes", 0))

    def containers(self, node: int) -> list[psutil.Process]:
        """Return the processes in the containers of a node."""
        marker = str(self.folder / f"node-{node}")
        found = []
        for process in members(self.folder):
            try:
                if process.cwd().startswith(marker):
                    found.append(process)
            except (psutil.Error, OSError):
                continue
        return found

    def kill_host(self, node: int) -> None:
        """Kill a NodeManager and its containers, as if the host were lost."""
        kill(self.node_managers[node].process(), *self.containers(node))

    # Applications.

    def applications(self, states: str = "RUNNING,ACCEPTED") -> list[dict[str, Any]]:
        """Return the ResourceManager's descriptions of applications in these states, the newest first."""
        found = (get_json(f"{self.web}/apps?states={states}").get("apps") or {}).get("app") or []
        return sorted(found, key=lambda each: -each["startedTime"])

    def application(self, name: str) -> str:
        """Return the id of the running application with a name, empty if there is none."""
        return next((str(each["id"]) for each in self.applications() if each["name"] == name), "")

    def kill_application(self, application: str) -> None:
        request = urllib.request.Request(  # noqa: S310 (our own server)
            f"{self.web}/apps/{application}/state?user.name={os.environ.get('USER', 'root')}",
            b'{"state":"KILLED"}',
            {"Content-Type": "application/json"},
            method="PUT",
        )
        urllib.request.urlopen(request, timeout=10).close()  # noqa: S310 (our own server)

    def executors(self, application: str = "") -> list[psutil.Process]:
        return executors(self.folder, application)

    def masters(self) -> list[psutil.Process]:
        return application_masters(self.folder)
