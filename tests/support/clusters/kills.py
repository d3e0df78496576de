"""Kills parts of a cluster or of an application, each in a way that ``Scenario`` can repeat."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import psutil

from support.clusters.daemons import Daemon, kill, task_processes
from support.clusters.deployments import Deployment
from support.clusters.hadoop import Yarn
from support.clusters.local import LocalSpark
from support.clusters.standalone import SparkCluster
from support.eventually import eventually


class Target(Protocol):
    """The processes to kill: a driver, its executors and the cluster below."""

    deployment: Deployment
    bootstrap: str
    name: str

    def executors(self) -> list[psutil.Process]:
        """Return the JVMs of the executors."""

    def drivers(self) -> list[psutil.Process]:
        """Return the Python drivers, of which there should be one."""

    def driver_jvm(self) -> psutil.Process | None:
        """Return spark-submit's process, in client mode the driver's JVM; None if there is none."""

    def worker_id(self) -> str:
        """Return which driver publishes the status."""


Healed = Callable[[], bool]
"""Returns whether the killed part has a successor, without which RUNNING tasks may still be those from before the kill."""
Strike = Callable[[Target, random.Random], Healed]


@dataclass(frozen=True)
class Kill:
    """A fault. ``strike`` causes it, ``restore`` starts what does not come back by itself, after the tasks have recovered."""

    name: str
    strike: Strike
    restore: Callable[[Target], None] = lambda on: None


def kills_of(on: Target) -> list[Kill]:
    """Return the kills that apply to a connector's deployment."""
    driver = [Kill("driver's Python", _python_driver), Kill("application, from outside", _application)]
    if isinstance(on.deployment.cluster, LocalSpark):
        return [
            Kill("executor", _local_executor),
            Kill("driver's JVM", _driver_jvm),
            Kill("driver's Python", _python_driver),
            Kill("host", _local_host),
        ]
    if isinstance(on.deployment.cluster, SparkCluster):
        parts = [
            Kill("host", _spark_host, _start_all),
            Kill("worker", _spark_worker, _start_all),
            Kill("master, started again", _spark_master),
        ]
    else:
        parts = [
            Kill("host", _host, _start_all),
            Kill("NodeManager, started again", _node_manager),
            Kill("ResourceManager, started again", _resource_manager),
            Kill("application master", _application_master),
        ]
    if on.deployment.deploy_mode == "client":
        driver.insert(0, Kill("driver's JVM", _driver_jvm))
    return [Kill("executor", _executor), *parts, *driver]


def _spark(on: Target) -> SparkCluster:
    assert isinstance(on.deployment.cluster, SparkCluster)
    return on.deployment.cluster


def _yarn(on: Target) -> Yarn:
    assert isinstance(on.deployment.cluster, Yarn)
    return on.deployment.cluster


def busy_executors(on: Target) -> list[psutil.Process]:
    """Return the executors that run a task, of which there must be one."""

    def found() -> list[psutil.Process]:
        return [each for each in on.executors() if task_processes(each, on.bootstrap)]

    return eventually(found, what=f"an executor with a task of {on.name}")


def _local_executor(on: Target, chance: random.Random) -> Healed:
    """Kill all Python workers at once, as the loss of the executor does."""

    def found() -> list[psutil.Process]:
        jvm = on.driver_jvm()
        return [] if jvm is None else LocalSpark.tasks(jvm, on.bootstrap)

    kill(*eventually(found, what=f"a task of {on.name}"))
    return _at_once


def _local_host(on: Target, chance: random.Random) -> Healed:
    """Kill the driver's JVM and all processes below it."""
    successor, jvm = _successor(on), on.driver_jvm()
    assert jvm is not None, "no driver runs"
    kill(*jvm.children(recursive=True), jvm)
    return successor


def _at_once() -> bool:
    return True


def _executor(on: Target, chance: random.Random) -> Healed:
    kill(chance.choice(busy_executors(on)))
    return _at_once


