"""Keys of type password of a connector and of the plugins that its config names."""

from __future__ import annotations

import pytest

from sluiceway.config.definition import ConfigDef, ConfigKey, Type
from sluiceway.config.masking import masked
from sluiceway.discovery import connector_class, plugins
from sluiceway.herder.passwords import password_keys
from sluiceway.transforms.filter_ import Filter


class Signing(Filter):
    """A transform with a password whose name tells nothing."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef([ConfigKey(name="salt", type=Type.PASSWORD, default=None)])


@pytest.mark.parametrize("name", sorted(plugins("sluiceway.connectors")))
def test_every_declared_password_of_a_connector_is_hidden(name: str) -> None:
    declared = {key.name for key in connector_class(name, None).config_def() if key.type is Type.PASSWORD}
    config = {"connector.class": name, **dict.fromkeys(declared, "hunter2")}
    assert declared <= password_keys(config)
    assert "hunter2" not in str(masked(config, password_keys(config)))


def test_passwords_of_transforms_and_converters_count_too() -> None:
    config = {"connector.class": "MockSource", "transforms": "s", "transforms.s.type": f"{__name__}.Signing"}
    assert "transforms.s.salt" in password_keys(config)


def test_a_class_that_is_not_installed_declares_none() -> None:
    for config in ({"connector.class": "org.example.NotHere"}, {}, {"connector.class": "MockSource", "key.converter": "None"}):
        assert password_keys(config) == set()
