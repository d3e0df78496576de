"""Results of validation, named and structured as in Kafka Connect's REST API. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from sluiceway.config.definition import ConfigKey, Type, ValidatedValue, shown

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@dataclass(frozen=True, slots=True)
class ConfigKeyInfo:
    """The definition of a key."""

    name: str
    type: str
    required: bool
    default_value: str | None
    importance: str
    documentation: str
    group: str | None
    order_in_group: int
    width: str
    display_name: str
    dependents: tuple[str, ...]

    @classmethod
    def of(cls, key: ConfigKey, prefix: str = "") -> ConfigKeyInfo:
        return cls(
            prefix + key.name,
            key.type.value,
            key.required,
            key.shown_default,
            key.importance.value,
            key.doc,
            key.group,
            key.order_in_group,
            key.width.value,
            key.display_name or key.name,
            key.dependents,
        )

    def to_json(self) -> dict[str, Any]:
        return {**_values(self), "dependents": list(self.dependents)}


@dataclass(frozen=True, slots=True)
class ConfigValueInfo:
    """The value of a key and its errors. Secrets are hidden."""

    name: str
    value: str | None
    recommended_values: tuple[str | None, ...] = ()
    errors: tuple[str, ...] = ()
    visible: bool = True

    @classmethod
    def of(cls, found: ValidatedValue, type_: Type | None, prefix: str = "") -> ConfigValueInfo:
        recommended = tuple(shown(value, type_) for value in found.recommended_values)
        return cls(prefix + found.name, shown(found.value, type_), recommended, tuple(found.errors), found.visible)

    def to_json(self) -> dict[str, Any]:
        return {**_values(self), "recommended_values": list(self.recommended_values), "errors": list(self.errors)}


@dataclass(frozen=True, slots=True)
class ConfigInfo:
    """A key: its definition, None for an undefined key, and its value, None if it was not validated."""

    definition: ConfigKeyInfo | None
    value: ConfigValueInfo | None

    def to_json(self) -> dict[str, Any]:
        return {
            "definition": self.definition and self.definition.to_json(),
            "value": self.value and self.value.to_json(),
        }


@dataclass(frozen=True, slots=True)
class ConfigInfos:
    """The result for a whole config. ``name`` is the connector class as the config names it."""

    name: str
    groups: tuple[str, ...]
    configs: tuple[ConfigInfo, ...]

    @property
    def errors(self) -> list[str]:
        """The errors of all keys, in the order of the keys."""
        return [error for config in self.configs if config.value for error in config.value.errors]

    @property
    def error_count(self) -> int:
        return len(self.errors)

    @property
    def password_keys(self) -> frozenset[str]:
        """The keys whose values are secret by their type."""
        definitions = (config.definition for config in self.configs)
        return frozenset(each.name for each in definitions if each is not None and each.type == Type.PASSWORD.value)

    def __add__(self, others: Sequence[ConfigInfo]) -> ConfigInfos:
        """Return the result with further keys and their groups."""
        groups = [info.definition.group for info in others if info.definition is not None and info.definition.group]
        return ConfigInfos(self.name, tuple(dict.fromkeys([*self.groups, *groups])), (*self.configs, *others))

    def to_json(self) -> dict[str, Any]:
        """Return the body of PUT /connector-plugins/{connector}/config/validate."""
        return {
            "name": self.name,
            "error_count": self.error_count,
            "groups": list(self.groups),
            "configs": [config.to_json() for config in self.configs],
        }


def _values(info: DataclassInstance) -> dict[str, Any]:
    """Return the values by field, without the copies of ``asdict``, which take most of a validation's time."""
    return {each.name: getattr(info, each.name) for each in fields(info)}
