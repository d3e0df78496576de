"""ConfigDef: a configuration declared once, by keywords, with its documentation.

What it answers (texts of errors included) is what Kafka's ``ConfigDef`` answers, so that validation reads the same to
existing clients. Pure: no I/O.
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
    """Marks a key that must be given."""

    def __repr__(self) -> str:
        return "NO_DEFAULT"

    def __reduce__(self) -> str:
        return "NO_DEFAULT"  # one object in every process


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
    """What a form offers for a key, given the values of all keys: which values, and whether the key is shown at all.

    Both functions may raise ConfigError; validation reports it at the key.
    """

    values: Callable[[str, Parsed], Sequence[ConfigValue]] = _no_values
    visible: Callable[[str, Parsed], bool] = _always


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    """One key: its type, default, validator and everything a form needs to show it.

    ``loader`` makes a ``PluginClass`` of the name in a key of type CLASS, raising ConfigError if there is no such class;
    without one the name stays a text.
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
        """The default as REST shows it; None also for a key that has none."""
        return None if isinstance(self.default, _NoDefault) else shown(parse_value(self.name, self.default, self.type), self.type)

    def parse(self, config: Mapping[str, object]) -> ConfigValue:
        """Return the key's typed value or its default, not validated yet; raise ConfigError if it is missing or unreadable."""
        if self.name in config:
            return parse_value(self.name, config[self.name], self.type, self.loader)
        if isinstance(self.default, _NoDefault):
            raise ConfigError(f'Missing required configuration "{self.name}" which has no default value.')
        return parse_value(self.name, self.default, self.type, self.loader)

    def below(self, prefix: str, group: str, order: int) -> ConfigKey:
        """Return this key as part of another definition; its validator and recommender go on seeing its own name."""
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
    """What validation found for one key (``ConfigValue`` of Kafka, before it is made a text)."""

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

    def replace(self, *keys: ConfigKey) -> ConfigDef:
        """Return a definition in which these keys stand in the place of those of the same names."""
        new = {key.name: key for key in keys}
        return ConfigDef(new.get(key.name, key) for key in self)

    def embed(self, prefix: str, group: str, order: int, child: ConfigDef) -> ConfigDef:
        """Return a definition with all keys of another below a prefix, required and important ones first, as Kafka sorts them."""
        keys = [key.below(prefix, group, order + place) for place, key in enumerate(child.by_importance())]
        return self.define(*keys)

    def by_importance(self) -> list[ConfigKey]:
        """Return the keys by group, place in the group, whether they are required, importance and name."""
        groups = self.groups

        def rank(key: ConfigKey) -> tuple[int, int, bool, int, str]:
            group = groups.index(key.group) + 1 if key.group else 0
            return group, key.order_in_group, not key.required, _IMPORTANCES.index(key.importance), key.name

        return sorted(self, key=rank)

    @property
    def groups(self) -> list[str]:
        """The groups in order of appearance."""
        return list(dict.fromkeys(key.group for key in self if key.group))

    def parse(self, config: Mapping[str, object]) -> dict[str, ConfigValue]:
        """Return the typed values of all keys, defaults filled in; raise ConfigError at the first that is wrong."""
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
        """Return what is wrong with each key, never raising: the findings of PUT .../config/validate."""
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
        if key.validator is not None:  # also for a value that could not be read: Kafka reports both findings
            key.validator(key.name, result.value)
    except ConfigError as error:
        result.errors.append(str(error))


def _recommend_into(result: ValidatedValue, recommender: Recommender, parsed: Parsed) -> None:
    try:
        result.recommended_values = list(recommender.values(result.name, parsed))
        result.visible = recommender.visible(result.name, parsed)
    except ConfigError as error:
        result.errors.append(str(error))
