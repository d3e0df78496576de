"""A Kubernetes cluster without containers: a real API server and etcd, and test kubelets that run pods as local processes."""

from __future__ import annotations

import itertools
import json
import logging
import os
import random
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

import sluiceway
from sluiceway.java_runtime import find_java
from sluiceway.stack.ports import free_port, port_is_open
from sluiceway.stack.process import BackgroundProcess
from support.clusters.containers import Container, Image, hostname, is_available
from support.clusters.kubelet import Kubelet
from support.clusters.kubernetes_api import KubernetesApi, Object, pod_path
from support.clusters.kubernetes_build import APISERVER, ETCD_SERVER, missing
from support.clusters.standalone import spark_home
from support.eventually import LIMIT, eventually
from support.guard import Guard, stop

log = logging.getLogger(__name__)

DOCKER = Path(__file__).parents[3] / "docker"
_ADMIN = "admin-token"
_SYNC_SECONDS = 0.2
_PORT = 443  # pods find the API server at https://kubernetes.default.svc


def unavailable() -> str | None:
    """Return why no such cluster can run here, or None."""
    return is_available() or missing()


class KubernetesCluster:
    """Starts etcd, kube-apiserver with RBAC and admission of service accounts, and nodes.

    Also does the part of the scheduler and of the controllers that Spark needs: binds pods, resolves services' names, creates the
    service accounts ``default``, and deletes pods whose owner is gone. Each pod has an address of its own in 127.0.0.0/8.
    """

    def __init__(self, folder: Path, nodes: int = 2) -> None:
        self.folder = folder
        chosen = random.SystemRandom()
        self._network = f"127.{chosen.randrange(10, 250)}.{chosen.randrange(1, 250)}"
        self._ips = itertools.cycle(f"{self._network}.{number}" for number in range(10, 255))
        self.url = f"https://{self._network}.1"
        self._etcd_port, self._peer_port = free_port(), free_port()
        self._processes: list[BackgroundProcess] = []
        self._hosts = folder / "hosts"
        self._names = [f"node-{number}" for number in range(nodes)]
        self.kubelets: dict[str, Kubelet] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="test kubelet")
        self._guard: Guard | None = None

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write_hosts([])
        self._guard = Guard(stop, self.folder, "kube-apiserver", "etcd")
        self._start_api_server()
        self.api = KubernetesApi(self.url, _ADMIN, self.folder / "certs" / "apiserver.crt")
        for name in self._names:
            self.kubelets[name] = Kubelet(name, self.api, self.folder, self._image(), self._next_ip)
            self.kubelets[name].register()
        self.prepare_namespace("default", create=False)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(LIMIT)
        for kubelet in self.kubelets.values():
            kubelet.close()
        for process in reversed(self._processes):
            process.stop()
        if self._guard is not None:
            self._guard.close()

    def prepare_namespace(self, namespace: str, *, create: bool = True) -> None:
        """Create a namespace with what the controllers put into it."""
        if create:
            self.api.create({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": namespace}})
        certificate = (self.folder / "certs" / "apiserver.crt").read_text()
        authority = {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": certificate}}
        self.api.create({"kind": "ConfigMap", "apiVersion": "v1", **authority}, namespace)
        self.api.create({"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "default"}}, namespace)

    def kubeconfig(self, account: str, namespace: str) -> Path:
        """Write a kubeconfig file for a service account, and return its path."""
        token = self.api.token_of(account, namespace)
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": {"server": self.url, "certificate-authority": str(self.api.ca)}}],
            "users": [{"name": account, "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": account, "namespace": namespace}}],
            "current-context": "test",
        }
        path = self.folder / f"kubeconfig-{namespace}-{account}"
        path.write_text(json.dumps(content))
        return path

    def pods(self, namespace: str, selector: str = "") -> list[Object]:
        return self.api.items(f"/api/v1/namespaces/{namespace}/pods?labelSelector={selector}")

    def container_of(self, pod: str) -> Container:
        found = [each for kubelet in self.kubelets.values() if (each := kubelet.container_of(pod)) is not None]
        assert found, f"pod {pod} has no container"
        return found[0]

    def log_of(self, pod: str) -> str:
        path = self.folder / "logs" / f"{pod}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def restart_api_server(self) -> None:
        """Kill the API server, and start it again."""
        apiserver = self._processes[-1]
        pid = apiserver.status().pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not apiserver.is_running(), what="the API server's end")
        apiserver.start()
        apiserver.wait_until(self._is_ready, LIMIT, what="ready")

    def lose_node(self, name: str) -> list[str]:
        """Crash a node and remove it, as a cloud's controller does with a lost instance; return the names of its pods."""
        kubelet = self.kubelets[name]
        lost = self.api.items(f"/api/v1/pods?fieldSelector=spec.nodeName={name}")
        kubelet.crash()
        self.api.delete(f"/api/v1/nodes/{name}")
        for pod in lost:
            self.api.delete(pod_path(pod), grace=0)
        return [pod["metadata"]["name"] for pod in lost]

    def add_node(self, name: str) -> None:
        kubelet = Kubelet(name, self.api, self.folder, self._image(), self._next_ip)
        kubelet.register()
        self.kubelets[name] = kubelet

    # The control plane.

    def _start_api_server(self) -> None:
        key = self.folder / "account.key"
        key.write_bytes(_private_key())
        (self.folder / "tokens.csv").write_text(f"{_ADMIN},admin,1,system:masters\n")
        etcd = f"http://127.0.0.1:{self._etcd_port}"
        peer = f"http://127.0.0.1:{self._peer_port}"
        self._start("etcd", self._etcd_port, [
            ETCD_SERVER.path, "--data-dir", self.folder / "etcd", "--unsafe-no-fsync", "--listen-client-urls", etcd,
            "--advertise-client-urls", etcd, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
            "--initial-cluster", f"default={peer}",
        ])  # fmt: skip
        address = f"{self._network}.1"
        apiserver = self._start("kube-apiserver", None, [
            APISERVER.path, "--etcd-servers", etcd, "--bind-address", address, "--advertise-address", address,
            "--secure-port", _PORT, "--cert-dir", self.folder / "certs", "--endpoint-reconciler-type", "none",
            "--service-cluster-ip-range", "10.0.0.0/16", "--authorization-mode", "RBAC",
            "--token-auth-file", self.folder / "tokens.csv", "--service-account-issuer", "https://kubernetes.default.svc",
            "--service-account-key-file", key, "--service-account-signing-key-file", key,
        ])  # fmt: skip
        apiserver.wait_until(self._is_ready, 120, what="ready")

    def _start(self, name: str, port: int | None, command: list[Any]) -> BackgroundProcess:
        process = BackgroundProcess(name, command, self.folder)
        self._processes.append(process)
        process.start()
        if port is not None:
            process.wait_until(lambda: port_is_open("127.0.0.1", port), LIMIT, what="listening")
        return process

    def _is_ready(self) -> bool:
        headers = {"Authorization": f"Bearer {_ADMIN}"}
        try:
            return httpx.get(f"{self.url}/readyz", headers=headers, verify=False, timeout=5).is_success  # noqa: S501 (not yet)
        except httpx.HTTPError:
            return False

    def _image(self) -> Image:
        source = Path(sluiceway.__file__).parents[1]
        java = find_java().home
        environment = {
            "PATH": f"{Path(sys.executable).parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "PYTHONPATH": str(source),
            "PYTHONDONTWRITEBYTECODE": "1",
            "JAVA_HOME": str(java),
            "SPARK_HOME": str(spark_home()),
            "SPARK_SCALA_VERSION": "2.13",
            "HOME": "/home",
            "LANG": os.environ.get("LANG", "C.UTF-8"),
            "KUBERNETES_SERVICE_HOST": f"{self._network}.1",
            "KUBERNETES_SERVICE_PORT": str(_PORT),
        }
        mounts = {
            self._hosts: "/etc/hosts",
            DOCKER / "spark" / "entrypoint.sh": "/opt/entrypoint.sh",
            DOCKER / "spark" / "decommission.sh": "/opt/decom.sh",
            source / "sluiceway" / "spark" / "driver_app.py": "/opt/sluiceway/driver_app.py",
        }
        return Image(["/opt/entrypoint.sh"], environment, mounts)

    def _next_ip(self) -> str:
        return next(self._ips)

    # The scheduler and the controllers.

    def _run(self) -> None:
        while not self._ended.wait(_SYNC_SECONDS):
            try:
                self._sync()
            except Exception:  # the thread's outermost loop
                if not self._ended.is_set():
                    log.warning("The test kubelet's loop failed; it continues", exc_info=True)

    def _sync(self) -> None:
        pods = self.api.items("/api/v1/pods")
        self._collect_garbage(pods)
        self._write_hosts(pods)
        alive = [kubelet for kubelet in self.kubelets.values() if kubelet.alive]
        for pod in pods:
            if alive and "nodeName" not in pod["spec"] and "deletionTimestamp" not in pod["metadata"]:
                used = [each["spec"].get("nodeName") for each in pods if each["status"]["phase"] in ("Pending", "Running")]
                node = min(alive, key=lambda kubelet: used.count(kubelet.name)).name
                target = {"kind": "Node", "apiVersion": "v1", "name": node}
                body = {"kind": "Binding", "apiVersion": "v1", "metadata": {"name": pod["metadata"]["name"]}, "target": target}
                self.api.post(f"{pod_path(pod)}/binding", body)
                pod["spec"]["nodeName"] = node
        for kubelet in alive:
            kubelet.sync([pod for pod in pods if pod["spec"].get("nodeName") == kubelet.name])

    def _collect_garbage(self, pods: list[Object]) -> None:
        """Delete pods, services, ConfigMaps and Secrets whose owner, a pod, is gone."""
        uids = {pod["metadata"]["uid"] for pod in pods}
        owned = [(pod_path(pod), pod) for pod in pods]
        for plural in ("services", "configmaps", "secrets"):
            for each in self.api.items(f"/api/v1/{plural}"):
                metadata = each["metadata"]
                owned.append((f"/api/v1/namespaces/{metadata['namespace']}/{plural}/{metadata['name']}", each))
        for path, each in owned:
            owners = each["metadata"].get("ownerReferences", [])
            gone = owners and all(owner["kind"] == "Pod" and owner["uid"] not in uids for owner in owners)
            if gone and "deletionTimestamp" not in each["metadata"]:
                self.api.delete(path, uid=each["metadata"]["uid"])

    def _write_hosts(self, pods: list[Object]) -> None:
        """Write the names of services into the file that every pod has as /etc/hosts. Its inode must stay, as it is mounted."""
        lines = ["127.0.0.1 localhost", f"{self._network}.1 kubernetes.default.svc kubernetes"]
        lines += [f"{self._network}.{number} {hostname(f'{self._network}.{number}')}" for number in range(10, 255)]
        for service in self.api.items("/api/v1/services") if pods else []:
            wanted = (service["spec"].get("selector") or {}).items()
            metadata = service["metadata"]
            for pod in pods if wanted else []:
                same = (
                    pod["metadata"]["namespace"] == metadata["namespace"] and wanted <= pod["metadata"].get("labels", {}).items()
                )
                if same and "podIP" in pod["status"]:
                    name = f"{metadata['name']}.{metadata['namespace']}.svc"
                    lines.append(f"{pod['status']['podIP']} {name} {name}.cluster.local {metadata['name']}")
        text = "\n".join(lines) + "\n"
        if not self._hosts.exists() or self._hosts.read_text() != text:
            self._hosts.write_text(text)


def _private_key() -> bytes:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
