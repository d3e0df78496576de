"""Ask a cluster manager for the state of a driver in cluster mode, and end it there. Run in the Airflow task's process."""

from __future__ import annotations

import logging
import time
from typing import Any, NamedTuple, Protocol

from sluiceway.provider.compat import AirflowException
from sluiceway.provider.driver.spark_connection import SparkConnection
from sluiceway.provider.driver.submit_options import SubmitOptions

log = logging.getLogger(__name__)

_TIMEOUT = (5, 30)  # seconds to connect, and to read
_MAX_FAILURES = 10
_NOT_FOUND = 404


class DriverState(NamedTuple):
    """The state of a driver according to its cluster manager."""

    name: str
    """The manager's own name of the state."""
    active: bool
    succeeded: bool = False
    """Whether a driver that is not active any more has ended well."""
    details: str = ""


class NoAnswerError(Exception):
    """The cluster manager did not answer, or does not know the state just now."""


class Tracker(Protocol):
    """A cluster manager. ``identifier`` is its own id of the driver."""

    interval: float
    """The seconds between two requests."""

    def state(self, identifier: str) -> DriverState:
        """Return the driver's state; raises NoAnswerError."""

    def kill(self, identifier: str) -> None:
        """End the driver. Logs a failure."""

    def clean_up(self, identifier: str) -> None:
        """Remove what is left of a driver that has succeeded. Logs a failure."""


def known_state(tracker: Tracker, identifier: str) -> DriverState:
    """Return a driver's state, after more requests if its cluster manager does not answer.

    Raises:
        AirflowException: it did not answer ten times in a row.
    """
    failures = 0
    while True:
        try:
            return tracker.state(identifier)
        except NoAnswerError as error:
            failures += 1
            if failures > _MAX_FAILURES:
                raise AirflowException(
                    f"The state of driver {identifier} is unknown after {failures} requests: {error}. The driver may still run."
                ) from error
            log.warning("The state of driver %s is unknown (%d of %d requests): %s", identifier, failures, _MAX_FAILURES, error)
        time.sleep(tracker.interval)


def await_end(tracker: Tracker, identifier: str) -> None:
    """Wait until a driver has ended, and remove what is left of one that has succeeded.

    Raises:
        AirflowException: it has failed, or its cluster manager did not answer ten times in a row.
    """
    last = ""
    while (state := known_state(tracker, identifier)).active:
        if state.name != last:
            log.info("Driver %s: %s", identifier, state.name)
        last = state.name
        time.sleep(tracker.interval)
    log.info("Driver %s: %s", identifier, state.name)
    if not state.succeeded:
        details = f"\n{state.details}" if state.details else ""
        raise AirflowException(f"Driver {identifier} has ended with state {state.name}.{details}")
    tracker.clean_up(identifier)


class StandaloneTracker:
    """The REST API of standalone masters."""

    _ACTIVE = ("SUBMITTED", "RUNNING", "RELAUNCHING")

    def __init__(self, connection: SparkConnection, interval: float) -> None:
        self._servers = connection.rest_servers
        self.interval = interval

    def state(self, identifier: str) -> DriverState:
        answer = self._request("GET", f"v1/submissions/status/{identifier}")
        name = str(answer.get("driverState", "")).upper()
        # A master that recovers from a failure does not know its drivers yet.
        if not answer.get("success") or name in ("", "UNKNOWN"):
            raise NoAnswerError(answer.get("message") or f"the master answered {name or 'without a state'}")
        return DriverState(name, name in self._ACTIVE, name == "FINISHED", str(answer.get("message") or ""))

    def kill(self, identifier: str) -> None:
        try:
            answer = self._request("POST", f"v1/submissions/kill/{identifier}")
        except NoAnswerError as error:
            log.warning("Driver %s cannot be ended: %s", identifier, error)
        else:
            log.info("Driver %s: %s", identifier, answer.get("message"))

    def clean_up(self, identifier: str) -> None:
        pass

    def _request(self, method: str, path: str) -> dict[str, Any]:
        """Ask one master after another, because only one of them is active."""
        failed: list[str] = []
        for server in self._servers:
            try:
                return _json(method, f"{server}/{path}")
            except NoAnswerError as error:
                failed.append(str(error))
        raise NoAnswerError("; ".join(failed))


