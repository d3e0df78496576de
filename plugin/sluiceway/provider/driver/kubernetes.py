"""Prepares what a driver pod needs on Kubernetes: its name, its files in the image, and a Secret with values from Airflow."""

from __future__ import annotations

import logging
import re
import uuid
from typing import Any

from sluiceway.provider.compat import AirflowException

IMAGE_APPLICATION = "local:///opt/sluiceway/driver_app.py"
"""The driver's Python file in an image made from docker/Dockerfile."""

UPLOAD_PATH = "spark.kubernetes.file.upload.path"
POD_NAME = "spark.kubernetes.driver.pod.name"
NAMESPACE = "spark.kubernetes.namespace"
SECRET_PREFIX = "spark.kubernetes.driver.secretKeyRef"  # noqa: S105 (the setting's name)

_KEY = "values"
_LABELS = {"app.kubernetes.io/managed-by": "sluiceway"}
_LONGEST_NAME = 63  # pods are named in labels
_NOT_FOUND, _FORBIDDEN = 404, 403

log = logging.getLogger(__name__)


def driver_pod_name(application: str) -> str:
    """Return a new name for the driver pod of a Spark application: its name as far as Kubernetes allows it, and a random part."""
    suffix = f"-{uuid.uuid4().hex[:12]}-driver"
    readable = re.sub(r"[^a-z0-9]+", "-", application.lower()).strip("-") or "sluiceway"
    return readable[: _LONGEST_NAME - len(suffix)].rstrip("-") + suffix


class DriverSecret:
    """A Kubernetes Secret that passes values from Airflow to one driver pod, so that they are not part of its description.

    Kubernetes deletes it with the pod, once ``give_to_pod`` has succeeded. Runs in the Airflow task's process.

    Args:
        client: Kubernetes' CoreV1Api.
        namespace: the driver's namespace.
        pod: the driver pod's name, which the Secret's name contains.
        value: the value of the only key.
    """

    def __init__(self, client: Any, namespace: str, pod: str, value: str) -> None:
        self.name = f"{pod}-airflow"
        self._client, self._namespace, self._pod, self._value = client, namespace, pod, value
        self._owned = False

    @property
    def reference(self) -> str:
        """Return the value of a ``secretKeyRef`` setting."""
        return f"{self.name}:{_KEY}"

    @classmethod
    def of_airflow(cls, namespace: str, pod: str, value: str) -> DriverSecret:
        """Return a Secret that is created with Airflow's own access to Kubernetes."""
        from airflow.providers.cncf.kubernetes.kube_client import get_kube_client

        return cls(get_kube_client(), namespace, pod, value)

    def create(self) -> None:
        """Create it.

        Raises:
            AirflowException: Kubernetes does not allow or answer it. The message has no value.
        """
        body = {"metadata": {"name": self.name, "labels": _LABELS}, "type": "Opaque", "stringData": {_KEY: self._value}}
        try:
            self._client.create_namespaced_secret(self._namespace, body)
        except Exception as error:  # noqa: BLE001 (the client's and urllib3's types; their texts contain the request)
            raise AirflowException(self._advice(error)) from None

    def give_to_pod(self) -> bool:
        """Make the driver pod the Secret's owner; return False if there is no such pod yet."""
        if self._owned:
            return True
        try:
            uid = self._client.read_namespaced_pod(self._pod, self._namespace).metadata.uid
            owner = {"apiVersion": "v1", "kind": "Pod", "name": self._pod, "uid": uid}
            self._client.patch_namespaced_secret(self.name, self._namespace, {"metadata": {"ownerReferences": [owner]}})
        except Exception as error:  # noqa: BLE001 (see create)
            if getattr(error, "status", None) != _NOT_FOUND:
                log.warning("Secret %s: its owner cannot be set to pod %s: %s", self.name, self._pod, _why(error))
            return False
        self._owned = True
        return True

    def close(self) -> None:
        """Delete it unless the pod owns it: then no driver was created, or it has ended."""
        if self.give_to_pod():
            return
        try:
            self._client.delete_namespaced_secret(self.name, self._namespace)
        except Exception as error:  # noqa: BLE001 (see create)
            if getattr(error, "status", None) != _NOT_FOUND:
                log.warning("Secret %s in namespace %s: cannot be deleted: %s", self.name, self._namespace, _why(error))

    def _advice(self, error: Exception) -> str:
        what = f"Cannot create Secret {self.name} in namespace {self._namespace} for the values from Airflow: {_why(error)}."
        if getattr(error, "status", None) == _FORBIDDEN:
            return (
                f"{what} Allow the service account of Airflow's workers to create, patch and delete secrets there. Or keep the "
                "values in a Secret of your own and refer to them with ${env:...} or ${file:...}, not with ${airflow:...}."
            )
        return f"{what} Check Airflow's [kubernetes_executor] in_cluster and config_file, and that the API server answers."


def _why(error: Exception) -> str:
    """Return an error's status and reason without the request's body."""
    status = getattr(error, "status", None)
    return type(error).__name__ if status is None else f"HTTP status {status} ({getattr(error, 'reason', '')})"
