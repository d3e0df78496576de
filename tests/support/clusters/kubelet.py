"""Runs the pods that are bound to one node: a small kubelet whose containers are local processes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import httpx

from support.clusters.containers import Container, Image, NotReadyError
from support.clusters.kubernetes_api import KubernetesApi, Object, pod_path
from support.eventually import LIMIT

log = logging.getLogger(__name__)


class Kubelet:
    """One node. ``sync`` starts, ends and reports its pods; a thread of the cluster calls it several times a second.

    Args:
        name: the node's name.
        api: a client with an administrator's rights.
        folder: where the pods' files and logs are written.
        image: what every container runs with.
        next_ip: returns an address for a new pod.
    """

    def __init__(self, name: str, api: KubernetesApi, folder: Path, image: Image, next_ip: Callable[[], str]) -> None:
        self.name = name
        self.alive = True
        self.containers: dict[str, Container] = {}
        """The pods' containers by the pods' uid; those that have ended too, until their pods are deleted."""
        self._api, self._folder, self._image, self._next_ip = api, folder, image, next_ip
        self._stopping: dict[str, threading.Thread] = {}
        self._reported: set[str] = set()

    def register(self) -> None:
        """Create the node, ready and with room for any pod."""
        room = {"cpu": "64", "memory": "256Gi", "pods": "500"}
        self._api.create({"kind": "Node", "apiVersion": "v1", "metadata": {"name": self.name}})
        status = {"capacity": room, "allocatable": room, "conditions": [_condition("Ready", True)]}
        self._api.patch(f"/api/v1/nodes/{self.name}/status", {"status": status})

    def sync(self, pods: list[Object]) -> None:
        """Make the node's processes match its pods, and report those that have ended."""
        for pod in pods:
            uid = pod["metadata"]["uid"]
            container = self.containers.get(uid)
            deleted = "deletionTimestamp" in pod["metadata"]
            if container is None and not deleted and pod["status"]["phase"] == "Pending":
                self._start(pod)
            elif deleted and uid not in self._stopping:
                self._stop(pod, container)
            elif container is not None and uid not in self._reported and (code := container.exit_code()) is not None:
                self._report_end(pod, container, code)
        for uid in set(self.containers) - {pod["metadata"]["uid"] for pod in pods}:  # deleted with a grace period of 0
            if uid not in self._stopping or not self._stopping[uid].is_alive():
                self.containers.pop(uid).kill()

    def crash(self) -> None:
        """End as a machine does that loses power: every process at once, and no report of it."""
        self.alive = False
        for container in self.containers.values():
            container.kill()

    def close(self) -> None:
        """End every pod and wait for it."""
        self.crash()
        for thread in self._stopping.values():
            thread.join(LIMIT)

    def container_of(self, pod: str) -> Container | None:
        """Return the container of the pod with this name."""
        return next((each for each in self.containers.values() if each.pod["metadata"]["name"] == pod), None)

    def _start(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        container = Container(self._api, pod, self._folder / "pods" / uid, self._next_ip(), self._image)
        try:
            container.start()
        except NotReadyError as error:
            log.debug("Pod %s waits: %s", pod["metadata"]["name"], error)
            return
        self.containers[uid] = container
        state = {"running": {"startedAt": _now()}}
        self._report(pod, "Running", container, state, startTime=_now())

    def _stop(self, pod: Object, container: Container | None) -> None:
        """Delete a pod within its grace period, in a thread of its own."""

        def stop() -> None:
            if container is not None:
                container.stop(pod["metadata"].get("deletionGracePeriodSeconds", 30))
                self._report_end(pod, container, container.exit_code() or 0)
            if self.alive:
                self._api.delete(pod_path(pod), grace=0, uid=pod["metadata"]["uid"])

        thread = threading.Thread(target=stop, name=f"stop {pod['metadata']['name']}")
        self._stopping[pod["metadata"]["uid"]] = thread
        thread.start()

    def _report_end(self, pod: Object, container: Container, code: int) -> None:
        self._reported.add(pod["metadata"]["uid"])
        reason = "Completed" if code == 0 else "Error"
        state = {"terminated": {"exitCode": code, "reason": reason, "finishedAt": _now()}}
        self._report(pod, "Failed" if code else "Succeeded", container, state)

    def _report(self, pod: Object, phase: str, container: Container, state: Object, **more: Any) -> None:
        if not self.alive:
            return
        running = phase == "Running"
        spec = pod["spec"]["containers"][0]
        status = {
            "phase": phase,
            "podIP": container.ip,
            "podIPs": [{"ip": container.ip}],
            "conditions": [_condition(kind, running) for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")],
            "containerStatuses": [
                {"name": spec["name"], "image": spec["image"], "imageID": "", "restartCount": 0, "ready": running, "state": state}
            ],
            **more,
        }
        try:
            self._api.patch(f"{pod_path(pod)}/status", {"status": status})
        except (AssertionError, httpx.HTTPError) as error:  # the pod has been deleted with a grace period of 0
            log.debug("Pod %s: %s", pod["metadata"]["name"], error)


def _condition(kind: str, met: bool) -> Object:
    return {"type": kind, "status": "True" if met else "False", "lastTransitionTime": _now(), "reason": "TestKubelet"}


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