class YarnTracker:
    """The REST API of YARN's resource manager."""

    _ACTIVE = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING")

    def __init__(self, connection: SparkConnection, options: SubmitOptions) -> None:
        self._server = connection.resource_manager
        self._auth = options.yarn_rm_auth or (_kerberos() if connection.keytab and connection.principal else None)
        self.interval = max(options.status_poll_interval, 10.0)

    def state(self, identifier: str) -> DriverState:
        answer = _json("GET", self._url(identifier), auth=self._auth).get("app")
        if not isinstance(answer, dict) or "state" not in answer:
            raise NoAnswerError(f"the resource manager's answer has no state of application {identifier}")
        name, final = str(answer["state"]).upper(), str(answer.get("finalStatus", "")).upper()
        active = name in self._ACTIVE
        ended = name if name != "FINISHED" else final
        shown = name if active else ended
        return DriverState(shown, active, ended == "SUCCEEDED", str(answer.get("diagnostics") or ""))

    def kill(self, identifier: str) -> None:
        try:
            _json("PUT", f"{self._url(identifier)}/state", auth=self._auth, json={"state": "KILLED"})
        except NoAnswerError as error:
            log.warning("YARN application %s cannot be ended: %s", identifier, error)
        else:
            log.info("Asked YARN to end application %s", identifier)

    def clean_up(self, identifier: str) -> None:
        pass

    def _url(self, identifier: str) -> str:
        return f"{self._server}/ws/v1/cluster/apps/{identifier}"


class KubernetesTracker:
    """Kubernetes' API. ``identifier`` is ``namespace:pod``."""

    def __init__(self, interval: float) -> None:
        self.interval = max(interval, 20.0)

    def state(self, identifier: str) -> DriverState:
        namespace, pod = identifier.split(":", 1)
        try:
            status = _kubernetes().read_namespaced_pod(pod, namespace).status
        except Exception as error:
            if getattr(error, "status", None) == _NOT_FOUND:
                return DriverState("deleted", active=False)
            raise NoAnswerError(f"Kubernetes: {type(error).__name__} {getattr(error, 'reason', '') or ''}".rstrip()) from error
        name = str(status.phase or "Pending")
        if name == "Unknown":
            raise NoAnswerError("Kubernetes does not hear from the pod's node")
        return DriverState(name, name in ("Pending", "Running"), name == "Succeeded", _exit_of(status))

    def kill(self, identifier: str) -> None:
        namespace, pod = identifier.split(":", 1)
        try:
            _kubernetes().delete_namespaced_pod(pod, namespace)
        except Exception as error:  # noqa: BLE001 (the client's and urllib3's types)
            log.warning("Pod %s cannot be deleted: %s", pod, getattr(error, "reason", None) or type(error).__name__)
        else:
            log.info("Deleted pod %s", pod)

    def clean_up(self, identifier: str) -> None:
        self.kill(identifier)


def _exit_of(status: Any) -> str:
    """Return how the first container of a pod has ended."""
    containers = status.container_statuses or ()
    ended = containers[0].state.terminated if containers and containers[0].state else None
    return f"exit code {ended.exit_code}, {ended.reason}" if ended else ""


def _kubernetes() -> Any:
    from airflow.providers.cncf.kubernetes.kube_client import get_kube_client

    return get_kube_client()


def _kerberos() -> Any:
    try:
        from requests_kerberos import HTTPKerberosAuth
    except ImportError:
        raise AirflowException(
            "yarn_track_via_rm_api with a keytab needs the package requests-kerberos. Install it, or pass yarn_rm_auth."
        ) from None
    return HTTPKerberosAuth()


def _json(method: str, url: str, **kwargs: Any) -> dict[str, Any]:
    """Send a request and return the answer's document; raises NoAnswerError."""
    import requests

    try:
        answer = requests.request(method, url, timeout=_TIMEOUT, **kwargs)
        document = answer.json() if answer.content else {}
    except (requests.exceptions.RequestException, ValueError) as error:
        raise NoAnswerError(f"{method} {url}: {error}") from error
    if not answer.ok or not isinstance(document, dict):
        raise NoAnswerError(f"{method} {url}: HTTP status {answer.status_code}: {answer.text[:200]}")
    return document
