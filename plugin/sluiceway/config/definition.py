"""Defines the keys of a configuration with types, defaults, validators and documentation, as Kafka's ``ConfigDef`` does.

Its results and error messages are those of Kafka's ``ConfigDef``, so that existing clients understand them. No I/O.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sluiceway.config.parsing import ConfigValue, PluginClass, Type, parse_value, shown
from sluiceway.errors import ConfigError

__all__ = [
    "NO_DEFAULT",
    "ConfigDef",
    "ConfigKey",
    "ConfigValue",
    "Importance",
    "PluginClass",
    "Recommender",
    "Type",
    "ValidatedValue",
    "Validator",
    "Width",
    "parse_value",
    "shown",
]


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
    """Marks a required key."""

    def __repr__(self) -> str:
        return "NO_DEFAULT"

    def __reduce__(self) -> str:
        return "NO_DEFAULT"  # unpickles to the same object


NO_DEFAULT = _NoDefault()

Validator = Callable[[str, ConfigValue], None]
Parsed = Mapping[str, ConfigValue]

_IMPORTANCES = list(Importance)


def _no_values(_name: str, _parsed: Parsed) -> Sequence[ConfigValue]:
    return ()


def _always(_name: str, _parsed: Parsed) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Recommender:
    """Recommends values of a key and whether to show it in a form, given the values of all keys.

    Both functions may raise ConfigError, which validation reports as an error of the key.
    """

    values: Callable[[str, Parsed], Sequence[ConfigValue]] = _no_values
    visible: Callable[[str, Parsed], bool] = _always


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    """The definition of a key: its type, default, validator, and how forms display it.

    ``loader`` resolves the class name in a key of type CLASS and raises ConfigError if there is no such class. Without a
    loader the name stays text.
    """

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
    recommender: Recommender | None = None
    internal: bool = False
    loader: Callable[[str], PluginClass] | None = None

    @property
    def required(self) -> bool:
        return isinstance(self.default, _NoDefault)

    @property
    def shown_default(self) -> str | None:
        """The default as the REST API shows it; None for a required key too."""
        return None if isinstance(self.default, _NoDefault) else shown(parse_value(self.name, self.default, self.type), self.type)

    def parse(self, config: Mapping[str, object]) -> ConfigValue:
        """Return the key's parsed value or its default without validating it.

        Raises ConfigError if the value is missing or does not have the key's type.
        """
        if self.name in config:
            return parse_value(self.name, config[self.name], self.type, self.loader)
        if isinstance(self.default, _NoDefault):
            raise ConfigError(f'Missing required configuration "{self.name}" which has no default value.')
        return parse_value(self.name, self.default, self.type, self.loader)

    def below(self, prefix: str, group: str, order: int) -> ConfigKey:
        """Return this key as part of another definition. Its validator and recommender still receive its own name."""
        validator, recommender = self.validator, self.recommender
        return replace(
            self,
            name=prefix + self.name,
            validator=validator and (lambda name, value: validator(name[len(prefix) :], value)),
            group=f"{group}: {self.group}" if self.group else group,
            order_in_group=order,
            display_name=self.display_name or self.name,
            dependents=tuple(prefix + each for each in self.dependents),
            recommender=recommender and _below(recommender, prefix),
        )


def _below(recommender: Recommender, prefix: str) -> Recommender:
    def own(parsed: Parsed) -> dict[str, ConfigValue]:
        return {name[len(prefix) :]: value for name, value in parsed.items() if name.startswith(prefix)}

    return Recommender(
        values=lambda name, parsed: recommender.values(name[len(prefix) :], own(parsed)),
        visible=lambda name, parsed: recommender.visible(name[len(prefix) :], own(parsed)),
    )


@dataclass(slots=True)
class ValidatedValue:
    """The validation result of one key (Kafka's ``ConfigValue``, with the value not formatted as text yet)."""

    name: str
    value: ConfigValue = None
    recommended_values: list[ConfigValue] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    visible: bool = True


class ConfigDef:
    """An ordered set of config keys. Immutable: ``define`` returns a new one."""

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
        """Return a definition with additional keys."""
        return ConfigDef([*self, *keys])

    def replace(self, *keys: ConfigKey) -> ConfigDef:
        """Return a definition with these keys instead of those with the same names."""
        new = {key.name: key for key in keys}
        return ConfigDef(new.get(key.name, key) for key in self)

    def embed(self, prefix: str, group: str, order: int, child: ConfigDef) -> ConfigDef:
        """Return a definition with the keys of another one under a prefix, sorted by importance as Kafka does."""
        keys = [key.below(prefix, group, order + index) for index, key in enumerate(child.by_importance())]
        return self.define(*keys)

    def by_importance(self) -> list[ConfigKey]:
        """Return the keys sorted by group, order in the group, required before optional, importance and name."""
        groups = self.groups

        def rank(key: ConfigKey) -> tuple[int, int, bool, int, str]:
            group = groups.index(key.group) + 1 if key.group is not None else 0
            return group, key.order_in_group, not key.required, _IMPORTANCES.index(key.importance), key.name

        return sorted(self, key=rank)

    @property
    def groups(self) -> list[str]:
        """The groups in order of appearance."""
        return list(dict.fromkeys(key.group for key in self if key.group is not None))

    def parse(self, config: Mapping[str, object]) -> dict[str, ConfigValue]:
        """Return the parsed values of all keys including defaults. Raises ConfigError for the first invalid one."""
        undefined = self._undefined_dependents()
        if undefined:
            raise ConfigError(f"Some configurations in are referred in the dependents, but not defined: {' '.join(undefined)}")
        values: dict[str, ConfigValue] = {}
        for key in self:
            values[key.name] = value = key.parse(config)
            if key.validator is not None:
                key.validator(key.name, value)
        return values

    def validate(self, config: Mapping[str, object]) -> dict[str, ValidatedValue]:
        """Return the result of each key with its errors, as in PUT .../config/validate. Raises nothing."""
        found = {key.name: ValidatedValue(key.name) for key in self}
        for name in self._undefined_dependents():
            found[name] = ValidatedValue(name, errors=[f"{name} is referred in the dependents, but not defined."], visible=False)
        for key in self:
            _parse_into(found[key.name], key, config)
        parsed = {name: result.value for name, result in found.items()}
        for key in self:
            if key.recommender is not None:
                _recommend_into(found[key.name], key.recommender, parsed)
        return found

    def _undefined_dependents(self) -> list[str]:
        return sorted({name for key in self for name in key.dependents if name not in self._keys})


def _parse_into(result: ValidatedValue, key: ConfigKey, config: Mapping[str, object]) -> None:
    try:
        result.value = key.parse(config)
    except ConfigError as error:
        result.errors.append(str(error))
    try:
        if key.validator is not None:  # also for a value that could not be parsed: Kafka reports both errors
            key.validator(key.name, result.value)
    except ConfigError as error:
        result.errors.append(str(error))


def _recommend_into(result: ValidatedValue, recommender: Recommender, parsed: Parsed) -> None:
    try:
        result.recommended_values = list(recommender.values(result.name, parsed))
        result.visible = recommender.visible(result.name, parsed)
    except ConfigError as error:
        result.errors.append(str(error))
