"""Validators for config keys; each is called with the key's name and parsed value and raises ConfigError with Kafka's text."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sluiceway.config.definition import ConfigValue
from sluiceway.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Range:
    """A number of at least ``low`` and at most ``high``."""

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


class NonEmptyString:
    """A text that is not empty; a missing one is another validator's business, as in Kafka."""

    def __call__(self, name: str, value: ConfigValue) -> None:
        if isinstance(value, str) and not value:
            raise ConfigError(name, value, "String must be non-empty")


@dataclass(frozen=True, slots=True)
class OneOf:
    """A text out of a fixed set."""

    allowed: Collection[str]
    ignore_case: bool = False

    def __call__(self, name: str, value: ConfigValue) -> None:
        allowed = {text.lower() for text in self.allowed} if self.ignore_case else self.allowed
        shown = str(value).lower() if self.ignore_case and value is not None else value
        if shown not in allowed:
            how = " (case insensitive)" if self.ignore_case else ""
            raise ConfigError(name, value, f"String must be one of{how}: {', '.join(self.allowed)}")


def non_empty_name(name: str, value: ConfigValue) -> None:
    """A connector's name: not null, not empty, without control characters."""
    if value is None or value == "":
        raise ConfigError(name, value, "String may not be null" if value is None else "String may not be empty")
    bad = [character for character in str(value) if ord(character) < 32 or ord(character) == 127]
    if bad:
        codes = ", ".join(str(ord(character)) for character in bad)
        raise ConfigError(name, value, f"String may not contain control sequences but had the following ASCII chars: {codes}")
