"""Runs a pod's container as local processes: with its own root file system, PID namespace and loopback address."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from support.clusters.kubernetes_api import KubernetesApi, Object
from support.eventually import LIMIT

_ACCOUNT = "serviceAccountToken"
# Whatever ends unshare ends every process of the container.
_UNSHARE = (
    "unshare",
    "--mount",
    "--pid",
    "--uts",
    "--fork",
    "--kill-child",
)


class NotReadyError(Exception):
    """The pod refers to a ConfigMap or Secret that does not exist yet."""


class Container:
    """The one container of a pod. ``ip`` is a loopback address of this pod.

    Raises NotReadyError from ``start`` if a ConfigMap or Secret is missing, as long as a kubelet would wait for it.
    """

    def __init__(self, api: KubernetesApi, pod: Object, folder: Path, ip: str, image: Image) -> None:
        self.pod, self.ip = pod, ip
        self.log = folder.parent.parent / "logs" / f"{pod['metadata']['name']}.log"
        self._api, self._folder, self._image = api, folder, image
        self._namespace = pod["metadata"]["namespace"]
        self._spec = pod["spec"]["containers"][0]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        environment = {**self._image.environment, **self._environment()}
        mounts = [*self._image.mounts, *self._mounts()]
        scratch = self._folder / "scratch"
        scratch.mkdir(parents=True, exist_ok=True)
        listed = self._folder / "mounts"
        listed.write_text("".join(f"{source}\t{target}\n" for source, target in mounts))
        command = [*(self._spec.get("command") or self._image.entrypoint), *self._spec.get("args", [])]
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [*_UNSHARE, Path(__file__).with_name("pod.sh"), scratch, listed, hostname(self.ip), *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
                cwd="/",
            )

    def exit_code(self) -> int | None:
        """Return the exit code as a container runtime does: 128 plus the signal that ended it; None while it runs."""
        assert self._process is not None
        code = self._process.poll()
        return code if code is None or code >= 0 else 128 - code

    def stop(self, grace: float) -> None:
        """End it as a kubelet does: the preStop hook, SIGTERM, and SIGKILL after ``grace`` seconds in all."""
        assert self._process is not None
        main = self._main()
        if main is not None:
            hook = self._spec.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command")
            if hook and self.exit_code() is None:
                self._run_hook(main, hook, grace)
            with contextlib.suppress(psutil.NoSuchProcess):  # the hook has ended it
                main.terminate()
        try:
            self._process.wait(grace)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it at once, as a crash of its node does."""
        assert self._process is not None
        main = self._main()
        with contextlib.suppress(psutil.NoSuchProcess):
            if main is not None:
                main.kill()
        self._process.kill()
        self._process.wait(LIMIT)

    def processes(self) -> list[psutil.Process]:
        """Return the container's processes, the main one first."""
        assert self._process is not None
        try:
            return psutil.Process(self._process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def _main(self) -> psutil.Process | None:
        return next(iter(self.processes()), None)

    def _run_hook(self, main: psutil.Process, hook: Sequence[str], grace: float) -> None:
        enter = ["nsenter", "--target", str(main.pid), "--mount", "--pid", "--root", *hook]
        with self.log.open("ab") as output:
            try:
                subprocess.run(
                    enter, stdout=output, stderr=subprocess.STDOUT, timeout=grace, check=False, env=self._image.environment
                )
            except subprocess.TimeoutExpired:
                output.write(b"preStop hook: timed out\n")

    def _environment(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for source in self._spec.get("envFrom", []):
            for key, kind in (("configMapRef", "configmaps"), ("secretRef", "secrets")):
                if key in source:
                    found |= {name: text.decode() for name, text in self._data(kind, source[key]["name"]).items()}
        for variable in self._spec.get("env", []):
            found[variable["name"]] = self._value(variable)
        return found

    def _value(self, variable: Mapping[str, Any]) -> str:
        source = variable.get("valueFrom")
        if source is None:
            return str(variable.get("value", ""))
        if "fieldRef" in source:
            return self._field(source["fieldRef"]["fieldPath"])
        for key, kind in (("secretKeyRef", "secrets"), ("configMapKeyRef", "configmaps")):
            if key in source:
                data = self._data(kind, source[key]["name"])
                if source[key]["key"] not in data:
                    raise NotReadyError(f"{kind} {source[key]['name']} has no key {source[key]['key']}")
                return data[source[key]["key"]].decode()
        raise NotImplementedError(f"environment variable from {source}")

    def _field(self, path: str) -> str:
        if path in ("status.podIP", "status.hostIP"):
            return self.ip
        value: Any = self.pod
        for part in path.split("."):
            value = value[part]
        return str(value)

    def _mounts(self) -> list[tuple[str, str]]:
        volumes = {volume["name"]: volume for volume in self.pod["spec"].get("volumes", [])}
        sources = {each["name"]: self._volume(volumes[each["name"]]) for each in self._spec.get("volumeMounts", [])}
        return [(f"{sources[each['name']]}", each["mountPath"].rstrip("/")) for each in self._spec.get("volumeMounts", [])]

    def _volume(self, volume: Mapping[str, Any]) -> Path:
        """Write a volume's files and return their folder."""
        if "hostPath" in volume:
            return Path(volume["hostPath"]["path"])
        folder = self._folder / "volumes" / volume["name"]
        folder.mkdir(parents=True, exist_ok=True)
        sources = volume["projected"]["sources"] if "projected" in volume else [volume]
        for source in sources:
            for name, content in self._files(source).items():
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        return folder

    def _files(self, source: Mapping[str, Any]) -> dict[str, bytes]:
        if "emptyDir" in source:
            return {}
        if _ACCOUNT in source:
            account = self.pod["spec"]["serviceAccountName"]
            return {source[_ACCOUNT]["path"]: self._api.token_of(account, self._namespace).encode()}
        if "downwardAPI" in source:
            return {item["path"]: self._field(item["fieldRef"]["fieldPath"]).encode() for item in source["downwardAPI"]["items"]}
        if "configMap" in source:
            data, items = self._data("configmaps", source["configMap"]["name"]), source["configMap"].get("items")
        elif "secret" in source:
            secret = source["secret"]
            data, items = self._data("secrets", secret.get("secretName") or secret["name"]), secret.get("items")
        else:
            raise NotImplementedError(f"volume {source}")
        return data if not items else {item["path"]: data[item["key"]] for item in items}

    def _data(self, kind: str, name: str) -> dict[str, bytes]:
        data = self._api.data_of(kind, name, self._namespace)
        if data is None:
            raise NotReadyError(f"{kind} {name} does not exist")
        return data


class Image:
    """Contents of every container, in place of an image: this machine's files, an entrypoint, and environment variables."""

    def __init__(self, entrypoint: Sequence[str], environment: Mapping[str, str], mounts: Mapping[Path, str]) -> None:
        self.entrypoint, self.environment = list(entrypoint), dict(environment)
        self.mounts = [(str(source), target) for source, target in mounts.items()]


def hostname(ip: str) -> str:
    """Return the host name of the pod with this address."""
    return f"pod-{ip.rpartition('.')[2]}"


def is_available() -> str | None:
    """Return why containers cannot run on this machine, or None if they can."""
    if os.geteuid() != 0:
        return "mount namespaces need root"
    try:
        subprocess.run([*_UNSHARE, "true"], check=True, capture_output=True, timeout=10)
    except (OSError, subprocess.SubprocessError) as error:
        return f"unshare cannot make namespaces: {error}"
    return None
