"""The keys of a plugin of Singer that taps and targets share: its program, its packages, and its own config. No I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sluiceway.config.definition import ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.masking import is_secret
from sluiceway.config.password import revealed
from sluiceway.config.validators import Check, NonEmptyString
from sluiceway.connectors.keys import text
from sluiceway.errors import ConfigError

REQUIREMENTS, PYTHON = "singer.requirements", "singer.python"
CONFIG, CONFIG_PREFIX = "singer.config", "singer.config."


def json_object(name: str, text_: str | None) -> dict[str, Any]:
    """Return a JSON object. Raises ConfigError, without the text, which may have secrets."""
    try:
        found = json.loads(text_) if text_ and text_.strip() else {}
    except ValueError as error:
        raise ConfigError(name, None, f"is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise ConfigError(name, None, "must be a JSON object")
    return found


def _config(name: str, value: ConfigValue) -> None:
    given = revealed(value)
    if "${" not in (given or ""):  # a reference is resolved on the driver
        json_object(name, given)


def plugin_keys(program: str, kind: str, example: str, package: str) -> list[ConfigKey]:
    """Return the keys of a plugin of a ``kind``, ``tap`` or ``target``, whose program the key ``program`` names."""
    group = kind.capitalize()
    return [
        text(
            name=program,
            importance=Importance.HIGH,
            validator=NonEmptyString(),
            group=group,
            doc=f"The {kind}'s program: a name that 'sluiceway plugins install singer:REQUIREMENT' prints, such as {example}; "
            "or the path of a program. Executors run it.",
        ),
        text(
            name=REQUIREMENTS,
            default=None,
            group=group,
            doc=f"pip's requirements of the {kind}, such as {package}. The machine that runs the task "
            f"installs them in its cache folder, unless it has them. Without it, the {kind} must be installed there.",
        ),
        text(
            name=PYTHON,
            default=None,
            importance=Importance.LOW,
            group=group,
            doc=f"The Python for {REQUIREMENTS}, such as 3.11 or a path; by default that of the task.",
        ),
        ConfigKey(
            name=CONFIG,
            type=Type.PASSWORD,
            default="{}",
            validator=Check(_config, "a JSON object"),
            importance=Importance.HIGH,
            group=group,
            doc=f"The {kind}'s config, as a JSON object. singer.config.NAME adds the setting NAME, whose value is a text: use it "
            "for references to secrets.",
        ),
    ]


@dataclass(frozen=True, slots=True)
class Plugin:
    """A tap or a target with its config. The repr shows no setting. ``key`` is the key that names the program."""

    key: str
    program: str
    requirements: str
    python: str | None
    settings: Mapping[str, Any] = field(repr=False)

    @property
    def name(self) -> str:
        """The name of the program, for messages and for the partition of a tap's offset."""
        return self.program.rstrip("/").rpartition("/")[2]

    def secrets(self) -> set[str]:
        """Return the texts that the log must not have: settings whose names say so."""
        return set(_secrets(self.settings))


def _secrets(value: Any, name: str = "") -> list[str]:
    if isinstance(value, Mapping):
        return [each for key, inner in value.items() for each in _secrets(inner, name if is_secret(name) else str(key))]
    if isinstance(value, list):
        return [each for inner in value for each in _secrets(inner, name)]
    return [str(value)] if is_secret(name) and value is not None and not isinstance(value, bool) else []


def plugin_of(key: str, values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> Plugin:
    """Return the plugin of a parsed config whose references are resolved. Raises ConfigError."""
    settings = json_object(CONFIG, revealed(values[CONFIG]))
    settings |= {name.removeprefix(CONFIG_PREFIX): value for name, value in config.items() if name.startswith(CONFIG_PREFIX)}
    return Plugin(
        key=key,
        program=str(values[key]),
        requirements=str(values[REQUIREMENTS] or ""),
        python=None if values[PYTHON] is None else str(values[PYTHON]),
        settings=settings,
    )


def plugin_conflicts(values: Mapping[str, ConfigValue]) -> dict[str, str]:
    """Return the errors of keys that conflict, by the key to change."""
    return {PYTHON: f"has no effect without {REQUIREMENTS}"} if values[PYTHON] is not None and not values[REQUIREMENTS] else {}
