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
    Validator,
    shown,
)
from sluiceway.config.parsing import parse_value
from sluiceway.config.password import Password
from sluiceway.config.validators import (
    Check,
    EachOf,
    EnumText,
    ListRule,
    NonEmptyList,
    NonEmptyString,
    NonEmptyStringWithoutControlChars,
    OneOf,
    OrNull,
    Range,
    UniqueList,
    aliases_once,
)
from sluiceway.errors import ConfigError


def text(value: object, type_: Type) -> str | None:
    return shown(parse_value("k", value, type_), type_)


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        (Type.INT, " 3 ", "3"),
        (Type.INT, "+5", "5"),
        (Type.INT, "-0", "0"),
        (Type.INT, "\u0663", "3"),
        (Type.INT, 7, "7"),
        (Type.SHORT, "-32768", "-32768"),
        (Type.LONG, "9223372036854775807", "9223372036854775807"),
        (Type.DOUBLE, "1e3", "1000.0"),
        (Type.DOUBLE, "1f", "1.0"),
        (Type.DOUBLE, "1.", "1.0"),
        (Type.DOUBLE, ".5", "0.5"),
        (Type.DOUBLE, "0x1p3", "8.0"),
        (Type.DOUBLE, "NaN", "NaN"),
        (Type.DOUBLE, "-Infinity", "-Infinity"),
        (Type.DOUBLE, "1e10", "1.0E10"),
        (Type.DOUBLE, "0.00012", "1.2E-4"),
        (Type.DOUBLE, 5, "5.0"),
        (Type.BOOLEAN, " True ", "true"),
        (Type.BOOLEAN, False, "false"),
        (Type.STRING, " a\x00", "a"),
        (Type.STRING, "\u00a0a", "\u00a0a"),
        (Type.STRING, None, None),
        (Type.LIST, " a , b,c ,", "a,b,c,"),
        (Type.LIST, " ", ""),
        (Type.LIST, ",", ","),
        (Type.LIST, ["a", "b"], "a,b"),
        (Type.PASSWORD, "secret", "[hidden]"),
        (Type.CLASS, " a.B ", "a.B"),
    ],
)
def test_a_value_is_parsed_and_shown_as_kafka_does(type_: Type, value: object, expected: str | None) -> None:
    assert text(value, type_) == expected


@pytest.mark.parametrize(
    ("type_", "value", "why"),
    [
        (Type.INT, "", "Not a number of type INT"),
        (Type.INT, "2147483648", "Not a number of type INT"),
        (Type.INT, "1_0", "Not a number of type INT"),
        (Type.INT, "1.5", "Not a number of type INT"),
        (Type.INT, "+-1", "Not a number of type INT"),
        (Type.SHORT, "40000", "Not a number of type SHORT"),
        (Type.LONG, "9e3", "Not a number of type LONG"),
        (Type.DOUBLE, "nan", "Not a number of type DOUBLE"),
        (Type.DOUBLE, ".", "Not a number of type DOUBLE"),
        (Type.DOUBLE, "1_0", "Not a number of type DOUBLE"),
        (Type.BOOLEAN, "yes", "Expected value to be either true or false"),
        (Type.BOOLEAN, "", "Expected value to be either true or false"),
        (Type.LIST, 5, "Expected a comma separated list."),
        (Type.LONG, " x\t", "Not a number of type LONG"),
    ],
)
def test_a_value_of_another_type_has_kafkas_error(type_: Type, value: object, why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_value("k", value, type_)
    assert str(caught.value) == f"Invalid value {value} for configuration k: {why}"


def test_a_password_is_trimmed_and_never_shown() -> None:
    value = parse_value("k", " secret ", Type.PASSWORD)
    assert value == Password("secret")
    assert "secret" not in f"{value} {value!r}"
    with pytest.raises(ConfigError) as caught:
        parse_value("k", 4711, Type.PASSWORD)
    assert "4711" not in str(caught.value)


def refusal(validator: Validator, value: ConfigValue) -> str | None:
    try:
        validator("x", value)
    except ConfigError as error:
        return str(error)
    return None


DUPLICATED, EMPTY = "Configuration 'x' values must not be duplicated.", "Configuration 'x' values must not be empty."
CONTROL_CHARACTERS = (
    "Invalid value a\t\x85 for configuration x: String may not contain control sequences but had the following ASCII chars: "
    "9, 133"
)
NO_ITEMS = "Configuration 'x' must not be empty. Valid values include: any non-empty value"


@pytest.mark.parametrize(
    ("validator", "value", "expected"),
    [
        (UniqueList(), ["a"], None),
        (UniqueList(), [], NO_ITEMS),
        (UniqueList(allow_empty=True), [], None),
        (UniqueList(), ["a", "a"], DUPLICATED),
        (UniqueList(), ["a", ""], EMPTY),
        (UniqueList(), ["", ""], DUPLICATED),
        (UniqueList(), None, "Configuration 'x' values must not be null."),
        (UniqueList(allow_null=True), None, None),
        (ListRule(allow_duplicates=True), ["a", "a"], None),
        (NonEmptyList(), [], "Invalid value [] for configuration x: Empty list"),
        (NonEmptyList(), ["a", "a", ""], None),
        (NonEmptyList(), None, "Invalid value null for configuration x: Empty list"),
        (NonEmptyString(), "", "Invalid value  for configuration x: String must be non-empty"),
        (NonEmptyString(), None, None),
        (NonEmptyStringWithoutControlChars(), "", "Invalid value  for configuration x: String may not be empty"),
        (NonEmptyStringWithoutControlChars(), "a\t\x85", CONTROL_CHARACTERS),
        (NonEmptyStringWithoutControlChars(), None, None),
        (NonEmptyStringWithoutControlChars(), " ", None),
        (Range(1), None, "Invalid value null for configuration x: Value must be non-null"),
        (Range(1), 0, "Invalid value 0 for configuration x: Value must be at least 1"),
        (Range(1, 5), 9, "Invalid value 9 for configuration x: Value must be no more than 5"),
        (Range(1, 5), 5, None),
        (OrNull(Range(1)), None, None),
        (OrNull(Range(1)), 0, "Invalid value 0 for configuration x: Value must be at least 1"),
        (OneOf(("a", "b")), "A", "Invalid value A for configuration x: String must be one of: a, b"),
        (EnumText("V1", "V2"), "v1", None),
        (EnumText("V1", "V2"), "q", "Invalid value q for configuration x: String must be one of (case insensitive): V1, V2"),
        (EnumText("V1"), None, "Invalid value null for configuration x: String must be one of (case insensitive): V1"),
        (EachOf((Range(1), Range(2))), 1, "Invalid value 1 for configuration x: Value must be at least 2"),
        (Check(Range(1), "positive"), 0, "Invalid value 0 for configuration x: Value must be at least 1"),
        (aliases_once, ["a", "a"], "Invalid value [a, a] for configuration x: Duplicate alias provided."),
        (aliases_once, None, "Invalid value null for configuration x: entry must be non null"),
        (aliases_once, ["a", ""], None),
    ],
)
def test_a_validator_has_kafkas_error(validator: Validator, value: ConfigValue, expected: str | None) -> None:
    assert refusal(validator, value) == expected


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
