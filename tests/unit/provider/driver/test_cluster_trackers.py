"""The state of a driver according to standalone masters, YARN, and Kubernetes: what they answer, and when they do not."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest

from sluiceway.provider.compat import AirflowException
from sluiceway.provider.driver import cluster_trackers
from sluiceway.provider.driver.cluster_trackers import (
    DriverState,
    KubernetesTracker,
    NoAnswerError,
    StandaloneTracker,
    YarnTracker,
    await_end,
)
from sluiceway.provider.driver.spark_connection import SparkConnection
from sluiceway.provider.driver.submit_options import SubmitOptions


class _Manager:
    """A cluster manager with a REST API: ``answers`` by path, ``seen`` requests."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.seen: list[tuple[str, str, str]] = []
        manager = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                manager.seen.append((self.command, self.path, body))
                found = manager.answers.get(self.path)
                self.send_response(404 if found is None else 200)
                self.end_headers()
                self.wfile.write(json.dumps(found).encode())

            do_GET = do_POST = do_PUT = _answer  # noqa: N815 (the base class's names)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the base class's name)
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def manager() -> Iterator[_Manager]:
    made = _Manager()
    yield made
    made.close()


def _standalone(manager: _Manager) -> StandaloneTracker:
    # The first master does not listen: only one of several is active.
    return StandaloneTracker(SparkConnection(master="spark://127.0.0.2:7077,127.0.0.1:7077", rest_port=manager.port), 0.0)


@pytest.mark.parametrize(
    ("state", "active", "succeeded"),
    [
        *((each, True, False) for each in ("SUBMITTED", "RUNNING", "RELAUNCHING")),
        ("FINISHED", False, True),
        *((each, False, False) for each in ("KILLED", "FAILED", "ERROR")),
    ],
)
def test_states_of_a_standalone_master(manager: _Manager, state: str, *, active: bool, succeeded: bool) -> None:
    manager.answers["/v1/submissions/status/driver-1"] = {"success": True, "driverState": state}
    assert _standalone(manager).state("driver-1")[:3] == (state, active, succeeded)


@pytest.mark.parametrize("answer", [None, {"success": False}, {"success": True, "driverState": "UNKNOWN"}, []])
def test_a_standalone_master_that_does_not_know_a_driver_is_asked_again(manager: _Manager, answer: Any) -> None:
    manager.answers["/v1/submissions/status/driver-1"] = answer
    with pytest.raises(NoAnswerError):
        _standalone(manager).state("driver-1")


def test_a_standalone_master_ends_a_driver(manager: _Manager) -> None:
    manager.answers["/v1/submissions/kill/driver-1"] = {"success": True, "message": "Kill request submitted"}
    _standalone(manager).kill("driver-1")
    assert manager.seen == [("POST", "/v1/submissions/kill/driver-1", "")]


def _yarn(manager: _Manager) -> YarnTracker:
    return YarnTracker(SparkConnection(master="yarn", resource_manager=f"http://127.0.0.1:{manager.port}"), SubmitOptions())


