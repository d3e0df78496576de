"""Kills parts of a cluster or of an application, each in a way that ``Scenario`` can repeat."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

from support.clusters.daemons import kill, task_processes
from support.clusters.hadoop import Yarn
from support.clusters.standalone import SparkCluster
from support.eventually import eventually

if TYPE_CHECKING:
    from support.clusters.connector import ClusterConnector

Healed = Callable[[], bool]
"""Returns whether the killed part has a successor, without which RUNNING tasks may still be those from before the kill."""
Strike = Callable[["ClusterConnector", random.Random], Healed]


@dataclass(frozen=True)
class Kill:
    """A fault. ``strike`` causes it, ``restore`` starts what does not come back by itself, after the tasks have recovered."""

    name: str
    strike: Strike
    restore: Callable[[ClusterConnector], None] = lambda on: None


def kills_of(on: ClusterConnector) -> list[Kill]:
    """Return the kills that apply to a connector's deployment."""
    driver = [Kill("driver's Python", _python_driver), Kill("application, from outside", _application)]
    if isinstance(on.deployment.cluster, SparkCluster):
        parts = [Kill("worker", _spark_worker, _start_all), Kill("master, started again", _spark_master)]
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


def _spark(on: ClusterConnector) -> SparkCluster:
    assert isinstance(on.deployment.cluster, SparkCluster)
    return on.deployment.cluster


def _yarn(on: ClusterConnector) -> Yarn:
    assert isinstance(on.deployment.cluster, Yarn)
    return on.deployment.cluster


def busy_executors(on: ClusterConnector) -> list[psutil.Process]:
    """Return the executors that run a task, of which there must be one."""

    def found() -> list[psutil.Process]:
        return [each for each in on.executors() if task_processes(each, on.bootstrap)]

    return eventually(found, within=20, what=f"an executor with a task of {on.name}")


def _at_once() -> bool:
    return True


def _executor(on: ClusterConnector, chance: random.Random) -> Healed:
    kill(chance.choice(busy_executors(on)))
    return _at_once


def _spark_worker(on: ClusterConnector, chance: random.Random) -> Healed:
    """Kill a worker that has an executor with a task; its executors end themselves."""
    cluster = _spark(on)
    parents = {each.ppid() for each in busy_executors(on)}
    chance.choice([each for each in cluster.workers if each.status().pid in parents]).kill()
    return _at_once


def _start_all(on: ClusterConnector) -> None:
    on.deployment.cluster.start()


def _spark_master(on: ClusterConnector, chance: random.Random) -> Healed:
    cluster = _spark(on)
    cluster.master.kill()
    cluster.master.start()
    return lambda: cluster.alive_workers() == len(cluster.workers) and bool(on.deployment.application(on.name))


def _host(on: ClusterConnector, chance: random.Random) -> Healed:
    """Kill a NodeManager and all its containers; one of them runs a task."""
    cluster = _yarn(on)
    busy = {each.pid for each in busy_executors(on)}
    nodes = [node for node in range(len(cluster.node_managers)) if busy & {each.pid for each in cluster.containers(node)}]
    before = _successor(on)
    node = chance.choice(nodes)
    lost_driver = on.deployment.deploy_mode == "cluster" and _driver_pids(on) & {each.pid for each in cluster.containers(node)}
    cluster.kill_host(node)
    return before if lost_driver else _at_once


def _node_manager(on: ClusterConnector, chance: random.Random) -> Healed:
    cluster = _yarn(on)
    daemon = chance.choice(cluster.node_managers)
    daemon.kill()
    daemon.start()
    return lambda: cluster.active_nodes() == len(cluster.node_managers)


def _resource_manager(on: ClusterConnector, chance: random.Random) -> Healed:
    cluster = _yarn(on)
    cluster.resource_manager.kill()
    cluster.resource_manager.start()
    return lambda: cluster.active_nodes() == len(cluster.node_managers) and bool(on.deployment.application(on.name))


def _application_master(on: ClusterConnector, chance: random.Random) -> Healed:
    cluster = _yarn(on)
    masters = eventually(cluster.masters, within=60, what="an application master")
    known = {each.pid for each in masters}
    kill(*masters)
    if on.deployment.deploy_mode == "cluster":
        return _successor(on)
    return lambda: bool({each.pid for each in cluster.masters()} - known)


def _driver_jvm(on: ClusterConnector, chance: random.Random) -> Healed:
    successor = _successor(on)
    jvm = on.driver_jvm()
    assert jvm is not None, "no driver runs"
    kill(jvm)
    return successor


def _python_driver(on: ClusterConnector, chance: random.Random) -> Healed:
    successor = _successor(on)
    drivers = on.drivers()
    assert drivers, "no driver runs"
    kill(*drivers)
    return successor


def _application(on: ClusterConnector, chance: random.Random) -> Healed:
    successor = _successor(on)
    on.deployment.cluster.kill_application(on.deployment.application(on.name))
    return successor


def airflow_task(on: ClusterConnector, chance: random.Random) -> Healed:
    """Kill the process of the Airflow task that has submitted the driver."""
    successor = _successor(on)
    jvm = on.driver_jvm()
    assert jvm is not None, "no driver runs"
    task = jvm.parent()
    assert task is not None
    kill(task)
    return successor


def _driver_pids(on: ClusterConnector) -> set[int]:
    return {each.pid for each in on.drivers()}


def _successor(on: ClusterConnector) -> Healed:
    """Return a function that tells whether another driver publishes the connector's status."""
    before, moment = on.poller.worker_id, time.time()
    return lambda: on.poller.worker_id != before and time.time() > moment
