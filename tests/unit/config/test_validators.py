"""Validators, with the errors of Kafka's."""

from __future__ import annotations

import pytest

from sluiceway.config.definition import ConfigValue, Validator
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
        (Range(1, 5), 6, "Invalid value 6 for configuration x: Value must be no more than 5"),
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
