"""Tests of a driver pod's name and of the Secret with values from Airflow, with a fake client."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from sluiceway.provider.compat import AirflowException
from sluiceway.provider.driver.kubernetes import DriverSecret, driver_pod_name

VALUE = "s3cr3t"


class _ApiError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(f"the request was {VALUE}")
        self.status, self.reason = status, "Reason"


class _Client:
    """Records calls; fails those in ``failing`` with their HTTP status."""

    def __init__(self, **failing: int) -> None:
        self.failing = failing
        self.calls: list[tuple[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> Any:
            self.calls.append((name, arguments))
            if name in self.failing:
                raise _ApiError(self.failing[name])
            return type("Pod", (), {"metadata": type("Metadata", (), {"uid": "uid-1"})})

        return call

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.calls]


def _secret(client: _Client) -> DriverSecret:
    return DriverSecret(client, "ns", "c-1-driver", VALUE)


@pytest.mark.parametrize("application", ["sluiceway-orders", "Sluiceway_Orders.EU", "ä", "x" * 200, "-"])
def test_pod_names_are_unique_and_valid(application: str) -> None:
    first, second = driver_pod_name(application), driver_pod_name(application)
    assert first != second
    for name in (first, second):
        assert len(name) <= 63
        assert name.endswith("-driver")
        assert name.replace("-", "").isalnum()
        assert name == name.lower().strip("-")


def test_the_pod_owns_the_secret_once_it_exists() -> None:
    client = _Client()
    secret = _secret(client)
    secret.create()
    assert client.calls[0][1][1]["stringData"] == {"values": VALUE}
    assert secret.reference == "c-1-driver-airflow:values"
    assert secret.give_to_pod()
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "c-1-driver", "uid": "uid-1"}
    assert client.calls[-1] == (
        "patch_namespaced_secret",
        ("c-1-driver-airflow", "ns", {"metadata": {"ownerReferences": [owner]}}),
    )
    before = len(client.calls)
    secret.close()
    assert len(client.calls) == before, "deleted although the pod needs it"


def test_without_a_pod_it_is_deleted() -> None:
    client = _Client(read_namespaced_pod=404)
    secret = _secret(client)
    assert not secret.give_to_pod()
    secret.close()
    assert client.names[-1] == "delete_namespaced_secret"


def test_a_missing_right_is_explained_without_the_value() -> None:
    with pytest.raises(AirflowException, match=r"HTTP status 403 .*Allow the service account .* \$\{env:") as raised:
        _secret(_Client(create_namespaced_secret=403)).create()
    assert VALUE not in str(raised.value)
    assert raised.value.__cause__ is None
    with pytest.raises(AirflowException, match=r"HTTP status 500 .*in_cluster"):
        _secret(_Client(create_namespaced_secret=500)).create()


def test_failures_after_the_submission_are_logged_without_the_value(caplog: pytest.LogCaptureFixture) -> None:
    client = _Client(patch_namespaced_secret=403, delete_namespaced_secret=403)
    with caplog.at_level(logging.WARNING):
        _secret(client).close()
    assert "its owner cannot be set" in caplog.text
    assert "cannot be deleted" in caplog.text
    assert VALUE not in caplog.text
