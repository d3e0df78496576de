"""Provides Kafka's validators of config keys.

Each is called with the key's name and parsed value and raises ConfigError with Kafka's message.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from sluiceway.config.parsing import ConfigValue
from sluiceway.errors import ConfigError
from sluiceway.java.regex import RegexError, compile_java


@dataclass(frozen=True, slots=True)
class Range:
    """A number between ``low`` and ``high``, inclusive."""

    low: float | None = None
    high: float | None = None

    def __call__(self, name: str, value: ConfigValue) -> None:
        if value is None:
            raise ConfigError(name, None, "Value must be non-null")
        if isinstance(value, (int, float)):
            if self.low is not None and value < self.low:
                raise ConfigError(name, value, f"Value must be at least {self.low}")
            if self.high is not None and value > self.high:
                raise ConfigError(name, value, f"Value must be no more than {self.high}")

    def __str__(self) -> str:
        low, high = ("..." if bound is None else bound for bound in (self.low, self.high))
        return f"[{low},{high}]"


@dataclass(frozen=True, slots=True)
class NonEmptyString:
    """A string that is not empty. As in Kafka, a missing value is accepted."""

    def __call__(self, name: str, value: ConfigValue) -> None:
        if isinstance(value, str) and not value:
            raise ConfigError(name, value, "String must be non-empty")

    def __str__(self) -> str:
        return "non-empty string"


@dataclass(frozen=True, slots=True)
class NonEmptyStringWithoutControlChars:
    """A string that is not empty and has no control characters, such as a connector's name. A missing value is accepted."""

    def __call__(self, name: str, value: ConfigValue) -> None:
        if value is None:
            return
        if value == "":
            raise ConfigError(name, value, "String may not be empty")
        bad = ", ".join(str(ord(char)) for char in str(value) if char < " " or "\x7f" <= char <= "\x9f")
        if bad:
            raise ConfigError(name, value, f"String may not contain control sequences but had the following ASCII chars: {bad}")

    def __str__(self) -> str:
        return "non-empty string without ISO control characters"


@dataclass(frozen=True, slots=True)
class OneOf:
    """A string from a fixed set."""

    allowed: Collection[str]
    ignore_case: bool = False

    def __call__(self, name: str, value: ConfigValue) -> None:
        allowed = {text.lower() for text in self.allowed} if self.ignore_case else self.allowed
        shown = str(value).lower() if self.ignore_case and value is not None else value
        if shown not in allowed:
            how = " (case insensitive)" if self.ignore_case else ""
            raise ConfigError(name, value, f"String must be one of{how}: {', '.join(self.allowed)}")

    def __str__(self) -> str:
        how = "(case insensitive) " if self.ignore_case else ""
        return f"{how}[{', '.join(self.allowed)}]"


@dataclass(frozen=True, slots=True)
class NonEmptyList:
    """A list with at least one item."""

    def __call__(self, name: str, value: ConfigValue) -> None:
        if not value:
            raise ConfigError(name, None if value is None else "[]", "Empty list")

    def __str__(self) -> str:
        return "non-empty list"


@dataclass(frozen=True, slots=True)
class ListRule:
    """A list without empty items. It may be empty, contain duplicates or be missing as the fields allow."""

    allow_empty: bool = True
    allow_duplicates: bool = False
    allow_null: bool = False

    def __call__(self, name: str, value: ConfigValue) -> None:
        if value is None and not self.allow_null:
            raise ConfigError(f"Configuration '{name}' values must not be null.")
        if not isinstance(value, list):
            return
        if not value and not self.allow_empty:
            raise ConfigError(f"Configuration '{name}' must not be empty. Valid values include: any non-empty value")
        if not self.allow_duplicates and len(set(value)) < len(value):
            raise ConfigError(f"Configuration '{name}' values must not be duplicated.")
        if "" in value:
            raise ConfigError(f"Configuration '{name}' values must not be empty.")

    def __str__(self) -> str:
        return "any non-duplicate non-empty values" if not self.allow_duplicates else "any non-empty values"


def UniqueList(*, allow_empty: bool = False, allow_null: bool = False) -> ListRule:  # noqa: N802 (used like the validator classes)
    """Return the validator of a list without duplicates."""
    return ListRule(allow_empty=allow_empty, allow_duplicates=False, allow_null=allow_null)


@dataclass(frozen=True, slots=True)
class EachOf:
    """Applies several validators in order (Kafka's ``CompositeValidator``)."""

    validators: Sequence[Callable[[str, ConfigValue], None]]

    def __call__(self, name: str, value: ConfigValue) -> None:
        for validator in self.validators:
            validator(name, value)

    def __str__(self) -> str:
        return ",".join(map(str, self.validators))


@dataclass(frozen=True, slots=True)
class OrNull:
    """Applies a validator unless the value is missing."""

    validator: Callable[[str, ConfigValue], None]

    def __call__(self, name: str, value: ConfigValue) -> None:
        if value is not None:
            self.validator(name, value)

    def __str__(self) -> str:
        return f"{self.validator} or null"


@dataclass(frozen=True, slots=True)
class Check:
    """Applies a function of name and value, with a description for documentation (Kafka's ``LambdaValidator``)."""

    function: Callable[[str, ConfigValue], None]
    description: str

    def __call__(self, name: str, value: ConfigValue) -> None:
        self.function(name, value)

    def __str__(self) -> str:
        return self.description


def EnumText(*names: str) -> OneOf:  # noqa: N802 (used like the validator classes)
    """Return the validator of the name of an enum constant, ignoring case."""
    return OneOf(names, ignore_case=True)


def aliases_once(name: str, value: ConfigValue) -> None:
    """Validate that a list of aliases has no duplicates. Raises ConfigError."""
    if value is None:
        raise ConfigError(name, None, "entry must be non null")
    if isinstance(value, list) and len(set(value)) < len(value):
        raise ConfigError(name, f"[{', '.join(value)}]", "Duplicate alias provided.")


def valid_regex(name: str, value: ConfigValue) -> None:
    """Validate a Java regular expression. Raises ConfigError."""
    try:
        compile_java(str(value))
    except RegexError as error:
        raise ConfigError(name, value, f"Invalid regex: {error}") from error
