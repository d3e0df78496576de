"""Keys of type password of a connector and of the plugins that its config names."""

from __future__ import annotations

import pytest

from sluiceway.config.definition import ConfigDef, ConfigKey, Type
from sluiceway.config.masking import masked
from sluiceway.connectors.mock.source import MockSourceConnector
from sluiceway.discovery import connector_class, plugins
from sluiceway.errors import ConnectError
from sluiceway.herder.passwords import password_keys
from sluiceway.transforms.filter_ import Filter


class Signing(Filter):
    """A transform with a password whose name tells nothing."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef([ConfigKey(name="salt", type=Type.PASSWORD, default=None)])


class Broken(Filter):
    """A transform as of a jar that is broken."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        raise ConnectError("NoClassDefFoundError")


class BrokenSource(MockSourceConnector):
    """A connector as of a jar that is broken."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        raise ConnectError("NoClassDefFoundError")


@pytest.mark.parametrize("name", sorted(plugins("sluiceway.connectors")))
def test_every_declared_password_of_a_connector_is_hidden(name: str) -> None:
    declared = {key.name for key in connector_class(name, None).config_def() if key.type is Type.PASSWORD}
    config = {"connector.class": name, **dict.fromkeys(declared, "hunter2")}
    assert declared <= password_keys(config)
    assert "hunter2" not in str(masked(config, password_keys(config)))


def test_passwords_of_transforms_and_converters_count_too() -> None:
    config = {"connector.class": "MockSource", "transforms": "s", "transforms.s.type": f"{__name__}.Signing"}
    assert "transforms.s.salt" in password_keys(config)


@pytest.mark.parametrize(
    "config",
    [
        {"connector.class": "org.example.NotHere", "transforms": "s", "transforms.s.type": f"{__name__}.Signing"},
        {"connector.class": "MockSource", "transforms": "a.b", "transforms.a.b.type": f"{__name__}.Signing"},
        {"connector.class": "MockSource", "transforms.old.type": f"{__name__}.Signing"},
    ],
)
def test_a_transform_counts_whatever_its_alias_is_and_without_its_connector(config: dict[str, str]) -> None:
    [name] = password_keys(config)
    assert name.endswith(".salt")


def test_any_key_of_a_plugin_that_cannot_say_what_it_declares_may_be_a_password() -> None:
    config = {"connector.class": "MockSource", "transforms": "b", "transforms.b.type": f"{__name__}.Broken", "topic": "t"}
    assert password_keys({**config, "transforms.b.salt": "hunter2"}) == {"transforms.b.salt"}
    broken = {"connector.class": f"{__name__}.BrokenSource", "topic": "t", "tasks.max": "1", "salt": "hunter2"}
    assert password_keys(broken) == {"topic", "salt"}


def test_a_class_that_is_not_installed_declares_none() -> None:
    for config in ({"connector.class": "org.example.NotHere"}, {}, {"connector.class": "MockSource", "key.converter": "None"}):
        assert password_keys(config) == set()