@pytest.mark.parametrize(
    ("state", "final", "expected"),
    [
        *((each, "UNDEFINED", (each, True, False)) for each in ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING")),
        ("FINISHED", "SUCCEEDED", ("SUCCEEDED", False, True)),
        ("FINISHED", "FAILED", ("FAILED", False, False)),
        ("FINISHED", "KILLED", ("KILLED", False, False)),
        ("FAILED", "FAILED", ("FAILED", False, False)),
        ("KILLED", "KILLED", ("KILLED", False, False)),
    ],
)
def test_states_of_yarn(manager: _Manager, state: str, final: str, expected: tuple[Any, ...]) -> None:
    manager.answers["/ws/v1/cluster/apps/a_1"] = {"app": {"state": state, "finalStatus": final, "diagnostics": "why"}}
    assert _yarn(manager).state("a_1") == (*expected, "why")


def test_yarn_is_asked_at_most_every_ten_seconds_and_ends_an_application(manager: _Manager) -> None:
    tracker = _yarn(manager)
    assert tracker.interval == 10
    manager.answers["/ws/v1/cluster/apps/a_1/state"] = {"state": "KILLED"}
    tracker.kill("a_1")
    assert manager.seen == [("PUT", "/ws/v1/cluster/apps/a_1/state", '{"state": "KILLED"}')]
    with pytest.raises(NoAnswerError, match="404"):
        tracker.state("a_2")


class _Pods:
    """Kubernetes' client with one pod."""

    def __init__(self, phase: str | None, error: int | None = None) -> None:
        self._phase, self._error, self.deleted = phase, error, ""

    def read_namespaced_pod(self, name: str, namespace: str) -> Any:
        if self._error is not None:
            raise type("ApiException", (Exception,), {"status": self._error, "reason": "no"})()
        ended = SimpleNamespace(exit_code=3, reason="Error")
        return SimpleNamespace(
            status=SimpleNamespace(
                phase=self._phase, container_statuses=[SimpleNamespace(state=SimpleNamespace(terminated=ended))]
            )
        )

    def delete_namespaced_pod(self, name: str, namespace: str) -> None:
        self.deleted = f"{namespace}:{name}"


@pytest.mark.parametrize(
    ("phase", "error", "expected"),
    [
        ("Pending", None, ("Pending", True, False)),
        ("Running", None, ("Running", True, False)),
        ("Succeeded", None, ("Succeeded", False, True)),
        ("Failed", None, ("Failed", False, False)),
        (None, 404, ("deleted", False, False)),
        ("Unknown", None, None),
        (None, 500, None),
    ],
)
def test_phases_of_a_pod(
    monkeypatch: pytest.MonkeyPatch, phase: str | None, error: int | None, expected: tuple[Any, ...] | None
) -> None:
    monkeypatch.setattr(cluster_trackers, "_kubernetes", lambda: _Pods(phase, error))
    tracker = KubernetesTracker(1)
    assert tracker.interval == 20
    if expected is None:
        with pytest.raises(NoAnswerError):
            tracker.state("ns:pod")
    else:
        assert tracker.state("ns:pod")[:3] == expected


class _Script:
    """Answers one after another; ``NoAnswerError`` for None. The last one is repeated."""

    interval = 0.0

    def __init__(self, *answers: DriverState | None) -> None:
        self._answers = list(answers)
        self.cleaned: list[str] = []

    def state(self, identifier: str) -> DriverState:
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if answer is None:
            raise NoAnswerError("silence")
        return answer

    def kill(self, identifier: str) -> None:
        raise NotImplementedError

    def clean_up(self, identifier: str) -> None:
        self.cleaned.append(identifier)


RUNNING, DONE, FAILED = DriverState("R", True), DriverState("D", False, True), DriverState("F", False, details="out of memory")


def test_the_wait_ends_with_the_driver_in_spite_of_single_failed_requests() -> None:
    tracker = _Script(RUNNING, *[None] * 10, RUNNING, *[None] * 10, DONE)
    await_end(tracker, "d")
    assert tracker.cleaned == ["d"]


@pytest.mark.parametrize(("answers", "message"), [((RUNNING, FAILED), "state F.\nout of memory"), ((RUNNING, None), "silence")])
def test_the_wait_fails_with_the_driver_or_after_ten_failed_requests(answers: tuple[Any, ...], message: str) -> None:
    with pytest.raises(AirflowException, match=message):
        await_end(_Script(*answers), "d")


def test_a_pod_that_has_succeeded_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    pods = _Pods("Succeeded")
    monkeypatch.setattr(cluster_trackers, "_kubernetes", lambda: pods)
    await_end(KubernetesTracker(1), "ns:pod")
    assert pods.deleted == "ns:pod"
