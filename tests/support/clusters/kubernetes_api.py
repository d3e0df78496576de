"""A client of the Kubernetes API: plain JSON over HTTPS."""

from __future__ import annotations

import base64
import json
import ssl
from pathlib import Path
from typing import Any

import httpx

Object = dict[str, Any]
"""A Kubernetes object as JSON."""

# The folder and plural of each kind that the tests use.
_PLACES = {
    "Node": ("api/v1", "nodes"),
    "Namespace": ("api/v1", "namespaces"),
    "Role": ("apis/rbac.authorization.k8s.io/v1", "roles"),
    "RoleBinding": ("apis/rbac.authorization.k8s.io/v1", "rolebindings"),
    "Deployment": ("apis/apps/v1", "deployments"),
    "StatefulSet": ("apis/apps/v1", "statefulsets"),
    "Job": ("apis/batch/v1", "jobs"),
    "CronJob": ("apis/batch/v1", "cronjobs"),
    "NetworkPolicy": ("apis/networking.k8s.io/v1", "networkpolicies"),
    "PodDisruptionBudget": ("apis/policy/v1", "poddisruptionbudgets"),
}


class KubernetesApi:
    """Calls the API server as the owner of a token. Thread-safe.

    ``url`` is the server's address, ``ca`` the file with its certificate.
    """

    def __init__(self, url: str, token: str, ca: Path) -> None:
        self.url, self.token, self.ca = url, token, ca
        headers = {"Authorization": f"Bearer {token}"}
        self._client = httpx.Client(base_url=url, headers=headers, verify=ssl.create_default_context(cafile=ca), timeout=30)

    def close(self) -> None:
        self._client.close()

    def get(self, path: str) -> Object:
        return self._answer(self._client.get(path))

    def find(self, path: str) -> Object | None:
        """Return an object, or None if it does not exist."""
        answer = self._client.get(path)
        return None if answer.status_code == httpx.codes.NOT_FOUND else self._answer(answer)

    def items(self, path: str) -> list[Object]:
        found: list[Object] = self.get(path)["items"]
        return found

    def post(self, path: str, body: Object) -> Object:
        return self._answer(self._client.post(path, json=body))

    def patch(self, path: str, body: Object) -> Object:
        content = json.dumps(body).encode()
        return self._answer(self._client.patch(path, content=content, headers={"Content-Type": "application/merge-patch+json"}))

    def delete(self, path: str, *, grace: int | None = None, uid: str | None = None) -> None:
        """Delete an object; one that does not exist, or that is another with this name now, is no error."""
        options: Object = {} if grace is None else {"gracePeriodSeconds": grace}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        answer = self._client.request("DELETE", path, json=options)
        if answer.status_code not in (httpx.codes.NOT_FOUND, httpx.codes.CONFLICT):
            self._answer(answer)

    def create(self, manifest: Object, namespace: str = "default", *, dry_run: bool = False) -> Object:
        """Create an object of any kind that ``_PLACES`` lists or that is in the core API."""
        kind = manifest["kind"]
        group, plural = _PLACES.get(kind, ("api/v1", f"{kind.lower()}s"))
        scope = "" if kind in ("Node", "Namespace") else f"/namespaces/{manifest['metadata'].get('namespace', namespace)}"
        return self.post(f"/{group}{scope}/{plural}{'?dryRun=All&fieldValidation=Strict' if dry_run else ''}", manifest)

    def token_of(self, account: str, namespace: str = "default", seconds: int = 24 * 3600) -> str:
        """Return a new token of a service account."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        return str(self.post(path, {"spec": {"expirationSeconds": seconds}})["status"]["token"])

    def data_of(self, kind: str, name: str, namespace: str) -> dict[str, bytes] | None:
        """Return the data of a ConfigMap (``configmaps``) or Secret (``secrets``), or None if it does not exist."""
        found = self.find(f"/api/v1/namespaces/{namespace}/{kind}/{name}")
        if found is None:
            return None
        data = found.get("data") or {}
        return {key: base64.b64decode(text) if kind == "secrets" else text.encode() for key, text in data.items()}

    @staticmethod
    def _answer(answer: httpx.Response) -> Object:
        assert answer.is_success, f"{answer.request.method} {answer.request.url}: {answer.status_code} {answer.text}"
        found: Object = answer.json()
        return found


def pod_path(pod: Object) -> str:
    """Return the path of a pod."""
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
