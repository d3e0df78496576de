"""Tests of CheckedConnector: when a config is tried with its system, and at which key an error is shown."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from typing import ClassVar

import pytest

from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type, ValidatedValue
from sluiceway.connectors.checked_connector import CheckedConnector
from sluiceway.connectors.errors import LoginError, RefusedError, UnreachableError
from sluiceway.errors import ConfigError, ConnectError

_KEYS = ("host", "password", "queue")
CONFIG = {"host": "example.org", "password": "p", "queue": "q"}


class Connector(CheckedConnector):
    address_key = "host"
    failure: ClassVar[Exception | None]
    tried: ClassVar[list[Mapping[str, ConfigValue]]]

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            ConfigKey(name=name, type=Type.STRING, importance=Importance.HIGH, doc=f"The {name} of the system.") for name in _KEYS
        )

    @classmethod
    def conflicts(cls, values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> Mapping[str, str]:
        return {"queue": "must have another name than the host"} if values["queue"] == values["host"] else {}

    @classmethod
    def try_system(
        cls, values: Mapping[str, ConfigValue], config: Mapping[str, str], found: Mapping[str, ValidatedValue]
    ) -> None:
        cls.tried.append(values)
        if cls.failure is not None:
            raise cls.failure

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return []


def errors(config: Mapping[str, str], failure: Exception | None = None) -> dict[str, list[str]]:
    """Return the errors of keys that have some."""
    Connector.failure, Connector.tried = failure, []
    return {name: each.errors for name, each in Connector.validate(config).items() if each.errors}


def test_keys_that_are_right_are_tried_with_the_system() -> None:
    assert errors(CONFIG) == {}
    assert Connector.tried == [CONFIG]


@pytest.mark.parametrize(
    ("config", "key"), [({"host": "h", "queue": "q"}, "password"), ({**CONFIG, "queue": "example.org"}, "queue")]
)
def test_keys_that_are_wrong_are_not_tried(config: dict[str, str], key: str) -> None:
    assert list(errors(config)) == [key]
    assert Connector.tried == []


def test_a_check_tries_nothing() -> None:
    Connector.tried = []
    Connector.check(CONFIG)
    assert Connector.tried == []


@pytest.mark.parametrize(
    ("failure", "key"),
    [
        (LoginError("wrong password", "password"), "password"),
        (LoginError("no right to it", "of.another.connector"), "host"),
        (ConfigError("queue", "q", "is none"), "queue"),
        (ConfigError("ssl.truststore", "t", "cannot be read"), "host"),
        (ConfigError("is no config"), "host"),
        (RefusedError("no such thing", 404), "host"),
        (ConnectError("does not work"), "host"),
    ],
)
def test_an_error_is_shown_at_its_key_or_at_the_address(failure: Exception, key: str) -> None:
    assert errors(CONFIG, failure) == {key: [str(failure)]}


def test_a_system_that_cannot_be_reached_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert errors(CONFIG, UnreachableError("nobody is there")) == {}
    assert "nobody is there" in caplog.text


@pytest.mark.parametrize("error", [UnreachableError("busy", 3.0), LoginError("no", "password"), RefusedError("no", 404)])
def test_errors_survive_pickling(error: Exception) -> None:
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 (our own bytes)
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
