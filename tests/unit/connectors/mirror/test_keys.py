"""The declarations in keys.json."""

from __future__ import annotations

import pytest

from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.config.validators import OneOf, Range
from sluiceway.connectors.mirror import keys
from sluiceway.connectors.mirror.classes import known_class
from sluiceway.errors import ConfigError


def test_an_entry_declares_type_default_importance_validator_and_documentation() -> None:
    key = keys.CLIENT_SECURITY["sasl.login.refresh.window.factor"]
    assert (key.type, key.default, key.importance, key.validator) == (Type.DOUBLE, 0.8, Importance.LOW, Range(0.5, 1.0))
    assert key.doc.startswith("Share of its lifetime")


def test_an_entry_without_a_default_is_a_required_key() -> None:
    assert [key.name for key in keys.MIRROR_CONNECTOR if key.required] == ["source.cluster.alias"]


def test_validators_take_their_arguments_from_the_entry() -> None:
    assert keys.MIRROR_SOURCE[keys.OFFSET_SYNCS_TOPIC_LOCATION].validator == OneOf(("source", "target"))
    protocol = keys.MIRROR_CONNECTOR[keys.SECURITY_PROTOCOL].validator
    assert protocol == OneOf(("SASL_SSL", "PLAINTEXT", "SSL", "SASL_PLAINTEXT"), ignore_case=True)


@pytest.mark.parametrize("section", [keys.MIRROR_CONNECTOR, keys.CLIENT_SECURITY, keys.MIRROR_SOURCE])
def test_defaults_are_valid_and_only_classes_have_a_loader(section: ConfigDef) -> None:
    for key in section:
        assert key.loader is (known_class if key.type is Type.CLASS else None)
        assert key.doc
        if not key.required:
            _validate_default(key)


def _validate_default(key: ConfigKey) -> None:
    value = key.parse({})
    if key.validator is not None:
        key.validator(key.name, value)


def test_an_empty_list_of_metric_names_formats_is_refused() -> None:
    formats = keys.MIRROR_SOURCE["metric.names.formats"].validator
    assert formats is not None
    with pytest.raises(ConfigError, match="must not be empty"):
        formats("metric.names.formats", [])