def _busy_worker(on: Target, chance: random.Random) -> Daemon:
    """Return a worker that has an executor with a task."""
    parents = {each.ppid() for each in busy_executors(on)}
    return chance.choice([each for each in _spark(on).workers if each.status().pid in parents])


def _spark_host(on: Target, chance: random.Random) -> Healed:
    """Kill a worker with its executors and their Python workers."""
    worker = _busy_worker(on, chance).process()
    kill(worker, *worker.children(recursive=True))
    return _at_once


def _spark_worker(on: Target, chance: random.Random) -> Healed:
    """Kill a worker that has an executor with a task; its executors end themselves."""
    _busy_worker(on, chance).kill()
    return _at_once


def _start_all(on: Target) -> None:
    on.deployment.cluster.start()


def _spark_master(on: Target, chance: random.Random) -> Healed:
    cluster = _spark(on)
    cluster.master.kill()
    cluster.master.start()
    return lambda: cluster.alive_workers() == len(cluster.workers) and bool(on.deployment.application(on.name))


def _host(on: Target, chance: random.Random) -> Healed:
    """Kill a NodeManager and all its containers; one of them runs a task."""
    cluster = _yarn(on)
    busy = {each.pid for each in busy_executors(on)}
    nodes = [node for node in range(len(cluster.node_managers)) if busy & {each.pid for each in cluster.containers(node)}]
    before = _successor(on)
    node = chance.choice(nodes)
    lost_driver = on.deployment.deploy_mode == "cluster" and _driver_pids(on) & {each.pid for each in cluster.containers(node)}
    cluster.kill_host(node)
    return before if lost_driver else _at_once


def _node_manager(on: Target, chance: random.Random) -> Healed:
    cluster = _yarn(on)
    daemon = chance.choice(cluster.node_managers)
    daemon.kill()
    daemon.start()
    return lambda: cluster.active_nodes() == len(cluster.node_managers)


def _resource_manager(on: Target, chance: random.Random) -> Healed:
    cluster = _yarn(on)
    cluster.resource_manager.kill()
    cluster.resource_manager.start()
    return lambda: cluster.active_nodes() == len(cluster.node_managers) and bool(on.deployment.application(on.name))


def _application_master(on: Target, chance: random.Random) -> Healed:
    cluster = _yarn(on)
    masters = eventually(cluster.masters, what="an application master")
    known = {each.pid for each in masters}
    kill(*masters)
    if on.deployment.deploy_mode == "cluster":
        return _successor(on)
    return lambda: bool({each.pid for each in cluster.masters()} - known)


def _driver_jvm(on: Target, chance: random.Random) -> Healed:
    successor = _successor(on)
    jvm = on.driver_jvm()
    assert jvm is not None, "no driver runs"
    kill(jvm)
    return successor


def _python_driver(on: Target, chance: random.Random) -> Healed:
    successor = _successor(on)
    drivers = on.drivers()
    assert drivers, "no driver runs"
    kill(*drivers)
    return successor


def _application(on: Target, chance: random.Random) -> Healed:
    successor = _successor(on)
    cluster = on.deployment.cluster
    assert not isinstance(cluster, LocalSpark), "local mode has no application outside of the driver"
    cluster.kill_application(on.deployment.application(on.name))
    return successor


def airflow_task(on: Target, chance: random.Random) -> Healed:
    """Kill the process of the Airflow task that has submitted the driver."""
    successor = _successor(on)
    jvm = on.driver_jvm()
    assert jvm is not None, "no driver runs"
    task = jvm.parent()
    assert task is not None
    kill(task)
    return successor


def _driver_pids(on: Target) -> set[int]:
    return {each.pid for each in on.drivers()}


def _successor(on: Target) -> Healed:
    """Return a function that tells whether another driver publishes the connector's status."""
    before = on.worker_id()
    return lambda: on.worker_id() != before
