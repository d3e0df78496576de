"""ConfigDef: a configuration declared once, by keywords, with its documentation.

What it answers (texts of errors included) is what Kafka's ``ConfigDef`` answers, so that validation reads the same to
existing clients. Pure: no I/O.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sluiceway.config.password import Password
from sluiceway.errors import ConfigError


class Type(enum.Enum):
    """The types a config value can have; the names are those of Kafka's REST answers."""

    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    SHORT = "SHORT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"  # noqa: S105 (a type's name)


class Importance(enum.Enum):
    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class Width(enum.Enum):
    NONE = "NONE"
    SHORT = "SHORT"
    MEDIUM = "MEDIUM"
    LONG = "LONG"


class _NoDefault:
    """Marks a key that must be given."""

    def __repr__(self) -> str:
        return "NO_DEFAULT"


NO_DEFAULT = _NoDefault()

ConfigValue = bool | str | int | float | list[str] | Password | None
Validator = Callable[[str, ConfigValue], None]

_RANGES = {
    Type.SHORT: (-(2**15), 2**15 - 1),
    Type.INT: (-(2**31), 2**31 - 1),
    Type.LONG: (-(2**63), 2**63 - 1),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    """One key: its type, default, validator and everything a form needs to show it."""

    name: str
    type: Type
    default: ConfigValue | _NoDefault = NO_DEFAULT
    validator: Validator | None = None
    importance: Importance = Importance.MEDIUM
    doc: str = ""
    group: str | None = None
    order_in_group: int = -1
    width: Width = Width.NONE
    display_name: str = ""
    dependents: tuple[str, ...] = ()
    recommender: Callable[[str, Mapping[str, ConfigValue]], Sequence[ConfigValue]] | None = None
    internal: bool = False

    @property
    def required(self) -> bool:
        return isinstance(self.default, _NoDefault)


@dataclass(slots=True)
class ValidatedValue:
    """What validation found for one key (``ConfigValueInfo`` of the REST API)."""

    name: str
    value: ConfigValue = None
    recommended_values: list[ConfigValue] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    visible: bool = True


class ConfigDef:
    """An ordered set of config keys; immutable once built: ``define`` returns a new one."""

    def __init__(self, keys: Iterable[ConfigKey] = ()) -> None:
        self._keys: dict[str, ConfigKey] = {}
        for key in keys:
            if key.name in self._keys:
                raise ConfigError(f"Configuration {key.name} is defined twice.")
            self._keys[key.name] = key

    def __iter__(self) -> Iterator[ConfigKey]:
        return iter(self._keys.values())

    def __contains__(self, name: object) -> bool:
        return name in self._keys

    def __getitem__(self, name: str) -> ConfigKey:
        return self._keys[name]

    def __len__(self) -> int:
        return len(self._keys)

    def __add__(self, other: ConfigDef) -> ConfigDef:
        return ConfigDef([*self, *other])

    def define(self, *keys: ConfigKey) -> ConfigDef:
        """Return a definition with these keys added."""
        return ConfigDef([*self, *keys])

    def parse(self, config: Mapping[str, object]) -> dict[str, ConfigValue]:
        """Return the typed values of all keys, defaults filled in; raise ConfigError at the first that is wrong."""
        return {key.name: self._parse_key(key, config) for key in self}

    def validate(self, config: Mapping[str, object]) -> dict[str, ValidatedValue]:
        """Return what is wrong with each key, never raising: the findings of PUT .../config/validate."""
        found: dict[str, ValidatedValue] = {}
        for key in self:
            result = found[key.name] = ValidatedValue(key.name)
            parsed: ConfigValue = None
            try:
                result.value = parsed = self._parse_unchecked(key, config)
            except ConfigError as error:
                result.errors.append(str(error))
                raw = config.get(key.name)
                if raw is not None and key.type is not Type.PASSWORD:
                    result.value = str(raw)
            try:
                if key.validator is not None:  # also for a value that could not be read: Kafka reports both findings
                    key.validator(key.name, parsed)
            except ConfigError as error:
                result.errors.append(str(error))
        return found

    def _parse_key(self, key: ConfigKey, config: Mapping[str, object]) -> ConfigValue:
        value = self._parse_unchecked(key, config)
        if key.validator is not None:
            key.validator(key.name, value)
        return value

    @staticmethod
    def _parse_unchecked(key: ConfigKey, config: Mapping[str, object]) -> ConfigValue:
        if key.name in config:
            return parse_value(key.name, config[key.name], key.type)
        if isinstance(key.default, _NoDefault):
            raise ConfigError(f'Missing required configuration "{key.name}" which has no default value.')
        return parse_value(key.name, key.default, key.type)


def parse_value(name: str, value: object, type_: Type) -> ConfigValue:
    """Return ``value`` as the type's Python value: text is trimmed and parsed as Kafka parses it.

    Raises ConfigError with Kafka's text where the value is not of the type.
    """
    if value is None:
        return None
    if isinstance(value, str) and type_ is not Type.PASSWORD:
        value = value.strip()
    return _PARSERS[type_](name, value, type_)


def _parse_boolean(name: str, value: object, _type: Type) -> ConfigValue:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise ConfigError(name, value, "Expected value to be either true or false")


def _parse_text(name: str, value: object, type_: Type) -> ConfigValue:
    if isinstance(value, str):
        return value
    raise ConfigError(name, value, f"Expected value to be a {type_.value.lower()}, but it was a {type(value).__name__}")


def _parse_password(name: str, value: object, _type: Type) -> ConfigValue:
    if isinstance(value, Password):
        return value
    if isinstance(value, str):
        return Password(value)
    raise ConfigError(name, "[hidden]", "Expected value to be a string")


def _parse_whole_number(name: str, value: object, type_: Type) -> ConfigValue:
    low, high = _RANGES[type_]
    number: int | None = None
    if isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, str) and value.lstrip("+-").isdecimal() and len(value) - len(value.lstrip("+-")) <= 1:
        number = int(value)
    if number is None or not low <= number <= high:
        raise ConfigError(name, value, f"Not a number of type {type_.value}")
    return number


def _parse_double(name: str, value: object, _type: Type) -> ConfigValue:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    try:
        return float(str(value))
    except ValueError:
        raise ConfigError(name, value, "Not a number of type DOUBLE") from None


def _parse_list(name: str, value: object, _type: Type) -> ConfigValue:
    if isinstance(value, (list, tuple)):
        return [str(item) for item in value]
    if isinstance(value, str):
        return [item.strip() for item in value.split(",")] if value else []
    raise ConfigError(name, value, "Expected a comma separated list.")


_PARSERS: dict[Type, Callable[[str, object, Type], ConfigValue]] = {
    Type.BOOLEAN: _parse_boolean,
    Type.STRING: _parse_text,
    Type.CLASS: _parse_text,
    Type.PASSWORD: _parse_password,
    Type.INT: _parse_whole_number,
    Type.SHORT: _parse_whole_number,
    Type.LONG: _parse_whole_number,
    Type.DOUBLE: _parse_double,
    Type.LIST: _parse_list,
}
