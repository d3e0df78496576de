"""ConfigDef, with the results and errors of Kafka's."""

from __future__ import annotations

import pickle

import pytest

from sluiceway.config.definition import (
    NO_DEFAULT,
    ConfigDef,
    ConfigKey,
    ConfigValue,
    Importance,
    PluginClass,
    Recommender,
    Type,
    shown,
)
from sluiceway.config.parsing import parse_value
from sluiceway.config.validators import (
    NonEmptyString,
    Range,
)
from sluiceway.errors import ConfigError


def key(name: str, type_: Type = Type.STRING, **more: object) -> ConfigKey:
    return ConfigKey(name=name, type=type_, **more)  # type: ignore[arg-type]


def test_parse_adds_defaults_and_raises_for_the_first_invalid_key() -> None:
    definition = ConfigDef([key("a", Type.INT, default="5"), key("b"), key("c", Type.INT, validator=Range(1))])
    assert definition.parse({"b": " x ", "c": "2", "unknown": "y"}) == {"a": 5, "b": "x", "c": 2}
    with pytest.raises(ConfigError, match=r'^Missing required configuration "b" which has no default value.$'):
        definition.parse({"c": "0"})


def test_validate_reports_all_errors_and_no_value_that_cannot_be_parsed() -> None:
    found = ConfigDef([key("a", Type.INT, default=1, validator=Range(1)), key("b")]).validate({"a": "x"})
    assert (found["a"].value, found["a"].errors) == (
        None,
        [
            "Invalid value x for configuration a: Not a number of type INT",
            "Invalid value null for configuration a: Value must be non-null",
        ],
    )
    assert found["b"].errors == ['Missing required configuration "b" which has no default value.']


def test_undefined_dependents_are_reported() -> None:
    definition = ConfigDef([key("a", default=None, dependents=("b", "zz")), key("b", default=None)])
    found = definition.validate({})
    assert (found["zz"].errors, found["zz"].visible) == (["zz is referred in the dependents, but not defined."], False)
    with pytest.raises(ConfigError, match=r"^Some configurations in are referred in the dependents, but not defined: zz$"):
        definition.parse({})


def test_a_recommender_sees_all_values_and_its_errors_are_reported() -> None:
    def values(_name: str, parsed: object) -> list[ConfigValue]:
        if parsed["mode"] == "bad":  # type: ignore[index]
            raise ConfigError("no idea")
        return ["x"]

    recommender = Recommender(values, visible=lambda _name, parsed: parsed["mode"] == "on")
    definition = ConfigDef([key("a", default=None, recommender=recommender), key("mode")])
    assert definition.validate({"mode": "on"})["a"].recommended_values == ["x"]
    assert definition.validate({"mode": "on"})["a"].visible
    assert not definition.validate({"mode": "off"})["a"].visible
    assert definition.validate({"mode": "bad"})["a"].errors == ["no idea"]


def test_validators_of_an_embedded_definition_use_its_own_names() -> None:
    child = ConfigDef(
        [
            key("later", default=None, importance=Importance.HIGH, group="G"),
            key("low", default=None, importance=Importance.LOW),
            key("must", validator=NonEmptyString(), importance=Importance.LOW),
            key("high", default=None, importance=Importance.HIGH, dependents=("low",)),
        ]
    )
    definition = ConfigDef().embed("a.", "Group", 2, child)
    assert [(each.name, each.group, each.order_in_group) for each in definition] == [
        ("a.must", "Group", 2),
        ("a.high", "Group", 3),
        ("a.low", "Group", 4),
        ("a.later", "Group: G", 5),
    ]
    assert definition["a.must"].display_name == "must"
    assert definition["a.high"].dependents == ("a.low",)
    assert definition.validate({"a.must": ""})["a.must"].errors == [
        "Invalid value  for configuration must: String must be non-empty"
    ]


def test_a_missing_class_is_reported_with_the_name_in_the_config() -> None:
    def load(name: str) -> PluginClass:
        raise ConfigError(f"no {name}")

    with pytest.raises(ConfigError) as caught:
        parse_value("k", " x ", Type.CLASS, load)
    assert str(caught.value) == "Invalid value  x  for configuration k: Class  x  could not be found."


def test_a_class_is_loaded_with_the_keys_loader() -> None:
    def load(name: str) -> PluginClass:
        if name != "known":
            raise ConfigError(f"Class {name} could not be found.")
        return PluginClass("org.example.Known", dict)

    definition = ConfigDef([key("c", Type.CLASS, loader=load)])
    assert shown(definition.parse({"c": " known "})["c"]) == "org.example.Known"
    assert definition.validate({"c": "nope"})["c"].errors == [
        "Invalid value nope for configuration c: Class nope could not be found."
    ]


def test_defining_a_key_twice_raises_an_error() -> None:
    with pytest.raises(ConfigError, match=r"^Configuration a is defined twice.$"):
        ConfigDef([key("a"), key("a")])


def test_a_required_key_stays_required_after_pickling() -> None:
    assert pickle.loads(pickle.dumps(key("a"))).required  # noqa: S301
    assert pickle.loads(pickle.dumps(NO_DEFAULT)) is NO_DEFAULT  # noqa: S301
